"""constraint_drift: the plan is written down again and again, and nothing in it moves on."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, ClassVar

from otel_loopguard.core.detectors.base import ANSWERS, found
from otel_loopguard.core.model import Pattern

if TYPE_CHECKING:
    from otel_loopguard.core.episode import Episode
    from otel_loopguard.core.model import Finding, Step


@dataclass(frozen=True, slots=True)
class ConstraintDrift:
    """The same list of items again, each in a state in which it was before, and nothing else done.

    Experimental: no other detector is known to look for it. Whether a constraint is still honoured
    is a question of meaning, which nothing here can tell; a plan that only goes to and fro is what
    shows of it. Never critical. Left out: lists that only grow, since a plan in the making does.
    Catches: items set to "doing" and back to "todo" in turn; a status that is worded anew each
    time, once an item has had five. Leaves alone: an item that goes to "done", whatever that is
    called; the same states again after another tool has changed something.
    """

    only_repeats: ClassVar[bool] = True
    plans: int = field(default=4, metadata={"doc": "equal plans: warning; 0 for never"})

    def __call__(self, episode: Episode, step: Step, /) -> Finding | None:
        """See `Detector`."""
        is_plan = step.gist is not None and step.gist.kind == "plan"
        plans = episode.deeds.plans if is_plan else None
        spell = None if plans is None else plans.stuck
        return spell and found(
            episode,
            step,
            Pattern.CONSTRAINT_DRIFT,
            key=step.action,
            limits=(self.plans or inf, inf),
            first=spell.first,
            repeats=spell.count,
            weight=spell.weight,
            evidence=f"{step.action} wrote down the same plan {spell.count} times and no item of "
            "it moved on",
            action=step.action,
            covers=frozenset({ANSWERS}),
        )
