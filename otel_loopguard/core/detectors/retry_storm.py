"""retry_storm: a failing tool is hammered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from otel_loopguard.core.detectors.base import found
from otel_loopguard.core.model import TURNED_DOWN, Kind, Pattern

if TYPE_CHECKING:
    from otel_loopguard.core.episode import Episode
    from otel_loopguard.core.model import Finding, Step


@dataclass(frozen=True, slots=True)
class RetryStorm:
    """One tool fails in the same way again and again, with nothing new learned between.

    For the same arguments the class of the failure counts, not its text. Different arguments are
    another try: they have to fail more often, and more so if the texts differ too. Attempts
    of one call count each; one that waited, or waited longer than before, counts less, and who
    calls a tool to wait in between has more time. Refusals, unknown tools and arguments that do not
    fit are patterns of their own.
    Models that do not answer are one tool, whichever they are: clients ask again by themselves.
    Catches: a refused connection three times with the same arguments; a rate limit that seven
    models in a row run into.
    Leaves alone: two failures and a success; a test that fails between edits that succeed.
    """

    only_repeats: ClassVar[bool] = True
    warning: int = field(default=3, metadata={"doc": "equal failing calls: warning"})
    critical: int = field(default=5, metadata={"doc": "equal failing calls: critical"})
    varied_warning: int = field(default=4, metadata={"doc": "failures of varied calls: warning"})
    varied_critical: int = field(default=8, metadata={"doc": "failures of varied calls: critical"})
    mixed_warning: int = field(
        default=6, metadata={"doc": "failures of varied calls with varied messages: warning"}
    )
    mixed_critical: int = field(
        default=10, metadata={"doc": "failures of varied calls with varied messages: critical"}
    )
    model_warning: int = field(default=7, metadata={"doc": "models that do not answer: warning"})
    model_critical: int = field(default=14, metadata={"doc": "models that do not answer: critical"})
    poll_warning: int = field(default=10, metadata={"doc": "failures, waits between: warning"})
    poll_critical: int = field(default=20, metadata={"doc": "failures, waits between: critical"})

    def __call__(self, episode: Episode, step: Step, /) -> Finding | None:
        """See `Detector`."""
        of = episode.talk if step.kind is Kind.MODEL else episode.tool
        streak = None if of is None else of.failures
        if streak is None or streak.count < 2 or step.outcome in TURNED_DOWN:
            return None
        equal = streak.args == (step.args_key,) and step.args_key is not None
        alike = len(streak.texts) == 1 and None not in streak.texts
        limits, action = (self.varied_warning, self.varied_critical), step.action
        how = f"in the same way, with {'the same' if equal else 'different'} arguments"
        if step.kind is Kind.MODEL:
            limits = (self.model_warning, self.model_critical)
            action, how = "model", "without an answer between"
        elif episode.consecutive == 1 and episode.deeds.polls(2):
            limits = (self.poll_warning, self.poll_critical)
        elif equal:
            limits = (self.warning, self.critical)
        elif not alike:
            limits = (self.mixed_warning, self.mixed_critical)
        return found(
            episode,
            step,
            Pattern.RETRY_STORM,
            key=f"{action}:{streak.key}",
            limits=limits,
            first=streak.first,
            repeats=streak.count,
            weight=streak.weight,
            evidence=f"{action} failed {streak.count} times in a row {how}",
            action=action,
            args_key=step.args_key if equal else None,
            doubt=not equal,
        )
