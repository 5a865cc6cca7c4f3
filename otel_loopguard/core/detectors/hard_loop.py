"""hard_loop: the same tool, the same arguments, the same result."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, ClassVar, Final

from otel_loopguard.core.detectors.base import found
from otel_loopguard.core.handoffs import BRIEF
from otel_loopguard.core.model import FAILED, Outcome, Pattern
from otel_loopguard.core.names import waits

if TYPE_CHECKING:
    from otel_loopguard.core.episode import Episode
    from otel_loopguard.core.model import Finding, Step

# Before Python 3.12 it takes long to read a member from its enum.
_PENDING: Final = Outcome.PENDING
_ARGS: Final = ("nearly the same arguments", "the same arguments")


def _hands_over(episode: Episode, step: Step) -> bool:
    """Whether a call starts another agent and says no more: what that one does shows elsewhere."""
    is_brief = step.target is not None and (step.size or 0) <= BRIEF
    return is_brief and episode.handoffs is not None and episode.handoffs.moves(step.action)


@dataclass(frozen=True, slots=True)
class HardLoop:
    """An equal call with an equal result, again and again with nothing new learned between.

    Polls, whose results say "not yet", have a scale of their own; failures are a retry storm.
    Catches: search("x") -> the same page, three times; results that differ in a timestamp only.
    Leaves alone: the same call with another result each time; a call repeated after other news.
    """

    only_repeats: ClassVar[bool] = True
    warning: int = field(default=3, metadata={"doc": "equal calls with equal results: warning"})
    critical: int = field(default=5, metadata={"doc": "equal calls with equal results: critical"})
    poll_warning: int = field(default=10, metadata={"doc": "equal calls while waiting: warning"})
    poll_critical: int = field(default=20, metadata={"doc": "equal calls while waiting: critical"})

    def __call__(self, episode: Episode, step: Step, /) -> Finding | None:
        """See `Detector`."""
        call, cycle, key = episode.call, episode.cycle, step.args_key
        if episode.loose is not None and call is not None and episode.loose.weight > call.weight:
            call, key = episode.loose, f"~{step.loose_key}"
        if call is None or call.repeats < 2 or step.args_key is None or step.outcome in FAILED:
            return None
        if (cycle is not None and cycle.period > 1) or _hands_over(episode, step):
            return None
        told = episode.spoken.get(Pattern.TOOL_OSCILLATION)
        if told is not None and told.iteration >= call.first.iteration:
            return None
        polls = episode.polls(2) or waits(step.action)
        warning, critical = self.warning, self.critical
        if polls:
            warning, critical = self.poll_warning, self.poll_critical
        return found(
            episode,
            step,
            Pattern.HARD_LOOP,
            key=f"{step.agent or ''}/{step.action}:{key}",
            limits=(warning, inf if call.doubtful else critical),
            first=call.first,
            repeats=call.repeats,
            weight=call.weight,
            evidence=f"{step.action} was called {call.repeats} times with "
            f"{_ARGS[key is step.args_key]} and gave {_answer(step)} each time",
            suggested_action="wait_longer" if polls else "inject_correction",
            action=step.action,
            args_key=step.args_key,
        )


def _answer(step: Step) -> str:
    if step.result_key is None:
        return "a result that is not known"
    return "the same result" if step.outcome is not _PENDING else "no final result"
