"""The small records that an episode keeps; each has a fixed size."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from otel_loopguard.core.model import FAILED, Kind

if TYPE_CHECKING:
    from otel_loopguard.core.model import Severity, SpanRef, Step
    from otel_loopguard.core.returned import Returned
    from otel_loopguard.core.subject import Named

MAX_STREAK_ARGS: Final = 8
WAIT_NS: Final = 15_000_000_000
WAIT_WEIGHT: Final = 0.15
REVIVALS: Final = 3
BACKOFF_NS: Final = 1_000_000_000
"""A shorter pause before another try is none."""
GROWN: Final = 1.3
"""A pause that is so many times as long as all before has grown."""
BACKOFF_WEIGHT: Final = 0.25
"""What a failure counts that came after a pause which has grown."""

_K = TypeVar("_K")
_V = TypeVar("_V")


def remember(table: dict[_K, _V], key: _K, value: _V, limit: int) -> None:
    """Put `value` at the young end of a table that drops its oldest entry beyond `limit`."""
    table.pop(key, None)
    table[key] = value
    if len(table) > limit:
        del table[next(iter(table))]


def newest(table: dict[_K, _V], limit: int) -> dict[_K, _V]:
    """A copy of a table with its newest entries only."""
    return dict(islice(table.items(), max(0, len(table) - limit), None))


class Recent(dict[_K, _V]):
    """A table of the newest entries, between half of `limit` and all of it.

    It forgets the older half at once: to drop one entry for each that comes costs every step.

    Attributes:
        limit: how many entries there are at most.
    """

    __slots__ = ("limit",)

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def put(self, key: _K, value: _V) -> None:
        """Take an entry, or take it again."""
        self.pop(key, None)
        if len(self) >= self.limit:
            self.condense(self.limit // 2)
        self[key] = value

    def condense(self, limit: int) -> None:
        """Forget all but the newest entries."""
        kept = newest(self, limit)
        self.clear()
        self.update(kept)


class Moment(NamedTuple):
    """When a step was, and what the run had spent by then.

    Attributes:
        span: the span that shows the step, if known.
        iteration: the tool round that it belongs to.
        end_ns: when it ended; 0 if unknown.
        tokens: the tokens spent so far.
        model_ns: the time that models had worked so far.
    """

    span: SpanRef | None
    iteration: int
    end_ns: int
    tokens: int
    model_ns: int

    def waited(self, step: Step, earlier: Moment) -> bool:
        """Whether `step`, which is now, started long after the earlier one, and no model worked."""
        return self.pause(step, earlier) >= WAIT_NS

    def pause(self, step: Step, earlier: Moment) -> int:
        """How long before `step`, which is now, nobody worked since the earlier one; 0 if unknown.

        Nanoseconds; less than 0 where the two overlap.
        """
        if earlier.end_ns <= 0:
            return 0
        return step.start_ns - earlier.end_ns - (self.model_ns - earlier.model_ns)


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
        like: stands for the newest result and stays while results are alike; with `~` before it
            where it does not stand for one result alone.
        loose_key: the weaker key of the call, where it is known.
        sketch: the words of its results, while they differ.
        progress, epoch, replays: what those of the run were after the newest occurrence.
        doubtful: whether some of `weight` is of results that are unknown or came after news.
        latest: the newest occurrence.
        begun, returns: the first occurrence since the result changed or something was changed, and
            how many there were, whatever was learned meanwhile.
        revivals: how often, with nothing else done, the result changed after it had been equal, or
            to an earlier one: it does so by itself.
    """

    first: Moment
    latest: Moment
    seen: int = 0
    same: int = 1
    repeats: int = 1
    weight: float = 1.0
    result_key: str | None = None
    masked_key: str | None = None
    like: str | None = None
    loose_key: str | None = None
    sketch: Returned | None = None
    progress: int = 0
    epoch: int = 0
    replays: int = 0
    doubtful: bool = False
    begun: Moment | None = None
    returns: int = 1
    revivals: int = 0

    @property
    def lives(self) -> bool:
        """Whether its result goes on changing by itself: that it is equal now may be by chance."""
        return self.revivals >= REVIVALS

    @property
    def renewed(self) -> bool:
        """Whether each of its newest results named another thing by an id, and nothing else new."""
        return self.sketch is not None and self.sketch.steady > 1

    def restart(self, now: Moment) -> None:
        """Count from this occurrence on."""
        self.first, self.repeats, self.weight, self.doubtful = now, 1, 1.0, False


