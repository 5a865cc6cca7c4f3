"""Spans of every dialect that went wrong, through the real processor of a real provider."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind, StatusCode

from otel_loopguard.core.model import Pattern
from otel_loopguard.runtime import Runtime
from otel_loopguard.sdk.pipeline import Pipeline
from otel_loopguard.sdk.processor import LoopGuardSpanProcessor
from otel_loopguard.sdk.providers import Providers
from otel_loopguard.sdk.scope import MAX_LIVE_SPANS, live_spans
from otel_loopguard.settings import from_env
from tests.dialects import recorded
from tests.fuzz import junk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.sdk.trace import ReadableSpan

    from tests.dialects.recorded import Recorded

DEADLOCK = "loopguard.deadlock"
ALWAYS = {
    "loopguard.pattern": str,
    "loopguard.severity": str,
    "loopguard.evidence": str,
    "loopguard.suggested_action": str,
    "loopguard.recovery_level": int,
    "loopguard.iteration": int,
    "loopguard.period": int,
    "loopguard.repeats": int,
    "loopguard.wasted_calls": int,
    "loopguard.wasted_tokens": int,
    "loopguard.wasted_seconds": float,
    "loopguard.finding_id": str,
    "loopguard.report_no": int,
    "loopguard.run_id": str,
}
MAX_RUNS = 40
MAX_DEPTH = 6
PATTERNS = {pattern.value for pattern in Pattern}


class Checking(SpanExporter):
    """Looks at each event of ours and keeps nothing else.

    Attributes:
        spoken: how many events there were.
        broken: those that lack something: an exporter that raises is not heard.
    """

    def __init__(self) -> None:
        self.spoken = 0
        self.broken: list[dict[str, Any]] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        for span in spans:
            for event in span.events:
                if event.name == DEADLOCK and span.name == DEADLOCK:
                    self.spoken += 1
                    said = dict(event.attributes or {})
                    if not _is_whole(said):
                        self.broken.append(said)
        return SpanExportResult.SUCCESS


def _is_whole(said: dict[str, Any]) -> bool:
    return (
        {name: type(said.get(name)) for name in ALWAYS} == ALWAYS
        and said["loopguard.pattern"] in PATTERNS
        and all(said[name] for name, kind in ALWAYS.items() if kind is str)
        and said["loopguard.wasted_seconds"] >= 0
    )


class Spans:
    """A provider with our processor, and an application that starts and ends spans at random."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._templates = [
            [span for span in recorded.spans(name) if span.view.attributes] for name in recorded.ALL
        ]
        self.exporter = Checking()
        provider = TracerProvider(shutdown_on_exit=False)
        runtime = Runtime(from_env({}, max_runs=MAX_RUNS, log_warnings=False))
        self._pipeline = Pipeline(runtime, Providers(provider))
        self._processor = LoopGuardSpanProcessor(pipeline=self._pipeline)
        provider.add_span_processor(self._processor)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self._provider = provider
        self._open: list[trace.Span] = []

    def run(self, count: int) -> None:
        """Start so many spans."""
        started = 0
        while started < count:
            task = self._random.choice(self._templates)
            rate = self._random.choice([0.0, 0.02, 0.3])
            for span in task * self._random.choice([1, 2, 8]):
                self._start(span, rate)
                started += 1
                while len(self._open) > self._random.randrange(MAX_DEPTH):
                    self._end(self._random.choice([-1, -1, -1, 0]))
        while self._open:
            self._end(-1)

    def weight(self) -> int:
        """The memory that is held; fails where there is more of something than there may be."""
        assert len(self._pipeline.guard._runs) <= MAX_RUNS
        assert len(live_spans) <= MAX_LIVE_SPANS
        asked = self._processor._asked
        return junk.weight([self._pipeline.guard._runs, asked.__dict__])

    def close(self) -> None:
        """Let go of everything."""
        self._provider.shutdown()

    def _start(self, span: Recorded, rate: float) -> None:
        random, view = self._random, span.view
        name = junk.mangled(random, view.name) if random.random() < rate else view.name
        early = {key: self._mutated(view.attributes[key], rate) for key in span.at_start}
        late = {key: held for key, held in view.attributes.items() if key not in early}
        parent = random.choice(self._open) if self._open and random.random() < 0.9 else None
        made = self._provider.get_tracer(view.scope).start_span(
            name,
            trace.set_span_in_context(parent) if parent is not None else None,
            kind=SpanKind[view.kind.upper()],
            attributes=early,
            start_time=random.choice([view.start_ns, None, 0, 2**62]) if rate else view.start_ns,
        )
        for key, held in late.items():
            made.set_attribute(key, self._mutated(held, rate))
        for event, held in view.events:
            made.add_event(event, {key: self._mutated(each, rate) for key, each in held.items()})
        if view.is_error:
            made.set_status(StatusCode.ERROR)
        self._open.append(made)

    def _mutated(self, held: Any, rate: float) -> Any:
        random = self._random
        if random.random() >= rate:
            return held
        if isinstance(held, str) and random.random() < 0.5:
            return junk.mangled(random, held)
        return random.choice([*junk.TEXTS, 0, -1, 2**63 - 1, 1e308, True, ["a", "b"], [1, 2], []])

    def _end(self, at: int) -> None:
        random, span = self._random, self._open.pop(at)
        if random.random() < 0.01:
            return  # never ends
        if random.random() < 0.05:
            span.record_exception(ValueError("kaboom"))
        span.end(random.choice([None, 1, 2**62]) if random.random() < 0.05 else None)
