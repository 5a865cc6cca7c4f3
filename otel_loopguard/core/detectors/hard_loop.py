"""hard_loop: the same tool, the same arguments, the same result."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, ClassVar

from otel_loopguard.core.detectors.base import found
from otel_loopguard.core.model import FAILED, Outcome, Pattern

if TYPE_CHECKING:
    from otel_loopguard.core.detectors.base import Limits
    from otel_loopguard.core.episode import Episode
    from otel_loopguard.core.model import Finding, Step
    from otel_loopguard.core.records import CallRecord, Once


@dataclass(frozen=True, slots=True)
class HardLoop:
    """An equal call with an equal result, again and again with nothing new learned between.

    Polls have a scale of their own, and so has what changes by itself; failures are a storm.
    Catches: search("x") -> the same page, three times; results that differ in a timestamp only.
    Leaves alone: another result each time; a call after other news; three of three things wanted.
    """

    only_repeats: ClassVar[bool] = True
    warning: int = field(default=3, metadata={"doc": "equal calls in a row: warning"})
    critical: int = field(default=5, metadata={"doc": "equal calls with equal results: critical"})
    spread: int = field(default=3, metadata={"doc": "the same, not in a row or alike: warning"})
    unknown: int = field(default=3, metadata={"doc": "results not known, weighed: warning"})
    anew: int = field(default=4, metadata={"doc": "equal calls that each start anew: warning"})
    poll_warning: int = field(default=10, metadata={"doc": "equal calls while waiting: warning"})
    poll_critical: int = field(default=20, metadata={"doc": "equal calls while waiting: critical"})

    def __call__(self, episode: Episode, step: Step, /) -> Finding | None:
        """See `Detector`."""
        call, cycle, key = episode.call, episode.cycle, step.args_key
        if episode.loose is not None and call is not None and episode.loose.weight > call.weight:
            call, key = episode.loose, f"~{step.loose_key}"
        if call is None or call.repeats < 2 or step.args_key is None or step.outcome in FAILED:
            return None
        handoffs, told = episode.handoffs, episode.spoken.get(Pattern.TOOL_OSCILLATION)
        if (cycle and cycle.period > 1) or (handoffs is not None and handoffs.moves(step)):
            return None
        if episode.wanted(step, call) or (told and told.iteration >= call.first.iteration):
            return None
        polls = episode.deeds.asks(step) or call.lives
        alike = "the same" if key is step.args_key else "nearly the same"
        gave = "no final result" if step.outcome is Outcome.PENDING else "the same result"
        return found(
            episode,
            step,
            Pattern.HARD_LOOP,
            key=f"{step.agent or ''}/{step.action}:{key}",
            limits=self._limits(episode, step, call, polls=polls),
            first=call.first,
            repeats=call.repeats,
            weight=call.weight,
            evidence=f"{step.action} was called {call.repeats} times with {alike} arguments and "
            f"gave {gave if step.result_key else 'a result that is not known'} each time",
            action=step.action,
            args_key=step.args_key,
            doubt=call.doubtful or call.masked_key is not None,
            waits=polls and not call.renewed,
        )

    def _limits(
        self, episode: Episode, step: Step, call: CallRecord | Once, *, polls: bool
    ) -> Limits:
        warning, critical = self.spread, self.critical
        if polls:
            warning, critical = self.poll_warning, self.poll_critical
            warning = self.anew if call.renewed and step.outcome is Outcome.PENDING else warning
        elif step.result_key is None:
            warning = self.unknown
        elif episode.consecutive >= call.repeats == call.weight:
            warning = self.warning
        return warning, inf if call.doubtful else critical
