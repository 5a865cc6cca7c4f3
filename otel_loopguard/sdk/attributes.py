"""The telemetry contract: which attribute says what. The README documents it, a test pins it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from opentelemetry.util.types import AttributeValue

from otel_loopguard.core.model import (
    Finding,
    Kind,
    Observation,
    Outcome,
    Severity,
    Status,
    Utterance,
)
from otel_loopguard.dialects import own

if TYPE_CHECKING:
    from otel_loopguard.core.decision import Decision
    from otel_loopguard.core.recovery import Climb
    from otel_loopguard.sdk.scope import Run

SCOPE: Final = own.SCOPE
VERSION: Final = "0.1.0"
DEADLOCK: Final = own.DEADLOCK
PATTERN: Final = "loopguard.pattern"
SEVERITY: Final = "loopguard.severity"
STATUS: Final = "loopguard.status"
RUN_ID: Final = own.RUN_ID
ITERATION: Final = own.ITERATION
ARGS_FINGERPRINT: Final = own.ARGS_FINGERPRINT
SPAN_ORIGIN: Final = own.SPAN_ORIGIN
MESSAGES: Final = own.MESSAGES
USER_TURN: Final = own.USER_TURN
END_REASON: Final = "loopguard.end_reason"
INTERVENTION: Final = "loopguard.intervention"
WOULD_INTERVENE: Final = "loopguard.would_intervene"
LEVEL: Final = "loopguard.recovery_level"
MODE: Final = "loopguard.mode"
FINDING_ID: Final = "loopguard.finding_id"
ESCALATION: Final = "loopguard.escalation"
VERDICT: Final = "loopguard.verdict"

OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_RESULT: Final = "gen_ai.tool.call.result"
AGENT_NAME: Final = "gen_ai.agent.name"
CONVERSATION_ID: Final = "gen_ai.conversation.id"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
RESPONSE_ID: Final = "gen_ai.response.id"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
ERROR_TYPE: Final = own.ERROR_TYPE
OUTPUT_MESSAGES: Final = own.OUTPUT_MESSAGES

Attributes = dict[str, AttributeValue]

# Before Python 3.12 it takes long to read a member from its enum.
_MODEL: Final = Kind.MODEL
_TOOL: Final = Kind.TOOL
_OUTCOME: Final = own.OUTCOME
_RESULT_HASH: Final = own.RESULT_HASH
_RESULT_LENGTH: Final = own.RESULT_LENGTH
_TEXTS: Final[dict[Outcome | Status, str]] = {
    **{outcome: outcome.value for outcome in Outcome},
    **{status: status.value for status in Status},
}
"""What a span says for them; to read a member's value takes several times as long."""

REMINDED: Final[Attributes] = {INTERVENTION: "reinject_constraints", LEVEL: 1}
"""What the span of a request says in which the constraints are said again by their own clock."""
RECOVERY_LEVEL: Final = 1
"""The rung of the recovery ladder that the suggested action stands on: the first."""


def step_attributes(seen: Observation) -> Attributes:
    """What a span says at the end of the step that it shows; what was known before it says already.

    A model span says how its run is doing. An agent's own span shows a step of its parent: it says
    what the step was, but how it is doing is about its own run.
    """
    step = seen.step
    kind = step.kind
    if kind is _MODEL:
        return {ITERATION: seen.iteration, STATUS: seen.status.value}
    attributes: Attributes = {
        "loopguard.consecutive_same_tool": seen.consecutive_same_tool,
        "loopguard.same_args_seen": seen.same_args_seen,
        "loopguard.repeat_count": seen.repeat_count,
        _OUTCOME: _TEXTS[step.outcome],
        ITERATION: seen.iteration,
        STATUS: _TEXTS[seen.status],
    }
    if kind is not _TOOL:
        del attributes[ITERATION], attributes[STATUS]
        if step.args_key is not None:
            attributes[ARGS_FINGERPRINT] = step.args_key
    if step.result_key is not None:
        attributes[_RESULT_HASH] = step.result_key
    if step.size is not None:
        attributes[_RESULT_LENGTH] = step.size
    if step.masked_key is not None:
        attributes[own.RESULT_MASKED_HASH] = step.masked_key
    return attributes


