"""result_stagnation: the arguments vary, the result stays the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final

from otel_loopguard.core.detectors.base import waste
from otel_loopguard.core.episode import SHORT
from otel_loopguard.core.model import Finding, Outcome, Pattern, Step

if TYPE_CHECKING:
    from otel_loopguard.core.episode import Episode

# Before Python 3.12 it takes long to read a member from its enum.
_PATTERN: Final = Pattern.RESULT_STAGNATION
_NAME: Final = _PATTERN.value
_EMPTY: Final = Outcome.EMPTY


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
    small_warning: int = field(default=6, metadata={"doc": "equal empty or short results: warning"})
    small_critical: int = field(
        default=10, metadata={"doc": "equal empty or short results: critical"}
    )
    small: int = field(
        default=SHORT, metadata={"doc": "up to how many characters a result is short"}
    )

    def __call__(self, episode: Episode, step: Step, /) -> Finding | None:
        """See `Detector`."""
        streak = episode.tool.results if episode.tool is not None else None
        if streak is None or streak.count < 2 or len(streak.args) < 2 or episode.polls(2):
            return None
        empty = step.outcome is _EMPTY
        limits = (self.warning, self.critical)
        if empty or (step.size or 0) <= self.small:
            limits = (self.small_warning, self.small_critical)
        identity = f"{_NAME}:{step.action}:{streak.key}"
        severity = episode.grade(identity, streak.count, limits, streak.first)
        if severity is None:
            return None
        tokens, seconds = waste(episode, step, streak.first)
        what = "nothing" if empty else "the same result"
        return Finding(
            pattern=_PATTERN,
            severity=severity,
            identity=identity,
            period=1,
            repeats=streak.count,
            evidence=f"{step.action} gave {what} {streak.count} times in a row, whatever its "
            "arguments",
            suggested_action="inject_correction",
            first_span=streak.first.span,
            first_iteration=streak.first.iteration,
            action=step.action,
            wasted_calls=streak.count - 1,
            wasted_tokens=tokens,
            wasted_seconds=seconds,
        )
