"""From an observation to telemetry: attributes, one event an utterance, metrics, one log line."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

from opentelemetry import trace
from opentelemetry._logs import LogRecord, SeverityNumber, get_logger
from opentelemetry.trace import Link, Span, SpanContext, Status, StatusCode

from otel_loopguard.breaking import questions
from otel_loopguard.core.decision import Verdict
from otel_loopguard.core.model import Observation, Severity, Utterance
from otel_loopguard.core.model import Status as Health
from otel_loopguard.core.recovery import taken
from otel_loopguard.sdk import attributes as names
from otel_loopguard.sdk.meters import Meters
from otel_loopguard.settings import ErrorStatus, Signal

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from otel_loopguard.core.closing import Closing
    from otel_loopguard.core.decision import Decision
    from otel_loopguard.sdk.providers import Providers
    from otel_loopguard.sdk.scope import Run
    from otel_loopguard.settings import Settings

logger = logging.getLogger("otel_loopguard")

_ERROR_FROM: Final = {
    ErrorStatus.WARNING: Severity.WARNING,
    ErrorStatus.CRITICAL: Severity.CRITICAL,
}


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
        self.meters = Meters(settings, providers.meter)
        self._lost = False

    def report(
        self,
        seen: Observation,
        run: Run,
        span: Span | None,
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
        if not self.meters.began:
            self.meters.begin()
        if span is not None:
            span.set_attributes(names.step_attributes(seen))
        if seen.utterances:
            self._speak(seen, run, span, context, conversation_id)
        if seen.changes:
            self.meters.move(seen.changes)
        if (run.foreign or seen.changes or seen.utterances) and seen.counted:
            _tell_agent_span(seen, run)
        if seen.ended:
            self.meters.end(seen.ended)

    def intervene(
        self,
        decision: Decision,
        run: Run,
        action: str | None,
        span: Span | None,
        *,
        context: Context | None = None,
        answer: questions.Verdict | None = None,
    ) -> None:
        """Say what was decided about a call: on its span, in the counter, in the logs.

        Args:
            decision: what was decided; one that lets the call go is not told.
            run: the run.
            action: the tool; None for a request to a model in a loop of no one tool.
            span: the span that shows the call and is open; None if it has ended already.
            context: where the call is.
            answer: how it ended if a human was asked.
        """
        finding = decision.finding
        if finding is None:
            return
        halts = decision.verdict is Verdict.HALT
        climbed = decision.climb or taken(finding.pattern, halts=halts)
        self.meters.begin()
        told = names.intervention_attributes(decision, finding, climbed, run, action)
        if answer is not None:
            told[names.VERDICT] = answer.value
        at_ns = time.time_ns()
        if span is not None:
            if decision.shadow:
                span.set_attribute(names.WOULD_INTERVENE, value=True)
            elif answer is not questions.Verdict.APPROVED:
                span.set_attributes(names.held_attributes(told))
            if self._emits_events:
                span.add_event(names.INTERVENTION, told, at_ns)
            context = trace.set_span_in_context(span, context)
        self.meters.intervened(told, run.agent, context)
        if self._emits_logs:
            self._log(names.INTERVENTION, Severity.WARNING, told, context, at_ns)

    def close(self, closing: Closing) -> None:
        """Tell the metrics of runs that went away."""
        self.meters.move(closing.changes)
        self.meters.end(closing.ended)

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
            span = open_span
            if self._emits_events and span is not None:
                self._mark(spoken, span, attributes, at_ns)
            elif self._emits_events:
                span = self._mark_beside(spoken, run, attributes, context, at_ns)
            # What is counted and logged leads to the span that tells.
            shown = context if span is None else trace.set_span_in_context(span, context)
            self._tell_others(spoken, agent, attributes, shown, at_ns)

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
    ) -> Span:
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
        return marker

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
        self.meters.count(spoken, agent, context)
        if self._emits_logs:
            self._log(names.DEADLOCK, finding.severity, attributes, context, at_ns)
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
        event: str,
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
                event_name=event,
                attributes=attributes,
            )
        )


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
