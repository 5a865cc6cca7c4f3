"""What may block does so in a thread of its own."""

from __future__ import annotations

import itertools
import threading
import time
from typing import TYPE_CHECKING

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

import otel_loopguard
from otel_loopguard.runtime import boundary
from otel_loopguard.sdk import daemon as module
from otel_loopguard.sdk.daemon import Daemon
from tests.signals import Signals

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opentelemetry.sdk.trace import ReadableSpan

PATIENCE_S = 30.0


@pytest.fixture
def daemon(monkeypatch: pytest.MonkeyPatch) -> Daemon:
    """A daemon that hurries."""
    monkeypatch.setattr(module, "SETTLE_S", 0.001)
    monkeypatch.setattr(module, "FLUSH_GAP_S", 0.2)
    monkeypatch.setattr(module, "TICK_S", 0.01)
    return Daemon()


@pytest.fixture
def swallowing() -> Iterator[None]:
    boundary.reraise = False
    yield
    boundary.faults.clear()


class Recorder(SpanExporter):
    """Exports the names of spans into a list, held up by whoever clears `open`."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.threads: set[int] = set()
        self.arrived = threading.Event()
        self.open = threading.Event()
        self.open.set()
        self.fails = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.threads.add(threading.get_ident())
        self.arrived.set()
        self.open.wait(PATIENCE_S)
        if self.fails:
            raise OSError("no route to host")
        self.names += [span.name for span in spans]
        return SpanExportResult.SUCCESS


def provider(exporter: SpanExporter) -> TracerProvider:
    """A provider that by itself exports once an hour."""
    made = TracerProvider(shutdown_on_exit=False)
    made.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=3_600_000))
    return made


@otel_loopguard.tool
def search(query: str) -> str:
    return "nothing found"


def test_a_flush_happens_elsewhere_and_is_given_its_time(daemon: Daemon) -> None:
    flushed = threading.Event()
    seen: list[tuple[int, int]] = []

    def flush(timeout_ms: int) -> None:
        seen.append((threading.get_ident(), timeout_ms))
        flushed.set()

    daemon.flush(flush, 500)
    assert flushed.wait(PATIENCE_S)
    assert [timeout for _, timeout in seen] == [500]
    assert seen[0][0] != threading.get_ident()


def test_flushes_keep_their_distance(daemon: Daemon) -> None:
    times: list[float] = []
    third = threading.Event()

    def flush(_timeout_ms: int) -> None:
        times.append(time.monotonic())
        if len(times) == 3:
            third.set()

    while not third.wait(0.001):
        daemon.flush(flush, 500)
    assert min(b - a for a, b in itertools.pairwise(times)) >= module.FLUSH_GAP_S


def test_what_raises_does_not_stop_the_thread(daemon: Daemon, swallowing: None) -> None:
    flushed, ticked = threading.Event(), threading.Event()

    def fail(_given: int) -> None:
        if not ticked.is_set():
            raise RuntimeError

    def tick(_now: int) -> None:
        if "periodic work" in boundary.faults:
            ticked.set()

    daemon.every_tick(fail)
    daemon.every_tick(tick)
    daemon.flush(fail, 1)
    daemon.flush(lambda _timeout: flushed.set(), 1)
    assert flushed.wait(PATIENCE_S)
    assert ticked.wait(PATIENCE_S)
    assert set(boundary.faults) == {"flush", "periodic work"}


def test_callbacks_come_with_the_time_until_they_are_forgotten(daemon: Daemon) -> None:
    times: list[int] = []
    others = threading.Semaphore(0)

    def note(now_ns: int) -> None:
        times.append(now_ns)

    daemon.every_tick(note)
    daemon.every_tick(note)
    daemon.every_tick(lambda _now: others.release())
    before = time.time_ns()
    daemon.start()
    assert others.acquire(timeout=PATIENCE_S)
    daemon.forget(note)
    daemon.forget(note)
    assert others.acquire(timeout=PATIENCE_S)
    count = len(times)
    assert others.acquire(timeout=PATIENCE_S)
    assert others.acquire(timeout=PATIENCE_S)
    assert len(times) == count > 0
    assert before <= times[0] <= time.time_ns()


def test_it_is_one_daemon_thread(daemon: Daemon) -> None:
    workers = [threading.Thread(target=daemon.start) for _ in range(8)]
    before = [each for each in threading.enumerate() if each.name == "otel-loopguard"]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    after = [each for each in threading.enumerate() if each.name == "otel-loopguard"]
    assert len(after) == len(before) + 1
    assert all(each.daemon for each in after)


def test_another_thread_was_faster(daemon: Daemon) -> None:
    with daemon._lock:
        late = threading.Thread(target=daemon.start)
        late.start()
        daemon.start()
        first = daemon._thread
    late.join()
    assert daemon._thread is first


def test_where_no_thread_can_be_started_any_more(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    daemon.flush(lambda _timeout: None, 1)


def test_a_critical_finding_is_exported_while_the_agent_goes_on() -> None:
    exporter = Recorder()
    signals = Signals()
    signals.tracer_provider = provider(exporter)
    with signals.instrumented(), otel_loopguard.run("finder"):
        for _ in range(4):
            search("x")
        assert not exporter.arrived.is_set()  # a warning can wait
        search("x")
        assert exporter.arrived.wait(PATIENCE_S)
        assert threading.get_ident() not in exporter.threads
    signals.tracer_provider.shutdown()
    assert exporter.names.count("execute_tool search") == 5


def test_an_exporter_that_blocks_does_not_hold_up_the_agent() -> None:
    exporter = Recorder()
    exporter.open.clear()
    signals = Signals()
    signals.tracer_provider = provider(exporter)
    with signals.instrumented(), otel_loopguard.run("finder"):
        for _ in range(5):
            search("x")
        assert exporter.arrived.wait(PATIENCE_S)
        assert [search("x") for _ in range(20)] == ["nothing found"] * 20
        assert exporter.names == []  # it is held up still
        exporter.open.set()
    signals.tracer_provider.shutdown()


@pytest.mark.parametrize("setting", [{"flush": False}, {"hard_loop_critical": 9}])
def test_no_flush_without_a_cause(
    setting: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(module.daemon, "flush", lambda *given: asked.append(given))
    signals = Signals()
    with signals.instrumented(**setting), otel_loopguard.run("finder"):
        for _ in range(6):
            search("x")
    assert asked == []


def test_a_critical_finding_flushes_what_is_emitted_spans_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def asked(emit: str) -> list[object]:
        flushes: list[object] = []
        monkeypatch.setattr(module.daemon, "flush", lambda flush, _: flushes.append(flush))
        with signals.instrumented(emit=emit), otel_loopguard.run("finder"):
            for _ in range(6):
                search("x")
        return flushes

    signals = Signals()
    spans, counts, logs = (provider.force_flush for provider in signals.providers if provider)
    assert asked("span") == [spans]
    assert asked("span,metric") == [spans, counts]
    assert asked("span,log") == [spans, logs]


def test_a_provider_without_a_flush_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(module.daemon, "flush", lambda *given: asked.append(given))
    signals = Signals()
    monkeypatch.delattr(TracerProvider, "force_flush")
    monkeypatch.delattr(MeterProvider, "force_flush")
    with signals.instrumented(), otel_loopguard.run("finder"):
        for _ in range(6):
            search("x")
    assert asked == []
    assert signals.severities == ["warning", "critical"]
