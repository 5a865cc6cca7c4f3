"""result_stagnation: the arguments vary, the result stays the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final

from otel_loopguard.core.detectors.base import found
from otel_loopguard.core.detectors.in_turns import in_turns
from otel_loopguard.core.model import Outcome, Pattern
from otel_loopguard.core.sizes import SHORT

if TYPE_CHECKING:
    from otel_loopguard.core.episode import Episode
    from otel_loopguard.core.model import Finding, Step

# Before Python 3.12 it takes long to read a member from its enum.
_EMPTY: Final = Outcome.EMPTY
_SAME: Final = "{} gave the same result {} times in a row, whatever its arguments"
_SILENT: Final = (
    "{} gave nothing {} times in a row, whatever its arguments; a tool that says nothing where it "
    "failed is a suspected cause"
)


@dataclass(frozen=True, slots=True)
class ResultStagnation:
    """One tool, different arguments, and the same result with nothing new learned between.

    A bare acknowledgement for varied arguments is work, and so is any answer of a word or two; an
    empty or short result says little, so it has to come more often.
    Catches: three wordings of a query that find the same page; six searches that find nothing.
    Leaves alone: thirty files edited, each "1 occurrence replaced"; equal results with other news
    between.
    """

    only_repeats: ClassVar[bool] = True
    warning: int = field(default=3, metadata={"doc": "equal results of varied calls: warning"})
    critical: int = field(default=5, metadata={"doc": "equal results of varied calls: critical"})
    empty_warning: int = field(
        default=5, metadata={"doc": "empty results of varied calls: warning"}
    )
    empty_critical: int = field(
        default=10, metadata={"doc": "empty results of varied calls: critical"}
    )
    small_warning: int = field(default=6, metadata={"doc": "equal short results: warning"})
    small_critical: int = field(default=10, metadata={"doc": "equal short results: critical"})
    small: int = field(
        default=SHORT, metadata={"doc": "up to how many characters a result is short"}
    )

    def __call__(self, episode: Episode, step: Step, /) -> Finding | None:
        """See `Detector`."""
        streak = episode.tool.results if episode.tool is not None else None
        if episode.deeds.asks(step) or (step.traits is not None and step.traits.irreversible):
            return None  # what cannot be undone is called for what it does, not for what it says
        if streak is None or streak.count < 2 or len(streak.args) < 2:
            return in_turns(episode, step, (self.small_warning, self.small_critical))
        empty = step.outcome is _EMPTY
        limits = (self.warning, self.critical)
        if empty:
            limits = (self.empty_warning, self.empty_critical)
        elif (step.size or 0) <= self.small:
            limits = (self.small_warning, self.small_critical)
        return found(
            episode,
            step,
            Pattern.RESULT_STAGNATION,
            key=f"{step.action}:{streak.key}",
            limits=limits,
            first=streak.first,
            repeats=streak.count,
            weight=streak.weight,
            evidence=_SILENT.format(step.action, streak.count)
            if empty
            else _SAME.format(step.action, streak.count),
            action=step.action,
            doubt=step.outcome is _EMPTY,
        )
