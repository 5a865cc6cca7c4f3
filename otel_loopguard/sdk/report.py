"""From an observation to telemetry: attributes, one event an utterance, metrics, one log line."""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from opentelemetry import metrics, trace
from opentelemetry._logs import LoggerProvider, LogRecord, SeverityNumber, get_logger
from opentelemetry.trace import Link, Span, SpanContext, Status, StatusCode

from otel_loopguard.core.model import Observation, RunEnd, Severity, StuckChange, Utterance
from otel_loopguard.core.model import Status as Health
from otel_loopguard.sdk import attributes as names
from otel_loopguard.settings import ErrorStatus, Signal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opentelemetry.context import Context

    from otel_loopguard.core.guard import Closing
    from otel_loopguard.sdk.scope import Run
    from otel_loopguard.settings import Settings

logger = logging.getLogger("otel_loopguard")

_ERROR_FROM: Final = {
    ErrorStatus.WARNING: Severity.WARNING,
    ErrorStatus.CRITICAL: Severity.CRITICAL,
}


_instruments: Final = threading.RLock()
"""Held while an instrument is used, and across a fork. The SDK's instruments have locks that nobody
renews in a forked child: one that another thread held would stop the child's agent for good."""

if hasattr(os, "register_at_fork"):  # pragma: no branch - not on Windows
    os.register_at_fork(
        before=_instruments.acquire,
        after_in_parent=_instruments.release,
        after_in_child=_instruments.release,
    )


class Providers(NamedTuple):
    """Where spans, metrics and logs go; the global provider where None."""

    tracer: trace.TracerProvider | None = None
    meter: metrics.MeterProvider | None = None
    logger: LoggerProvider | None = None


GLOBAL: Final = Providers()


