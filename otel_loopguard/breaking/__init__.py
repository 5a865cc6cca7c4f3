"""Getting out of a loop: pieces that a program can use alone, one file each.

Nothing here sees spans: `CircuitBreaker`, `StateLatch`, reminders, cut and kept results, the gate
before a run, the question to a human, the limits of a run.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from otel_loopguard.breaking.breaker import BreakerOpenError, CircuitBreaker
    from otel_loopguard.breaking.escalation import escalate, escalate_sync, terminal
    from otel_loopguard.breaking.gate import Unresolved, unresolved
    from otel_loopguard.breaking.guarded import Done, Progress
    from otel_loopguard.breaking.latch import StateLatch
    from otel_loopguard.breaking.limits import AgentResult, Limits, StopReason
    from otel_loopguard.breaking.questions import Escalate, Request, Verdict
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
    "Done",
    "Escalate",
    "Limits",
    "ObjectiveAnchor",
    "Progress",
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

_HOMES: Final = {
    "breaker": ("BreakerOpenError", "CircuitBreaker"),
    "escalation": ("escalate", "escalate_sync", "terminal"),
    "gate": ("Unresolved", "unresolved"),
    "guarded": ("Done", "Progress"),
    "latch": ("StateLatch",),
    "limits": ("AgentResult", "Limits", "StopReason"),
    "questions": ("Escalate", "Request", "Verdict"),
    "reminders": (
        "ConstraintReminder",
        "ObjectiveAnchor",
        "SummariseTrigger",
        "tool_schema_reminder",
    ),
    "results": ("ChunkedResult", "RepeatCache"),
}
"""Where each name lives: what a program does not use is not loaded."""


def __getattr__(name: str) -> object:
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
