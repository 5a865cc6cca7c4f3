"""The processor that is let in with the first span."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider

from otel_loopguard.runtime import boundary
from otel_loopguard.sdk.doorman import Doorman

if TYPE_CHECKING:
    import pytest
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import Span


class Noted(SpanProcessor):
    """What a processor was called for."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        self.calls.append(f"start {span.name}")

    def on_end(self, span: ReadableSpan) -> None:
        self.calls.append(f"end {span.name}")

    def shutdown(self) -> None:
        self.calls.append("shutdown")


class Rooms:
    """Makes a processor, and counts how often."""

    def __init__(self) -> None:
        self.made: list[Noted] = []

    def make(self) -> Noted:
        time.sleep(0.05)
        self.made.append(Noted())
        return self.made[-1]


def test_it_is_made_with_the_first_span_and_told_everything() -> None:
    rooms, provider = Rooms(), TracerProvider()
    doorman = Doorman(rooms.make)
    provider.add_span_processor(doorman)
    assert rooms.made == []
    with provider.get_tracer("test").start_as_current_span("one"):
        pass
    assert provider.force_flush()
    provider.shutdown()
    (inside,) = rooms.made
    assert inside.calls == ["start one", "end one", "shutdown"]


def test_many_threads_let_one_in() -> None:
    rooms, provider = Rooms(), TracerProvider()
    provider.add_span_processor(Doorman(rooms.make))
    tracer, late = provider.get_tracer("test"), iter(range(16))

    def work() -> None:
        time.sleep(next(late) * 0.01)  # while it is being made, and after
        tracer.start_span("one").end()

    threads = [threading.Thread(target=work) for _ in range(16)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    (inside,) = rooms.made
    assert sorted(inside.calls) == ["end one"] * 16 + ["start one"] * 16


def test_after_the_end_nobody_is_let_in() -> None:
    rooms, provider = Rooms(), TracerProvider()
    doorman = Doorman(rooms.make)
    provider.add_span_processor(doorman)
    assert doorman.active
    doorman.shutdown()
    assert not doorman.active
    provider.get_tracer("test").start_span("one").end()
    assert rooms.made == []


def test_what_cannot_be_made_is_counted_and_not_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails() -> SpanProcessor:
        raise RuntimeError

    monkeypatch.setattr(boundary, "reraise", False)
    provider, before = TracerProvider(), boundary.faults.total()
    provider.add_span_processor(Doorman(fails))
    for _ in range(3):
        provider.get_tracer("test").start_span("one").end()
    assert boundary.faults.total() == before + 1
    boundary.faults.clear()


def test_a_program_without_spans_loads_neither_guard_nor_dialects() -> None:
    program = """
import sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
import otel_loopguard
trace.set_tracer_provider(TracerProvider())
otel_loopguard.instrument()
heavy = ("core.guard", "core.episode", "core.decision", "dialects", "sdk.pipeline")
loaded = lambda: [name for name in heavy if f"otel_loopguard.{name}" in sys.modules]
assert loaded() == [], loaded()
trace.get_tracer("test").start_span("one").end()
assert "dialects" in loaded()
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
