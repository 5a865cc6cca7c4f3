"""What a run has learned and what it has only repeated: its calls, its tools, their results.

Evidence comes before counts. An equal call with an equal result is a repeat and a changed result is
progress. A repeat counts less when other things were learned since, when the results are equal but
for volatile values, when it came after a wait, and when its result was not captured. What changed
something (a new call that was only acknowledged) begins a new epoch: repeats count from there on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from otel_loopguard.core.cycles import MAX_ROUND
from otel_loopguard.core.model import FAILED, Outcome
from otel_loopguard.core.names import changes
from otel_loopguard.core.records import (
    WAIT_WEIGHT,
    CallRecord,
    Moment,
    Recent,
    Streak,
    ToolRecord,
    newest,
    remember,
)

if TYPE_CHECKING:
    from otel_loopguard.core.model import Step

MAX_CALLS: Final = 256
MAX_RESULTS: Final = 256
MAX_TOOLS: Final = 64
MASKED_WEIGHT: Final = 0.5
NEWS_WEIGHT: Final = 0.45
"""What a repeat counts when something else was learned since the time before."""
CLOSE_ROUNDS: Final = 4
"""What comes again more rounds later, with news in between, is no repeat."""
MAX_ROUNDS: Final = 30
"""A call that comes back later than that has not come back."""
NEXT_WEIGHT: Final = 0.75
LATER_WEIGHT: Final = 0.5
"""What a repeat counts when results were not captured: in the very next round, or later."""

BARE: Final = 32
"""Up to this many characters a result is no more than an acknowledgement, unless it is empty."""

# Before Python 3.12 it takes long to read a member from its enum.
_ACK: Final = Outcome.ACK
_EMPTY: Final = Outcome.EMPTY
_OK: Final = Outcome.OK
_PENDING: Final = Outcome.PENDING
_NOTHING_NEW: Final = FAILED | {Outcome.PENDING}


class Evidence:
    """The records of one run's calls and tools, and how much it has learned.

    Attributes:
        progress: how many steps brought something new, or changed something.
        moved: whether the newest call is one of them.
        epoch: how many steps changed something.
        changed: whether the newest call is one of them.
        replayed: the last round before the provider played something again.
    """

    __slots__ = (
        "_calls", "_results", "_round", "_settled", "_settled_epoch", "_tools", "changed", "epoch",
        "moved", "progress", "replayed",
    )  # fmt: skip

    def __init__(self) -> None:
        self.progress = self.epoch = 0
        self.moved = self.changed = False
        self.replayed = 0
        self._settled = self._settled_epoch = 0
        self._round: list[CallRecord] = []
        self._calls: Recent[tuple[str, str], CallRecord] = Recent(MAX_CALLS)
        self._tools: dict[str, ToolRecord] = {}
        self._results: Recent[tuple[str, str], bool] = Recent(MAX_RESULTS)

    def clear(self) -> None:
        """Forget the records: what comes next repeats nothing."""
        self._round.clear()
        self._calls.clear()
        self._tools.clear()
        self._results.clear()

    def condense(self, limit: int) -> None:
        """Forget all but the newest records."""
        self._calls.condense(limit)
        self._tools = newest(self._tools, limit)
        self._results.condense(limit)

    def see_change(self) -> None:
        """Something else has changed the world."""
        self.progress += 1
        self.epoch += 1

    def earlier(self, action: str, args_key: str | None) -> CallRecord | None:
        """What is known of a call; None if it did not come yet, or is unknown."""
        if args_key is None:
            return None
        calls, key = self._calls, (action, args_key)
        return calls.new.get(key) or calls.old.get(key)

    def open_round(self) -> None:
        """Another round begins.

        The calls of one round come at once: what one learned did not come after the others.
        """
        for call in self._round:
            if call.repeats == 1:
                call.progress, call.epoch = self._settled, self._settled_epoch
        self._round.clear()

    def count_call(self, step: Step, now: Moment, *, again: bool) -> CallRecord:
        """Take one call (`again`: another attempt at the newest one) and return its record."""
        calls = self._calls
        key = None if step.args_key is None else (step.action, step.args_key)
        known = None if key is None else calls.new.get(key) or calls.old.get(key)
        if known is None:
            seen = 0 if again else 1
            call = CallRecord(now, now, seen, 1, 1, 1.0, step.result_key, step.masked_key)
        else:
            call = known
            self._recount(call, step, now, again=again)
        self._learn(call, step)
        self._settled = call.progress = self.progress
        self._settled_epoch = call.epoch = self.epoch
        if len(self._round) < MAX_ROUND:
            self._round.append(call)
        if key is not None:
            calls.put(key, call)
        return call

    def _recount(self, call: CallRecord, step: Step, now: Moment, *, again: bool) -> None:
        """Take another occurrence of a call that is known."""
        result_key, masked_key = step.result_key, step.masked_key
        equal = result_key is not None and result_key == call.result_key
        alike = masked_key is not None and masked_key == call.masked_key
        unknown = result_key is None is call.result_key and step.outcome not in FAILED
        if not again:
            call.seen += 1
        if not (equal or alike):
            call.same = 1
        if not (equal or alike or unknown):
            call.restart(now)
        elif not again and call.latest.iteration != now.iteration:
            call.same += not unknown
            self._weigh(call, step, now, 1.0 if equal else MASKED_WEIGHT if alike else 0.0)
        if not equal or masked_key is not None:
            call.masked_key = masked_key
        call.result_key = result_key
        call.latest = now

    def _weigh(self, call: CallRecord, step: Step, now: Moment, weight: float) -> None:
        """Add one equal occurrence, graded by how good the evidence is; 0.0 for an unknown one."""
        latest = call.latest
        rounds = now.iteration - latest.iteration
        if call.epoch != self.epoch or rounds > MAX_ROUNDS:
            call.restart(now)
            return
        if weight == 0.0:
            if latest.iteration <= self.replayed:
                call.restart(now)
                return
            weight = NEXT_WEIGHT if rounds == 1 else LATER_WEIGHT
            call.doubtful = True
        elif call.progress != self.progress:
            if rounds > CLOSE_ROUNDS or _is_bare(step):
                call.restart(now)
                return
            weight *= NEWS_WEIGHT
            call.doubtful = True
        if now.waited(step, latest):
            weight *= WAIT_WEIGHT
        call.repeats += 1
        call.weight += weight

    def _learn(self, call: CallRecord, step: Step) -> None:
        """Whether a step moved the run on, and whether it changed something.

        A result that is new to its tool is news. A new call whose result says little, or nothing at
        all, may have changed something; it surely has when other arguments got the same short
        answer, or when its name says so.
        """
        self.moved = self.changed = False
        result_key, outcome = step.result_key, step.outcome
        news = result_key is not None and self._is_new(step.action, result_key)
        if step.masked_key is not None:
            news = self._is_new(step.action, step.masked_key) and news
        if outcome in _NOTHING_NEW:
            return
        if call.seen == 1:
            bare = outcome is _EMPTY or _is_bare(step)
            self.moved = news or bare or result_key is None
            if bare and (outcome is not _OK or not news):
                self.changed = True
            elif self.moved:
                self.changed = changes(step.action)
        else:
            self.moved = news
        self.progress += self.moved
        self.epoch += self.changed

    def _is_new(self, action: str, result_key: str) -> bool:
        results, key = self._results, (action, result_key)
        known = key in results.new or key in results.old
        results.put(key, True)  # noqa: FBT003 - a set that knows its order
        return not known

    def count_tool(self, step: Step, now: Moment, *, again: bool) -> ToolRecord:
        """Take the same call for its tool's streaks, after `count_call`."""
        tool = self._tools.get(step.action)
        if tool is None:
            tool = ToolRecord()
            remember(self._tools, step.action, tool, MAX_TOOLS)
        if step.outcome in FAILED:
            key = step.error or step.outcome.value
            tool.results = None
            tool.failures = self._streak(tool.failures, key, step, now, again=again)
            return tool
        tool.failures = None
        if step.result_key is None or step.outcome is _PENDING or _is_bare(step):
            tool.results = None
        else:
            tool.results = self._streak(tool.results, step.result_key, step, now, again=False)
        return tool

    def _streak(
        self, streak: Streak | None, key: str, step: Step, now: Moment, *, again: bool
    ) -> Streak:
        """A tool's streak of ends that are equal by `key`, one longer, or the start of another one.

        What other calls changed in between ends it, and so does what they learned, unless the end
        is empty or a failure and comes again soon; that its own arguments are new does not.
        """
        progress, epoch = self.progress, self.epoch
        if streak is None or streak.key != key or streak.epoch != epoch - self.changed:
            return self._new_streak(key, step, now)
        weight = 1.0
        if streak.progress != progress - self.moved:
            if step.outcome is _OK or now.iteration - streak.latest.iteration > CLOSE_ROUNDS:
                return self._new_streak(key, step, now)
            weight = 1.0 if step.outcome is _EMPTY else NEWS_WEIGHT
        streak.progress, streak.epoch = progress, epoch
        streak.extend(step, now, weight, again=again)
        return streak

    def _new_streak(self, key: str, step: Step, now: Moment) -> Streak:
        return Streak(
            now, now, key, self.progress, self.epoch, 1, 1.0, (step.args_key,), (step.result_key,)
        )


def _is_bare(step: Step) -> bool:
    if step.outcome is _ACK:
        return True
    return step.outcome is _OK and step.size is not None and step.size <= BARE
