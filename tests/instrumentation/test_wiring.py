"""On, off and on again."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider

import otel_loopguard
from otel_loopguard import runtime
from otel_loopguard.instrumentation import LoopGuardInstrumentor, wiring
from otel_loopguard.sdk.daemon import daemon
from otel_loopguard.sdk.providers import Providers
from otel_loopguard.settings import from_env
from tests.signals import Signals, attributes

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing was ever wired in this process."""
    monkeypatch.setattr(wiring, "_current", None)
    monkeypatch.setattr(wiring, "_off", False)
    monkeypatch.setattr(runtime, "_current", None)
    yield
    wiring.disconnect()


@otel_loopguard.tool
def search(query: str) -> str:
    return "nothing found"


def loop(times: int = 3) -> None:
    with otel_loopguard.run("finder"):
        for _ in range(times):
            assert search("x") == "nothing found"


def test_on_off_and_on_again() -> None:
    signals = Signals()
    loop()
    for n in range(3):
        with signals.instrumented():
            loop()
        assert len(signals.events) == len(signals.named("invoke_agent finder")) == n + 1
        loop()
        assert len(signals.named("invoke_agent finder")) == n + 1


def test_twice_on_is_on(caplog: pytest.LogCaptureFixture) -> None:
    signals = Signals()
    with signals.instrumented() as wired:
        otel_loopguard.instrument()
        assert wiring.current() is wired
        loop()
    assert len(signals.events) == 1
    assert not LoopGuardInstrumentor().is_instrumented_by_opentelemetry
    assert caplog.messages[0] == "Attempting to instrument while already instrumented"


@pytest.mark.usefixtures("fresh")
def test_decorators_need_no_instrument(monkeypatch: pytest.MonkeyPatch) -> None:
    signals = Signals()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: signals.tracer_provider)
    loop()
    assert len(signals.events) == 1


@pytest.mark.usefixtures("fresh")
def test_decorators_share_the_guard_of_a_processor_that_was_added_by_hand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    signals = Signals()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: signals.tracer_provider)
    processor = otel_loopguard.LoopGuardSpanProcessor()
    signals.tracer_provider.add_span_processor(processor)
    loop()
    wired = wiring.current()
    assert wired is not None
    assert wired.pipeline.guard is processor._pipeline.guard
    assert len(signals.events) == 1


@pytest.mark.usefixtures("fresh")
def test_what_instrument_is_given_wins_over_what_decorators_began_with() -> None:
    first = wiring.connect()
    assert wiring.connect() is first
    signals = Signals()
    with signals.instrumented(hard_loop_warning=2):
        loop(2)
    assert len(signals.events) == 1


@pytest.mark.usefixtures("fresh")
def test_switched_off_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_LOOPGUARD_DISABLED", "true")
    signals = Signals()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: signals.tracer_provider)
    loop()
    otel_loopguard.instrument(tracer_provider=signals.tracer_provider)
    loop()
    otel_loopguard.uninstrument()
    assert signals.spans == []


@pytest.mark.usefixtures("fresh")
def test_switched_off_from_code(monkeypatch: pytest.MonkeyPatch) -> None:
    signals = Signals()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: signals.tracer_provider)
    otel_loopguard.instrument(disabled=True)
    loop()
    otel_loopguard.uninstrument()
    assert signals.spans == []


def test_an_option_that_does_not_exist_is_said(caplog: pytest.LogCaptureFixture) -> None:
    signals = Signals()
    with caplog.at_level(logging.WARNING), signals.instrumented(hard_lop_warning=2):
        loop()
    assert "hard_loop_warning" in caplog.text
    assert len(signals.events) == 1


def test_an_agent_without_a_name_of_its_own_is_called_like_the_service() -> None:
    provider = TracerProvider(resource=Resource({"service.name": "shop"}))
    wired = wiring._build(from_env({}), Providers(provider))
    assert wired.handwritten._agent == "shop"
    named = wiring._build(from_env({}, agent_name="clerk"), Providers(provider))
    assert named.handwritten._agent == "clerk"
    for each in (wired, named):
        each.pipeline.close()


def test_the_thread_looks_after_the_wiring(monkeypatch: pytest.MonkeyPatch) -> None:
    """It attaches where no hook is ever called, and lets go of what fell silent."""
    current: list[trace.TracerProvider] = [trace.ProxyTracerProvider()]
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: current[0])
    before = list(daemon._callbacks)
    wired = wiring._build(from_env({}), Providers())
    wired.open()
    assert not wired.attachment.settled
    signals = Signals()
    current[0] = signals.tracer_provider
    for callback in daemon._callbacks[len(before) :]:
        callback(1)
    assert wired.attachment.settled
    wired.close()
    assert daemon._callbacks == before


def test_a_forked_child_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """The locks that other threads hold when a process forks are held for ever in the child."""
    signals = Signals()
    with signals.instrumented() as wired:
        held = [wiring._lock, wired.attachment._lock, runtime._lock, wired.pipeline.guard._lock]
        for lock in held:
            lock.acquire()
        wiring._after_fork()
        runtime._after_fork_in_child()
        now = [wiring._lock, wired.attachment._lock, runtime._lock, wired.pipeline.guard._lock]
        assert not [new for old, new in zip(held, now, strict=True) if new is old]
        loop()
        for lock in held:
            lock.release()
    assert attributes(signals.events[0])["loopguard.pattern"] == "hard_loop"
    wiring._after_fork()  # where nothing is wired
    monkeypatch.setattr(runtime, "_current", None)
    runtime._after_fork_in_child()


def test_conversations_are_looked_after_once_there_are_any() -> None:
    with Signals().instrumented() as wired:
        assert wired.claim("search", None, None) is None
        conversations = wired.handwritten
        assert wired.handwritten is conversations
        assert wired.claim("search", None, None) is None
        wired._tick(1)
        wired.after_fork()
        assert wired.handwritten is conversations
