"""LoopGuardSpanProcessor: watches the spans that others make, and marks those in a stuck run."""

from __future__ import annotations

from collections import OrderedDict
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, SpanProcessor
from opentelemetry.sdk.trace import Span as SdkSpan

from otel_loopguard import runtime
from otel_loopguard.core.model import Sighting, SpanView, Status
from otel_loopguard.dialects import Reading, Role, read, starts
from otel_loopguard.runtime import guarded
from otel_loopguard.sdk import attributes as names
from otel_loopguard.sdk.daemon import daemon
from otel_loopguard.sdk.pipeline import Pipeline
from otel_loopguard.sdk.scope import Run, action_of, enter_run, live_spans, reference, run_of

if TYPE_CHECKING:
    from opentelemetry.context import Context

MAX_ROUNDS: Final = 1_000

newest_model_span: ContextVar[trace.Span | None] = ContextVar("loopguard-model-span", default=None)
"""The foreign model span that was started last in this context: not all are made current."""


class LoopGuardSpanProcessor(SpanProcessor):
    """Detects loops on the spans of any instrumentation that this package can read.

    One line is enough: `provider.add_span_processor(LoopGuardSpanProcessor())`. It changes no span
    that has ended; what it finds there goes on a marker span `loopguard.deadlock` beside it.

    Args:
        tracer_provider: the provider that marker spans are made with; the global one if None. Give
            the provider that this processor is added to when that is not the global one.
        pipeline: for our own use: the pipeline of the instrumentor.
    """

    def __init__(
        self,
        tracer_provider: trace.TracerProvider | None = None,
        *,
        pipeline: Pipeline | None = None,
    ) -> None:
        self.active = True
        self._pipeline = pipeline or Pipeline(runtime.get(), tracer_provider)
        self._value_limit = SpanLimits().max_span_attribute_length
        self._rounds: OrderedDict[tuple[str, str], str] = OrderedDict()
        daemon.every_tick(self._pipeline.expire)

    @guarded("processor.on_start")
    def on_start(self, span: SdkSpan, parent_context: Context | None = None) -> None:
        """Find the span's run; say on the span whether that run is stuck."""
        where = span.context
        if not self.active or where is None:
            return
        run = run_of(parent_context) or self._run_of_parent(span)
        scope = span.instrumentation_scope
        if scope is None or scope.name != names.SCOPE:
            run = self._meet(span, run, scope.name if scope else "")
        if run is None:
            run = Run(trace.format_span_id(where.span_id), scoped=False)
        live_spans.add(where.span_id, run)
        if self._pipeline.guard.is_stuck(run.id):
            span.set_attribute(names.STATUS, Status.DEADLOCKED.value)

    @guarded("processor.on_end")
    def on_end(self, span: ReadableSpan) -> None:
        """Read what the span shows, and let the guard have it."""
        where = span.context
        run = live_spans.pop(where.span_id) if where is not None else None
        attributes = span.attributes or {}
        if attributes.get(names.SEVERITY) == "critical":
            self._flush()
        if not self.active or run is None or where is None:
            return
        scope = span.instrumentation_scope
        if scope is not None and scope.name == names.SCOPE:
            return
        if names.RUN_ID not in attributes:
            self._read(span, run, where)
        if trace.format_span_id(where.span_id) == run.id:
            self._pipeline.end_run(run, "closed")

    def shutdown(self) -> None:
        """Do nothing more."""
        self.active = False
        daemon.forget(self._pipeline.expire)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing is held back here."""
        return True

    @staticmethod
    def _run_of_parent(span: SdkSpan) -> Run | None:
        return live_spans.get(span.parent.span_id) if span.parent is not None else None

    @staticmethod
    def _meet(span: SdkSpan, run: Run | None, scope: str) -> Run | None:
        """Someone else's span starts: it may open a run, or show a call that we have under way."""
        start = starts(span.name, scope, span.attributes or {})
        if start is None:
            return run
        if start.role is Role.AGENT:
            outer = run if run is not None and run.scoped else None
            if outer is not None and (not outer.foreign or start.name in (None, outer.agent)):
                return outer  # one more layer of the same agent
            run_id = trace.format_span_id(span.get_span_context().span_id)
            return Run(run_id, start.name, foreign=True, span=span, parent=outer)
        if start.role is Role.MODEL:
            newest_model_span.set(span)
        action = action_of()
        if action is not None:
            action.adopt(span, start.role, start.name)
        return run

    def _read(self, span: ReadableSpan, run: Run, where: trace.SpanContext) -> None:
        reading = read(_view(span, where), value_limit=self._value_limit)
        if reading is None:
            return
        if reading.role is Role.MODEL:
            self._note_round(run, reading, trace.format_span_id(where.span_id))
        if reading.role is Role.AGENT:
            if run.parent is None:
                return
            run = run.parent
        parent = trace.set_span_in_context(trace.NonRecordingSpan(where), otel_context.Context())
        context = enter_run(run, parent)
        for sighting in reading.sightings:
            self._pipeline.see(
                run,
                self._complete(sighting, run, where),
                None,
                context=context,
                conversation_id=reading.conversation_id,
            )

    def _note_round(self, run: Run, reading: Reading, round_id: str) -> None:
        """The calls that one response asked for are one round."""
        for asked in reading.asked:
            if asked.call_id is not None:
                self._rounds[run.id, asked.call_id] = round_id
        while len(self._rounds) > MAX_ROUNDS:
            self._rounds.popitem(last=False)

    def _complete(self, sighting: Sighting, run: Run, where: trace.SpanContext) -> Sighting:
        """Add what only the processor knows: the span's reference and the round."""
        in_round = self._rounds.get((run.id, sighting.call_id)) if sighting.call_id else None
        return replace(
            sighting,
            span=reference(trace.NonRecordingSpan(where)),
            round=sighting.round or in_round,
        )

    def _flush(self) -> None:
        provider = self._pipeline.tracer_provider or trace.get_tracer_provider()
        flushable = getattr(provider, "force_flush", None)
        if self._pipeline.settings.flush and flushable is not None:
            daemon.flush(flushable, self._pipeline.settings.flush_timeout_ms)


def _view(span: ReadableSpan, where: trace.SpanContext) -> SpanView:
    return SpanView(
        name=span.name,
        kind=span.kind.name.lower(),
        trace_id=trace.format_trace_id(where.trace_id),
        span_id=trace.format_span_id(where.span_id),
        parent_id=trace.format_span_id(span.parent.span_id) if span.parent else None,
        scope=span.instrumentation_scope.name if span.instrumentation_scope else "",
        start_ns=span.start_time or 0,
        end_ns=span.end_time or 0,
        is_error=not span.status.is_ok,
        attributes=span.attributes or {},
        events=tuple((event.name, event.attributes or {}) for event in span.events),
    )
