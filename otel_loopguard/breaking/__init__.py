"""Getting out of a loop: pieces that a program can use alone, one file each.

Nothing here sees spans: `CircuitBreaker`, `StateLatch`, reminders, cut and kept results, the gate
before a run, the question to a human, the limits of a run.
"""

from otel_loopguard.breaking.breaker import BreakerOpenError, CircuitBreaker
from otel_loopguard.breaking.escalation import (
    Escalate,
    Request,
    Verdict,
    escalate,
    escalate_sync,
    terminal,
)
from otel_loopguard.breaking.gate import Unresolved, unresolved
from otel_loopguard.breaking.latch import StateLatch
from otel_loopguard.breaking.limits import AgentResult, Limits, StopReason
from otel_loopguard.breaking.reminders import (
    ConstraintReminder,
    ObjectiveAnchor,
    SummariseTrigger,
    tool_schema_reminder,
)
from otel_loopguard.breaking.results import ChunkedResult, RepeatCache

__all__ = [
    "AgentResult",
    "BreakerOpenError",
    "ChunkedResult",
    "CircuitBreaker",
    "ConstraintReminder",
    "Escalate",
    "Limits",
    "ObjectiveAnchor",
    "RepeatCache",
    "Request",
    "StateLatch",
    "StopReason",
    "SummariseTrigger",
    "Unresolved",
    "Verdict",
    "escalate",
    "escalate_sync",
    "terminal",
    "tool_schema_reminder",
    "unresolved",
]
