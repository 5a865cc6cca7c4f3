"""The hard limits of a run, and how a guarded run ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from otel_loopguard.core.model import Finding


class StopReason(str, Enum):
    """Why a guarded run ended."""

    COMPLETED = "completed"
    MAX_ITERATIONS = "max_iterations"
    DEADLOCK = "deadlock"
    BUDGET = "budget"
    ESCALATION_TIMEOUT = "escalation_timeout"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run may use up; None is no limit.

    Attributes:
        iterations: how many steps it may take.
        seconds: how long it may take, by a clock that does not jump.
        tokens: how many tokens its models may use, input and output together.
        cost: how much it may cost, in whatever unit its steps report.
    """

    iterations: int | None = 10
    seconds: float | None = None
    tokens: int | None = None
    cost: float | None = None

    def __post_init__(self) -> None:
        for name in ("iterations", "seconds", "tokens", "cost"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise ValueError(f"{name} cannot be {value!r}: a number from 0 on, or None")


@dataclass(slots=True)
class Spent:
    """What a run has used up so far."""

    iterations: int = 0
    seconds: float = 0.0
    tokens: int = 0
    cost: float = 0.0

    def beyond(self, limits: Limits) -> StopReason | None:
        """Why no further step may be taken; None if one may."""
        if limits.iterations is not None and self.iterations >= limits.iterations:
            return StopReason.MAX_ITERATIONS
        pairs = (
            (self.seconds, limits.seconds),
            (self.tokens, limits.tokens),
            (self.cost, limits.cost),
        )
        used_up = any(limit is not None and spent >= limit for spent, limit in pairs)
        return StopReason.BUDGET if used_up else None


@dataclass(frozen=True, slots=True)
class AgentResult:
    """How a guarded run ended; every field is set, whatever happened.

    Attributes:
        success: whether it came to an answer by itself.
        output: the answer; None without one.
        iterations_used: how many steps it took, the one that failed included.
        stop_reason: why it ended.
        findings: what the guard said of it, oldest first.
        partial_context: what the hook made of a run that came to no answer; None without a hook.
        execution_time: how long it took, in seconds.
        error: the exception of a step that raised; None otherwise.
    """

    success: bool
    output: object
    iterations_used: int
    stop_reason: StopReason
    findings: tuple[Finding, ...] = ()
    partial_context: object = None
    execution_time: float = 0.0
    error: Exception | None = field(default=None, repr=False)
