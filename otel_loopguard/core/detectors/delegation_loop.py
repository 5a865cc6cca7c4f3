"""delegation_loop: agents hand each other the same task."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from otel_loopguard.core.detectors.base import found
from otel_loopguard.core.model import Pattern

if TYPE_CHECKING:
    from otel_loopguard.core.episode import Episode
    from otel_loopguard.core.handoffs import Errand
    from otel_loopguard.core.model import Finding, Step


@dataclass(frozen=True, slots=True)
class DelegationLoop:
    """One agent asks another for the same again, or all pass a task on and nobody does it.

    The same is the same text, or one that names the same things (numbers, names, quoted texts) in
    mostly the same words. It is soon a loop where nothing new came of it, and later where little
    did, at most three new results a time. Counts as in hard_loop; one more where little came.
    Catches: support -> billing -> support -> billing with no work between; a brief that each
    sub-agent gives to a sub-agent of its own.
    Leaves alone: "check A, B and C", then "check B and C"; a writer and a critic with new drafts.
    """

    warning: int = field(default=3, metadata={"doc": "same task, nothing came of it: warning"})
    critical: int = field(default=5, metadata={"doc": "same task, nothing came of it: critical"})
    little_warning: int = field(
        default=4, metadata={"doc": "same task, little came of it: warning"}
    )
    little_critical: int = field(
        default=12, metadata={"doc": "same task, little came of it: critical"}
    )
    hops_warning: int = field(default=4, metadata={"doc": "agents that pass a task on: warning"})
    hops_critical: int = field(default=6, metadata={"doc": "agents that pass a task on: critical"})

    def __call__(self, episode: Episode, step: Step, /) -> Finding | None:
        """See `Detector`."""
        handoffs = episode.handoffs
        if handoffs is None:
            return None
        passing, errand = handoffs.passing, handoffs.errand
        if passing is not None and passing.hops >= self.hops_warning:
            return found(
                episode,
                step,
                Pattern.DELEGATION_LOOP,
                key=f"passed:{passing.key}",
                limits=(self.hops_warning, self.hops_critical),
                first=passing.first,
                repeats=passing.hops,
                evidence=f"{passing.hops} agents in a row passed the same task on",
                suggested_action="stop_delegation",
            )
        return None if errand is None else self._given(episode, step, errand)

    def _given(self, episode: Episode, step: Step, errand: Errand) -> Finding | None:
        limits, task = (self.warning, self.critical), errand.task
        first, times, came = errand.first_idle, errand.idle, "nothing"
        if errand.idle < self.warning and task is not None and task.is_specific:
            limits = (self.little_warning, self.little_critical)
            first, times, came = errand.first, errand.times, "little"
        return found(
            episode,
            step,
            Pattern.DELEGATION_LOOP,
            key=f"{errand.caller}:{errand.target}:{errand.key}",
            limits=limits,
            first=first,
            repeats=int(times),
            evidence=f"one agent gave another the same task {times:.0f} times and {came} new came "
            "of it",
            suggested_action="stop_delegation",
        )