def finding_attributes(spoken: Utterance) -> Attributes:
    """What the span that carries an event says too: some backends search span attributes only."""
    return {
        DEADLOCK: True,
        PATTERN: spoken.finding.pattern.value,
        SEVERITY: spoken.finding.severity.label,
    }


def waste_attributes(finding: Finding) -> Attributes:
    """What a loop has cost so far."""
    return {
        "loopguard.wasted_calls": finding.wasted_calls,
        "loopguard.wasted_tokens": finding.wasted_tokens,
        "loopguard.wasted_seconds": finding.wasted_seconds,
    }


def event_attributes(
    spoken: Utterance, run: Run, agent: str | None, conversation_id: str | None
) -> Attributes:
    """The event's attributes. It stands for itself: some backends show it without its span."""
    finding = spoken.finding
    attributes: Attributes = {
        PATTERN: finding.pattern.value,
        SEVERITY: finding.severity.label,
        "loopguard.evidence": finding.evidence,
        "loopguard.suggested_action": finding.suggested_action,
        LEVEL: RECOVERY_LEVEL,
        ITERATION: spoken.iteration,
        "loopguard.period": finding.period,
        "loopguard.repeats": finding.repeats,
        **waste_attributes(finding),
        FINDING_ID: spoken.finding_id,
        "loopguard.report_no": spoken.report_no,
        RUN_ID: run.id,
    }
    optional = {
        "loopguard.first_span_id": finding.first_span and f"{finding.first_span[1]:016x}",
        ARGS_FINGERPRINT: finding.args_key,
        TOOL_NAME: finding.action,
        AGENT_NAME: agent,
        CONVERSATION_ID: conversation_id,
    }
    attributes.update({name: value for name, value in optional.items() if value is not None})
    return attributes


def intervention_attributes(
    decision: Decision, finding: Finding, climbed: Climb, run: Run, action: str | None
) -> Attributes:
    """The attributes of the event that says what was done about a loop."""
    attributes: Attributes = {
        PATTERN: finding.pattern.value,
        SEVERITY: finding.severity.label,
        INTERVENTION: climbed.rung.remedy.value,
        LEVEL: int(climbed.rung.level),
        "loopguard.intervention_no": decision.nth,
        MODE: decision.mode.value,
        "loopguard.repeats": finding.repeats,
        FINDING_ID: decision.finding_id,
        RUN_ID: run.id,
    }
    if action is not None:
        attributes[TOOL_NAME] = action
    if climbed.skipped:
        attributes["loopguard.skipped_interventions"] = [each.value for each in climbed.skipped]
    if run.agent is not None:
        attributes[AGENT_NAME] = run.agent
    return attributes


def escalation_attributes(
    decision: Decision, finding: Finding, run: Run, action: str | None
) -> Attributes:
    """What the span of a question to a human says from its start on; never what it is about."""
    attributes: Attributes = {
        RUN_ID: run.id,
        PATTERN: finding.pattern.value,
        SEVERITY: finding.severity.label,
        FINDING_ID: decision.finding_id,
    }
    if action is not None:
        attributes[TOOL_NAME] = action
    if run.agent is not None:
        attributes[AGENT_NAME] = run.agent
    return attributes


def held_attributes(told: Attributes) -> Attributes:
    """What the span of a call that was not made says, out of what its event says."""
    return {
        INTERVENTION: told[INTERVENTION],
        LEVEL: told[LEVEL],
        STATUS: Status.DEADLOCKED.value,
    }


def metric_attributes(pattern: str, severity: Severity, agent: str) -> Attributes:
    """The labels of the counter and of the gauge."""
    return {PATTERN: pattern, SEVERITY: severity.label, AGENT_NAME: agent}
