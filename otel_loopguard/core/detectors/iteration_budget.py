"""iteration_budget: more iterations than the agent was given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from otel_loopguard.core.model import Finding, Pattern, Severity, Step
from otel_loopguard.core.recovery import suggested

if TYPE_CHECKING:
    from otel_loopguard.core.episode import Episode


@dataclass(frozen=True, slots=True)
class IterationBudget:
    """The run has more tool rounds since the user spoke than its budget. Off until a limit is set.

    Healthy runs of more than ten calls are common, so there is no default that would fit all.
    Catches: iteration 11 of a budget of 10; iteration 20, as critical.
    Leaves alone: iteration 10 of 10; any run while no limit is set.
    """

    limit: int = field(
        default=0, metadata={"doc": "iterations that a run may take; 0 for no limit"}
    )

    @property
    def only_repeats(self) -> bool:
        """Without a limit there is no step that it has to see."""
        return not self.limit

    def __call__(self, episode: Episode, step: Step, /) -> Finding | None:
        """See `Detector`."""
        if not self.limit or episode.call is None:
            return None
        used = episode.iteration - episode.turn_start
        if used <= self.limit:
            return None
        double = used >= 2 * self.limit
        return Finding(
            pattern=Pattern.ITERATION_BUDGET,
            severity=Severity.CRITICAL if double else Severity.WARNING,
            identity=Pattern.ITERATION_BUDGET.value,
            period=1,
            repeats=used,
            evidence=f"iteration {used} of a budget of {self.limit}",
            suggested_action=suggested(Pattern.ITERATION_BUDGET),
            first_iteration=episode.turn_start + 1,
            action=step.action,
            covers=frozenset({("*", None)}),
        )
