"""The small mutable records that an episode keeps; each has a fixed size."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from otel_loopguard.core.model import Severity


@dataclass(frozen=True, slots=True)
class Mark:
    """Where waste is measured from: a loop's first span, and the end of its first lap."""

    span_id: str | None
    end_ns: int
    tokens: int


@dataclass(slots=True)
class CallRecord:
    """One call, that is one tool with one set of arguments.

    `seen` counts its occurrences, `same` its equal results in a row, and `weight` is the graded
    number of equal results since anything new was learned. The other fields are the values that
    the episode had when the call was last seen.
    """

    first: Mark
    seen: int = 0
    same: int = 0
    weight: float = 0.0
    result_key: str | None = None
    masked_key: str | None = None
    round_no: int = 0
    progress: int = 0
    model_ns: int = 0
    end_ns: int = 0


@dataclass(slots=True)
class Streak:
    """How often in a row a tool came to the same end, whatever its arguments.

    `key` is what has to stay equal (a result's digest, a class of error); `args` are up to eight of
    the arguments that led there.
    """

    key: str | None = None
    count: int = 0
    args: set[str | None] = field(default_factory=set[str | None])
    first: Mark | None = None
    round_no: int = 0
    progress: int = 0

    def clear(self) -> None:
        """Forget the streak: the tool came to another end."""
        self.key = None
        self.count = 0


@dataclass(slots=True)
class ToolRecord:
    """One tool: its streak of equal results and its streak of equal failures."""

    results: Streak = field(default_factory=Streak)
    failures: Streak = field(default_factory=Streak)


@dataclass(slots=True)
class Alert:
    """What was last said about one loop. It outlives the loop, so that a relapse is known."""

    finding_id: str
    severity: Severity
    repeats: int
    report_no: int = 1
    relapsed: bool = False
