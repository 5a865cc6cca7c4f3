"""LoopGuardSpanProcessor: watches the spans that others make, and marks those in a stuck run."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, SpanProcessor
from opentelemetry.sdk.trace import Span as SdkSpan

from otel_loopguard import runtime
from otel_loopguard.core.model import Status
from otel_loopguard.dialects import Role, Start, read, starts
from otel_loopguard.dialects.asked import AskedCalls
from otel_loopguard.dialects.calls import Call, met_call, opens_run, tells
from otel_loopguard.dialects.view import SpanView
from otel_loopguard.runtime import Lazy, guarded
from otel_loopguard.sdk import attributes as names
from otel_loopguard.sdk.pipeline import Pipeline
from otel_loopguard.sdk.providers import Providers
from otel_loopguard.sdk.scope import (
    Run,
    action_of,
    enter_run,
    inner,
    live_spans,
    run_below,
    run_of,
)

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from otel_loopguard.sdk.scope import Action

newest_model_span: ContextVar[trace.Span | None] = ContextVar("loopguard-model-span", default=None)
"""The foreign model span that was started last in this context: not all are made current."""
newest_model_call: ContextVar[Action | None] = ContextVar("loopguard-model-call", default=None)
"""The model call of ours that began last in this context: some show one when it is over."""


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
        made = pipeline or _make_pipeline(tracer_provider)
        self.active = made is not None
        if made is not None:
            self._pipeline = made
        self._ours: object = names.SCOPE  # no scope yet
        self._value_limit = SpanLimits().max_span_attribute_length

    @Lazy
    def _asked(self) -> AskedCalls:
        return AskedCalls(self._pipeline.guard.fingerprinter)

    def on_start(self, span: SdkSpan, parent_context: Context | None = None) -> None:
        """Find the run of someone else's span; say on the span if that run is stuck."""
        if span.instrumentation_scope is not self._ours and not self._is_ours(span):
            self._place(span, parent_context)

    def on_end(self, span: ReadableSpan) -> None:
        """Read what someone else's span shows, and let the guard have it."""
        if span.instrumentation_scope is not self._ours and not self._is_ours(span):
            self._take(span)

    def shutdown(self) -> None:
        """Do nothing more."""
        if self.active:
            self.active = False
            self._pipeline.close()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing is held back here."""
        return True

    def _is_ours(self, span: ReadableSpan) -> bool:
        """Whether a span is one of our own: who has made it knows its run, and tells of it."""
        scope = span.instrumentation_scope
        if scope is None or scope.name != names.SCOPE:
            return False
        self._ours = scope  # all spans of a tracer have the same one
        return True

    @guarded("processor.on_start")
    def _place(self, span: SdkSpan, parent_context: Context | None) -> None:
        scope = span.instrumentation_scope
        where = span.context
        if not self.active or where is None:
            return
        outer = run_of(parent_context) or _run_of_parent(span)
        current = run_of()
        outer = inner(outer, current) if outer is not None and current is not None else outer
        start = starts(span.name, scope.name if scope else "", span.attributes or {})
        run = _opened_run(span, start, outer)
        call = _met_call(span, start, _call_around(span) if run is outer else None)
        if run is None:
            run = Run(trace.format_span_id(where.span_id), scoped=False)
        live_spans.add(where.span_id, run, call)
        if outer is None:
            return  # a run that begins is not stuck
        is_stuck = self._pipeline.guard.is_stuck
        if is_stuck(run.id) or (outer is not run and is_stuck(outer.id)):
            span.set_attribute(names.STATUS, Status.DEADLOCKED.value)

    @guarded("processor.on_end")
    def _take(self, span: ReadableSpan) -> None:
        where = span.context
        live = live_spans.pop(where.span_id, None) if where is not None else None
        if not self.active or where is None or live is None:
            return
        run, call = live
        if names.RUN_ID not in (span.attributes or {}):
            self._read(span, run, call, where)
        elif call is not None:
            call.told = True  # by the hook that has taken this span
        if trace.format_span_id(where.span_id) == run.id:
            self._pipeline.end_run(run, "closed")

    def _read(
        self, span: ReadableSpan, run: Run, call: Call | None, where: trace.SpanContext
    ) -> None:
        view = _view(span, where)
        reading = read(view, value_limit=self._value_limit)
        if reading is None or not tells(reading, run.id, call, where.span_id):
            return
        outer = run.parent if reading.role is Role.AGENT else run
        if outer is None:
            return  # nobody's sub-agent
        parent = trace.set_span_in_context(trace.NonRecordingSpan(where), otel_context.Context())
        context = enter_run(outer, parent)
        conversation = reading.conversation_id
        for seen in self._asked.take(outer.id, reading, view):
            self._pipeline.see(outer, seen, None, context=context, conversation_id=conversation)


@guarded("start of the processor")
def _make_pipeline(tracer_provider: trace.TracerProvider | None) -> Pipeline:
    return Pipeline(runtime.get(), Providers(tracer_provider))


def _run_of_parent(span: SdkSpan) -> Run | None:
    """The run of a span's parent in this process; what comes from elsewhere starts a run here."""
    parent = span.parent
    return None if parent is None or parent.is_remote else run_below(parent)


def _call_around(span: SdkSpan) -> Call | None:
    around = live_spans.get(span.parent.span_id) if span.parent is not None else None
    return None if around is None else around[1]


def _opened_run(span: SdkSpan, start: Start | None, outer: Run | None) -> Run | None:
    """The run of a foreign span: that of an agent's outermost span is its own."""
    if start is None or not opens_run(start, outer):
        return outer
    run_id = trace.format_span_id(span.get_span_context().span_id)
    parent = outer if outer is not None and outer.scoped else None
    return Run(run_id, start.name, foreign=True, span=span, parent=parent)


def _met_call(span: SdkSpan, start: Start | None, around: Call | None) -> Call | None:
    """The call that a foreign span is in; a call of ours that it shows is told by its hook."""
    action = action_of()
    call = met_call(start, span.get_span_context().span_id, around)
    if start is None or call is None or start.role is Role.AGENT:
        if action is not None and start is None:
            action.adopt(span, None, span.name)
        return call
    if start.role is Role.MODEL:
        newest_model_span.set(span)
        newest = newest_model_call.get()
        if action is None and newest is not None and (span.start_time or 0) <= newest.start_ns:
            action = newest  # the span starts now, and says that it did before the call
    if action is not None and action.adopt(span, start.role, start.name):
        call.told = True
    return call


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
        ids=(where.trace_id, where.span_id),
    )
