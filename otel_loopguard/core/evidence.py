"""What a run has learned and what it has only repeated: its calls, its tools, their results.

Evidence comes before counts. An equal call with an equal result is a repeat and a changed result is
progress; repeats only add up while nothing new was learned between; results that are equal but for
volatile values, and those that came after a wait, count less; what was not captured is equal to
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from otel_loopguard.core.cycles import MAX_ROUND
from otel_loopguard.core.model import FAILED, Outcome
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
    """

    __slots__ = ("_calls", "_results", "_round", "_settled", "_tools", "moved", "progress")

    def __init__(self) -> None:
        self.progress = 0
        self.moved = False
        self._settled = 0
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
                call.progress = self._settled
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
        self.moved = moved = self._moves(call, step)
        self.progress += moved
        self._settled = call.progress = self.progress
        if len(self._round) < MAX_ROUND:
            self._round.append(call)
        if key is not None:
            calls.put(key, call)
        return call

    def _recount(self, call: CallRecord, step: Step, now: Moment, *, again: bool) -> None:
        """Take another occurrence of a call that is known."""
        equal = step.result_key is not None and step.result_key == call.result_key
        alike = step.masked_key is not None and step.masked_key == call.masked_key
        if not again:
            call.seen += 1
        if not (equal or alike):
            call.same = 1
            call.restart(now)
        elif not again and call.latest.iteration != now.iteration:
            call.same += 1
            self._weigh(call, step, now, equal=equal)
        if not equal or step.masked_key is not None:
            call.masked_key = step.masked_key
        call.result_key = step.result_key
        call.latest = now

    def _weigh(self, call: CallRecord, step: Step, now: Moment, *, equal: bool) -> None:
        """Add one equal occurrence, graded by how good the evidence is."""
        if call.progress != self.progress:
            call.restart(now)
            return
        weight = 1.0 if equal else MASKED_WEIGHT
        if now.waited(step, call.latest):
            weight *= WAIT_WEIGHT
        call.repeats += 1
        call.weight += weight

    def _moves(self, call: CallRecord, step: Step) -> bool:
        """Whether a step moved the run on.

        A result that is new to its tool does. So does a new call whose result says little, or
        nothing at all: it may have changed something.
        """
        new_result = step.result_key is not None and self._is_new(step.action, step.result_key)
        if step.masked_key is not None:
            new_result = self._is_new(step.action, step.masked_key) and new_result
        if step.outcome in _NOTHING_NEW:
            return False
        if new_result or call.seen > 1:
            return new_result
        return step.result_key is None or step.outcome is _EMPTY or _is_bare(step)

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

        What other calls learned in between ends it; that its own arguments are new does not.
        """
        progress = self.progress
        if streak is None or streak.key != key or streak.progress != progress - self.moved:
            return Streak(now, now, key, progress, 1, 1.0, (step.args_key,), (step.result_key,))
        streak.progress = progress
        streak.extend(step, now, again=again)
        return streak


def _is_bare(step: Step) -> bool:
    if step.outcome is _ACK:
        return True
    return step.outcome is _OK and step.size is not None and step.size <= BARE
