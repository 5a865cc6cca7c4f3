"""The small records that an episode keeps; each has a fixed size."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

if TYPE_CHECKING:
    from otel_loopguard.core.model import Severity, Step

MAX_STREAK_ARGS: Final = 8
WAIT_NS: Final = 20_000_000_000
WAIT_WEIGHT: Final = 0.25

_K = TypeVar("_K")
_V = TypeVar("_V")


def remember(table: dict[_K, _V], key: _K, value: _V, limit: int) -> None:
    """Put `value` at the young end of a table that drops its oldest entry beyond `limit`."""
    table.pop(key, None)
    table[key] = value
    if len(table) > limit:
        del table[next(iter(table))]


class Mark(NamedTuple):
    """Where waste is measured from: a loop's first step, and the end of its first lap."""

    span: str | None
    iteration: int
    end_ns: int
    tokens: int


class Clock(NamedTuple):
    """When a step was: its round, its end, and how long models had worked by then."""

    round_no: int
    end_ns: int
    model_ns: int

    def waited(self, step: Step, earlier: Clock) -> bool:
        """Whether `step`, which is now, started long after the earlier one, and no model worked."""
        gap = step.start_ns - earlier.end_ns - (self.model_ns - earlier.model_ns)
        return earlier.end_ns > 0 and gap >= WAIT_NS


NEVER: Final = Clock(0, 0, 0)


@dataclass(slots=True)
class CallRecord:
    """One call, that is one tool with one set of arguments.

    Attributes:
        first: the first occurrence since the result changed or something else was learned.
        seen: how often the call came.
        same: how many of the newest occurrences gave equal results, whatever happened between.
        repeats: how many occurrences there are since `first`.
        weight: `repeats`, each graded by how good the evidence is.
        result_key: the newest result.
        masked_key: the newest result with its volatile values hidden, where that is known.
        progress: what the episode's progress was after the newest occurrence.
        clock: when the newest occurrence was.
    """

    first: Mark
    seen: int = 0
    same: int = 0
    repeats: int = 0
    weight: float = 0.0
    result_key: str | None = None
    masked_key: str | None = None
    progress: int = 0
    clock: Clock = NEVER

    def restart(self, mark: Mark) -> None:
        """Count from this occurrence on."""
        self.first, self.repeats, self.weight = mark, 1, 1.0


@dataclass(slots=True)
class Streak:
    """How often in a row a tool came to the same end, whatever its arguments.

    Attributes:
        first: the streak's first step.
        key: what has to stay equal: a result's digest, or a class of error.
        progress: what the episode's progress has to be still.
        count: how often; a parallel round counts once, each attempt at one call counts.
        weight: `count`, less what came after a wait.
        clock: when the newest step was.
        args: up to eight of the arguments that led there.
        texts: up to eight of the results' digests.
    """

    first: Mark
    key: str
    progress: int
    count: int = 0
    weight: float = 0.0
    clock: Clock = NEVER
    args: set[str | None] = field(default_factory=set[str | None])
    texts: set[str | None] = field(default_factory=set[str | None])

    def extend(self, step: Step, clock: Clock, *, again: bool) -> None:
        """The tool came to the same end once more."""
        if again or clock.round_no != self.clock.round_no:
            self.count += 1
            self.weight += WAIT_WEIGHT if clock.waited(step, self.clock) else 1.0
        self.clock = clock
        if len(self.args) < MAX_STREAK_ARGS:
            self.args.add(step.args_key)
        if len(self.texts) < MAX_STREAK_ARGS:
            self.texts.add(step.result_key)


@dataclass(slots=True)
class ToolRecord:
    """One tool: its streak of equal results and its streak of equal failures."""

    results: Streak | None = None
    failures: Streak | None = None


class Spoken(NamedTuple):
    """The last time that a pattern spoke: in which round, how bad it was, which loop."""

    iteration: int
    severity: Severity
    identity: str


@dataclass(slots=True)
class Alert:
    """What was last said about one loop. It outlives the loop, so that a relapse is known.

    `first_iteration` says where the loop that was spoken of began: one that began later is another.
    """

    finding_id: str
    severity: Severity
    repeats: int
    first_iteration: int
    report_no: int = 0
    relapsed: bool = False
