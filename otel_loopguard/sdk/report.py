"""From an observation to telemetry: attributes, one event an utterance, metrics, one log line."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

from opentelemetry import metrics, trace
from opentelemetry._logs import LogRecord, SeverityNumber, get_logger
from opentelemetry.trace import Link, Span, SpanContext, Status, StatusCode

from otel_loopguard.core.guard import Closing
from otel_loopguard.core.model import Observation, RunEnd, Severity, StuckChange, Utterance
from otel_loopguard.sdk import attributes as names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opentelemetry.context import Context

    from otel_loopguard.sdk.scope import Run
    from otel_loopguard.settings import Settings

logger = logging.getLogger("otel_loopguard")

VERSION: Final = "0.1.0"
_ERROR_FROM: Final = {"warning": Severity.WARNING, "critical": Severity.CRITICAL}


class Reporter:
    """Says what the guard found, on the providers that it was made with.

    Args:
        settings: what to emit.
        tracer_provider: where marker spans go; the global one if None.
        meter_provider: where metrics go; the global one if None.
    """

    def __init__(
        self,
        settings: Settings,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
    ) -> None:
        self._settings = settings
        self._error_from = _ERROR_FROM.get(settings.error_status)
        self.tracer = trace.get_tracer(names.SCOPE, VERSION, tracer_provider)
        meter = metrics.get_meter(names.SCOPE, VERSION, meter_provider)
        self._deadlocks = meter.create_counter(
            "loopguard.deadlocks", "{event}", "Deadlock events: one for each time a finding speaks"
        )
        self._stuck = meter.create_up_down_counter(
            "loopguard.stuck_runs", "{run}", "Runs that are stuck right now, each at its worst"
        )
        self._iterations = meter.create_histogram(
            "loopguard.iterations", "{iteration}", "Tool rounds that a run took"
        )
        meter.create_counter(
            "loopguard.interventions", "{intervention}", "Tool calls that were held back"
        ).add(0)

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
            span: the span that shows the step and ends now; None, or one that no longer records,
                makes the event ride on a marker span.
            context: where a marker span hangs.
            conversation_id: the provider's id of the conversation, if known.
        """
        open_span = span if span is not None and span.is_recording() else None
        if open_span is not None:
            open_span.set_attributes(names.step_attributes(seen, run))
        self._tell_agent_span(seen, run)
        for spoken in sorted(seen.utterances, key=lambda each: each.finding.severity):
            agent = seen.step.agent or run.agent
            attributes = names.event_attributes(spoken, run, agent, conversation_id)
            if "span" in self._settings.emit:
                self._on_span(spoken, run, open_span, context, attributes)
            self._beside_span(spoken, agent, attributes, context)
        self.close(Closing(seen.changes, seen.ended))

    def close(self, closing: Closing) -> None:
        """Tell the metrics of runs that got stuck, recovered or went away."""
        if "metric" not in self._settings.emit:
            return
        self._move_gauge(closing.changes)
        self._count_iterations(closing.ended)

    def _tell_agent_span(self, seen: Observation, run: Run) -> None:
        if not run.span.is_recording() or not seen.counted:
            return
        run.span.set_attribute(names.ITERATION, seen.iteration)
        if seen.changes:
            run.span.set_attribute(names.STATUS, seen.status.value)
        for spoken in seen.utterances:
            finding = spoken.finding
            run.span.set_attributes(
                {
                    "loopguard.wasted_calls": finding.wasted_calls,
                    "loopguard.wasted_tokens": finding.wasted_tokens,
                    "loopguard.wasted_seconds": finding.wasted_seconds,
                }
            )

    def _on_span(
        self,
        spoken: Utterance,
        run: Run,
        span: Span | None,
        context: Context | None,
        attributes: names.Attributes,
    ) -> None:
        if span is not None:
            self._mark(spoken, span, attributes)
            return
        first = _first_step(spoken, context)
        marker = self.tracer.start_span(
            names.DEADLOCK,
            context,
            attributes={names.RUN_ID: run.id, **_identity(attributes)},
            links=[first] if first else None,
        )
        self._mark(spoken, marker, attributes)
        marker.end()

    def _mark(self, spoken: Utterance, span: Span, attributes: names.Attributes) -> None:
        severity = spoken.finding.severity
        span.set_attributes(names.finding_attributes(spoken))
        if self._error_from is not None and severity >= self._error_from and _has_no_status(span):
            span.set_status(Status(StatusCode.ERROR, f"deadlock: {spoken.finding.pattern.value}"))
        span.add_event(names.DEADLOCK, attributes)

    def _beside_span(
        self,
        spoken: Utterance,
        agent: str | None,
        attributes: names.Attributes,
        context: Context | None,
    ) -> None:
        finding = spoken.finding
        if "metric" in self._settings.emit:
            labels = names.metric_attributes(finding.pattern.value, finding.severity, agent)
            self._deadlocks.add(1, labels, context)
        if "log" in self._settings.emit:
            self._log(finding.severity, attributes, context)
        if self._settings.log_warnings:
            logger.warning(
                "%s (%s) in %s: %s; wasted %d calls",
                finding.pattern.value,
                finding.severity.label,
                agent or "an agent",
                finding.evidence,
                finding.wasted_calls,
            )

    @staticmethod
    def _log(severity: Severity, attributes: names.Attributes, context: Context | None) -> None:
        critical = severity is Severity.CRITICAL
        get_logger(names.SCOPE, VERSION).emit(
            LogRecord(
                timestamp=time.time_ns(),
                context=context,
                severity_number=SeverityNumber.ERROR if critical else SeverityNumber.WARN,
                severity_text="ERROR" if critical else "WARN",
                event_name=names.DEADLOCK,
                attributes=attributes,
            )
        )

    def _move_gauge(self, changes: Iterable[StuckChange]) -> None:
        for change in changes:
            if change.before is not None:
                self._stuck.add(-1, names.stuck_attributes(change.before))
            if change.after is not None:
                self._stuck.add(1, names.stuck_attributes(change.after))

    def _count_iterations(self, ended: Iterable[RunEnd]) -> None:
        for run in ended:
            outcome = "deadlock" if run.stuck else run.reason
            labels = {names.AGENT_NAME: run.agent or "unknown", "loopguard.outcome": outcome}
            self._iterations.record(run.iterations, labels)


def _identity(attributes: names.Attributes) -> names.Attributes:
    """What makes other tools take a marker span for a part of the agent's trace."""
    kept = (names.TOOL_NAME, names.AGENT_NAME, names.CONVERSATION_ID)
    return {name: attributes[name] for name in kept if name in attributes}


def _has_no_status(span: Span) -> bool:
    """Whether nobody set the span's status yet (a span of another SDK may not say)."""
    status = getattr(span, "status", None)
    return not isinstance(status, Status) or status.status_code is StatusCode.UNSET


def _first_step(spoken: Utterance, context: Context | None) -> Link | None:
    """A link to the loop's first step, where its span is known."""
    reference = spoken.finding.first_span
    if reference is None:
        return None
    trace_id, span_id = reference.split("-")
    flags = trace.get_current_span(context).get_span_context().trace_flags
    return Link(
        SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=False, trace_flags=flags)
    )