class Reporter:
    """Says what the guard found.

    Args:
        settings: what to emit.
        providers: where it goes.
    """

    def __init__(self, settings: Settings, providers: Providers) -> None:
        self._error_from = _ERROR_FROM.get(settings.error_status)
        self._emits_events = Signal.SPAN in settings.emit
        self._emits_logs = Signal.LOG in settings.emit
        self._log_warnings = settings.log_warnings
        self._logger_provider = providers.logger
        self.tracer = trace.get_tracer(names.SCOPE, names.VERSION, providers.tracer)
        if Signal.METRIC in settings.emit:
            meter = metrics.get_meter(names.SCOPE, names.VERSION, providers.meter)
        else:
            meter = metrics.NoOpMeter(names.SCOPE)
        self._deadlocks = meter.create_counter(
            "loopguard.deadlocks", "{event}", "Deadlock events: one for each time a finding speaks"
        )
        self._stuck = meter.create_up_down_counter(
            "loopguard.stuck_runs", "{run}", "Runs that are stuck right now, each at its worst"
        )
        self._iterations = meter.create_histogram(
            "loopguard.iterations", "{iteration}", "Tool rounds that a run took"
        )
        self._interventions = meter.create_counter(
            "loopguard.interventions", "{intervention}", "Tool calls that were held back"
        )
        self._began = False
        self._lost = False

    def report(
        self,
        seen: Observation,
        run: Run,
        span: Span | None,
        *,
        context: Context | None = None,
        conversation_id: str | None = None,
    ) -> None:
        """Put an observation on the span that shows it.

        Args:
            seen: the guard's answer.
            run: the run it belongs to.
            span: the span that shows the step and is about to end; if it has ended already (None),
                the event rides on a marker span.
            context: where a marker span hangs.
            conversation_id: the provider's id of the conversation, if known.
        """
        if not self._began:
            self._began = True
            with _instruments:
                self._interventions.add(0)  # alerts need the series before its first increment
        if span is not None:
            span.set_attributes(names.step_attributes(seen))
        if seen.utterances:
            self._speak(seen, run, span, context, conversation_id)
        if seen.changes:
            self._move_gauge(seen.changes)
        if seen.counted and (run.foreign or seen.changes or seen.utterances):
            _tell_agent_span(seen, run)
        if seen.ended:
            self._count_iterations(seen.ended)

    def close(self, closing: Closing) -> None:
        """Tell the metrics of runs that went away."""
        self._move_gauge(closing.changes)
        self._count_iterations(closing.ended)

    def _speak(
        self,
        seen: Observation,
        run: Run,
        open_span: Span | None,
        context: Context | None,
        conversation_id: str | None,
    ) -> None:
        """Say each utterance once: on one span, in the counter, in the logs."""
        for spoken in sorted(seen.utterances, key=lambda each: each.finding.severity):
            at_ns = seen.step.end_ns or time.time_ns()
            agent = seen.step.agent or run.agent
            attributes = names.event_attributes(spoken, run, agent, conversation_id)
            if self._emits_events and open_span is not None:
                self._mark(spoken, open_span, attributes, at_ns)
            elif self._emits_events:
                self._mark_beside(spoken, run, attributes, context, at_ns)
            self._tell_others(spoken, agent, attributes, context, at_ns)

    def _mark(
        self, spoken: Utterance, span: Span, attributes: names.Attributes, at_ns: int
    ) -> None:
        """Put the event on a span that is open."""
        severity = spoken.finding.severity
        span.set_attributes(names.finding_attributes(spoken))
        if self._error_from is not None and severity >= self._error_from and _has_no_status(span):
            span.set_status(Status(StatusCode.ERROR, f"deadlock: {spoken.finding.pattern.value}"))
        span.add_event(names.DEADLOCK, attributes, at_ns)

    def _mark_beside(
        self,
        spoken: Utterance,
        run: Run,
        attributes: names.Attributes,
        context: Context | None,
        at_ns: int,
    ) -> None:
        """Put the event on a marker span, since the span that shows the step has ended."""
        around = trace.get_current_span(context).get_span_context()
        first = _first_step(spoken, around)
        marker = self.tracer.start_span(
            names.DEADLOCK,
            context,
            attributes={
                names.RUN_ID: run.id,
                names.STATUS: Health.DEADLOCKED.value,
                **_identity(attributes),
            },
            links=[first] if first else None,
            start_time=at_ns,
        )
        if around.trace_flags.sampled and not marker.is_recording() and not self._lost:
            self._lost = True
            logger.warning(
                "otel_loopguard: a deadlock cannot be put on the trace, since its spans come from "
                "another provider: pass that as LoopGuardSpanProcessor(tracer_provider=...)"
            )
        self._mark(spoken, marker, attributes, at_ns)
        marker.end(at_ns)

    def _tell_others(
        self,
        spoken: Utterance,
        agent: str | None,
        attributes: names.Attributes,
        context: Context | None,
        at_ns: int,
    ) -> None:
        """Count the utterance and write it down."""
        finding = spoken.finding
        labels = names.metric_attributes(finding.pattern.value, finding.severity, agent)
        with _instruments:
            self._deadlocks.add(1, labels, context)
        if self._emits_logs:
            self._log(finding.severity, attributes, context, at_ns)
        if self._log_warnings:
            logger.warning(
                "%s (%s) in %s: %s; wasted %d calls",
                finding.pattern.value,
                finding.severity.label,
                agent or "an agent",
                finding.evidence,
                finding.wasted_calls,
            )

    def _log(
        self,
        severity: Severity,
        attributes: names.Attributes,
        context: Context | None,
        at_ns: int,
    ) -> None:
        critical = severity is Severity.CRITICAL
        get_logger(names.SCOPE, names.VERSION, self._logger_provider).emit(
            LogRecord(
                timestamp=at_ns,
                context=context,
                severity_number=SeverityNumber.ERROR if critical else SeverityNumber.WARN,
                severity_text="ERROR" if critical else "WARN",
                event_name=names.DEADLOCK,
                attributes=attributes,
            )
        )

    def _move_gauge(self, changes: Iterable[StuckChange]) -> None:
        with _instruments:
            for change in changes:
                if change.before is not None:
                    self._stuck.add(-1, names.stuck_attributes(change.before))
                if change.after is not None:
                    self._stuck.add(1, names.stuck_attributes(change.after))

    def _count_iterations(self, ended: Iterable[RunEnd]) -> None:
        for run in ended:
            outcome = "deadlock" if run.stuck else run.reason
            labels = {names.AGENT_NAME: run.agent or "unknown", "loopguard.outcome": outcome}
            with _instruments:
                self._iterations.record(run.iterations, labels)


def _tell_agent_span(seen: Observation, run: Run) -> None:
    """Keep the totals on the agent's span up to date.

    How many iterations there were is said at the end where the span is ours; nobody tells us when
    one of somebody else is about to end.
    """
    span = run.span
    if not span.is_recording():
        return
    if run.foreign:
        span.set_attribute(names.ITERATION, seen.iteration)
    if seen.changes:
        span.set_attribute(names.STATUS, seen.status.value)
    for spoken in seen.utterances:
        span.set_attributes(names.waste_attributes(spoken.finding))


def _identity(attributes: names.Attributes) -> names.Attributes:
    """What makes other tools take a marker span for a part of the agent's trace."""
    kept = (names.TOOL_NAME, names.AGENT_NAME, names.CONVERSATION_ID)
    return {name: attributes[name] for name in kept if name in attributes}


def _has_no_status(span: Span) -> bool:
    """Whether nobody set the span's status yet (a span of another SDK may not say)."""
    status = getattr(span, "status", None)
    return not isinstance(status, Status) or status.status_code is StatusCode.UNSET


def _first_step(spoken: Utterance, around: SpanContext) -> Link | None:
    """A link to the loop's first step, where its span is known."""
    first = spoken.finding.first_span
    if first is None:
        return None
    where = SpanContext(*first, is_remote=False, trace_flags=around.trace_flags)
    return Link(where)
