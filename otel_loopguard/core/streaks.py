"""How often in a row each tool of a run came to the same end, whatever its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from otel_loopguard.core.declared import alters
from otel_loopguard.core.model import FAILED, Outcome
from otel_loopguard.core.plans import Plan
from otel_loopguard.core.records import Streak, ToolRecord, newest, remember
from otel_loopguard.core.sizes import BARE, SHORT
from otel_loopguard.core.subject import Named

if TYPE_CHECKING:
    from otel_loopguard.core.evidence import Evidence
    from otel_loopguard.core.model import Step
    from otel_loopguard.core.records import Moment, Once

MAX_TOOLS: Final = 64
NEWS_WEIGHT: Final = 0.45
"""What a repeat counts when something else was learned since the time before."""
CLOSE_ROUNDS: Final = 4
"""What comes again more rounds later, with news in between, is no repeat."""
LISTED_WEIGHT: Final = 0.11
"""What a repeat counts whose arguments name another thing: whoever works through a list is told
much the same each time."""
FAILING_WEIGHT: Final = 0.34
"""The same where the tool failed."""

# Before Python 3.12 it takes long to read a member from its enum.
_ACK: Final = Outcome.ACK
_EMPTY: Final = Outcome.EMPTY
_OK: Final = Outcome.OK
_PENDING: Final = Outcome.PENDING


class Tools:
    """The newest tools of a run, each with its streaks."""

    __slots__ = ("_table",)

    def __init__(self) -> None:
        self._table: dict[str, ToolRecord] = {}

    def __len__(self) -> int:
        return len(self._table)

    def clear(self) -> None:
        """Forget them all."""
        self._table.clear()

    def condense(self, limit: int) -> None:
        """Forget all but the newest."""
        self._table = newest(self._table, limit)

    def take_fresh(self, action: str, once: Once) -> ToolRecord:
        """Take a call of a tool that repeated nothing."""
        tool = self._table.get(action)
        if tool is None:
            tool = ToolRecord()
            remember(self._table, action, tool, MAX_TOOLS)
        tool.failures = tool.results = None
        tool.fresh = once
        return tool

    def count(self, learned: Evidence, step: Step, now: Moment, *, again: bool) -> ToolRecord:
        """Take a call of which is known already what was learned by it."""
        tool = self._table.get(step.action)
        if tool is None:
            tool = ToolRecord()
            remember(self._table, step.action, tool, MAX_TOOLS)
        if tool.fresh is not None:
            tool.results, tool.fresh = _began(tool.fresh), None
        if step.outcome in FAILED:
            key = step.error or step.outcome.value
            tool.results = None
            tool.failures = _streak(learned, tool.failures, key, step, now, again=again)
            return tool
        tool.failures = None
        if step.result_key is None or step.outcome is _PENDING or is_bare(step):
            tool.results = None
        else:
            key = step.result_key if step.outcome is not _EMPTY else _EMPTY.value
            tool.results = _streak(learned, tool.results, key, step, now, again=False)
        return tool


def _began(once: Once) -> Streak:
    """The streak that a fresh result has begun."""
    key, now = once.result_key, once.latest
    return Streak(now, now, key, once.progress, once.epoch, 1, 1.0, (once.args_key,), (key,))


def _streak(
    learned: Evidence, streak: Streak | None, key: str, step: Step, now: Moment, *, again: bool
) -> Streak:
    """A tool's streak of ends that are equal by `key`, one longer, or the start of another one.

    What other calls changed in between ends it, and so does what they learned, unless the end
    is empty or a failure and comes again soon; that its own arguments are new does not.
    """
    progress, epoch = learned.progress, learned.epoch
    if streak is None or streak.key != key or streak.epoch != epoch - learned.changed:
        return _new_streak(learned, key, step, now)
    weight = 1.0
    if streak.progress != progress - learned.moved:
        far = now.iteration - streak.latest.iteration > CLOSE_ROUNDS
        if far or step.outcome is _OK or (step.outcome is _EMPTY and not step.size):
            return _new_streak(learned, key, step, now)
        weight = 1.0 if step.outcome is _EMPTY else NEWS_WEIGHT
    if step.subject is not None and (step.outcome is not _OK or (step.size or 0) <= SHORT):
        named = streak.named = streak.named or Named(None)
        failed = step.outcome in FAILED
        fine = step.outcome is _OK
        if named.another(step.subject, in_form=failed, by_number=fine):
            weight *= FAILING_WEIGHT if failed else LISTED_WEIGHT
    streak.progress, streak.epoch = progress, epoch
    streak.extend(step, now, weight, again=again)
    return streak


def _new_streak(learned: Evidence, key: str, step: Step, now: Moment) -> Streak:
    named = None if step.subject is None else Named(step.subject)
    args, texts = (step.args_key,), (step.result_key,)
    return Streak(now, now, key, learned.progress, learned.epoch, 1, 1.0, args, texts, named)


def is_bare(step: Step) -> bool:
    """Whether a result is no more than an acknowledgement: of what changes things, a longer one."""
    if step.outcome is not _OK or step.size is None:
        return step.outcome is _ACK
    return step.size <= BARE or (
        step.size <= SHORT and (isinstance(step.gist, Plan) or alters(step))
    )