class Once(NamedTuple):
    """What is kept of a call that came once and repeated nothing, as most do.

    It can be read like a `CallRecord`, as far as others read one.

    Attributes:
        args_key, result_key, latest: the digests of the call and its result, and when it was.
        progress, epoch, replays: what those of the run were after it.
    """

    args_key: str
    result_key: str
    latest: Moment
    progress: int
    epoch: int
    replays: int

    seen = same = repeats = 1
    weight = 1.0
    doubtful = False
    renewed = lives = False
    loose_key = masked_key = None

    @property
    def first(self) -> Moment:
        """The first occurrence, which is the latest."""
        return self.latest

    @property
    def like(self) -> str:
        """The result: it stands for itself."""
        return self.result_key

    def record(self) -> CallRecord:
        """The record to go on with, now that there is more to say."""
        now, key = self.latest, self.result_key
        return CallRecord(
            now, now, 1, 1, 1, 1.0, key, None, key, None, None,
            self.progress, self.epoch, self.replays,
        )  # fmt: skip


@dataclass(slots=True)
class Streak:
    """How often in a row a tool came to the same end, whatever its arguments.

    Attributes:
        first: the streak's first step.
        latest: the newest step that came to this end.
        key: what has to stay equal: a result's digest, or a class of error.
        progress, epoch: what those of the run have to be still.
        count: how often; a parallel round counts once, each attempt at one call counts.
        weight: `count`, less for what came after a wait or after news, or from one who backs off.
        args: up to eight of the different arguments that led there.
        texts: up to eight of the results' different digests.
        named: what the arguments named.
        pause: the longest pause between two of them.
    """

    first: Moment
    latest: Moment
    key: str
    progress: int
    epoch: int
    count: int
    weight: float
    args: tuple[str | None, ...]
    texts: tuple[str | None, ...]
    named: Named | None = None
    pause: int = 0

    def extend(self, step: Step, now: Moment, weight: float, *, again: bool) -> None:
        """The tool came to the same end once more, which counts `weight` or less."""
        if again or now.iteration != self.latest.iteration:
            self.count += 1
            self.weight += weight * self._pace(step, now)
        self.latest = now
        if step.args_key not in self.args and len(self.args) < MAX_STREAK_ARGS:
            self.args += (step.args_key,)
        if step.result_key not in self.texts and len(self.texts) < MAX_STREAK_ARGS:
            self.texts += (step.result_key,)

    def _pace(self, step: Step, now: Moment) -> float:
        """What a step counts for the pause before it.

        Who tries the same again after a failure, each time after a longer pause, backs off.
        """
        pause, longest = now.pause(step, self.latest), self.pause
        self.pause = max(pause, longest)
        if pause >= WAIT_NS:
            return WAIT_WEIGHT
        failed = step.outcome in FAILED or step.kind is Kind.MODEL
        tries = failed and self.args in ((), (step.args_key,))
        grown = tries and 0 < longest * GROWN <= pause and pause >= BACKOFF_NS
        return BACKOFF_WEIGHT if grown else 1.0


@dataclass(slots=True)
class ToolRecord:
    """One tool: its streak of equal results and its streak of equal failures.

    A streak of results is made when one comes again: most never do. `fresh` holds what it would
    begin with.
    """

    results: Streak | None = None
    failures: Streak | None = None
    fresh: Once | None = None


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
