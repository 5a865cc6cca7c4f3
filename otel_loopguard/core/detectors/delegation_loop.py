"""delegation_loop: agents hand each other the same task."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from otel_loopguard.core.detectors.base import found
from otel_loopguard.core.model import Pattern

if TYPE_CHECKING:
    from otel_loopguard.core.episode import Episode
    from otel_loopguard.core.handoffs import Errand, Handoffs
    from otel_loopguard.core.model import Finding, Step
    from otel_loopguard.core.records import Moment

    _Round = tuple[str, tuple[int, int], Moment, float, str]  # the last is the evidence


@dataclass(frozen=True, slots=True)
class DelegationLoop:
    """One agent asks another for the same again, or all pass a task on and nobody does it.

    The same is the same text, or one that names the same things (numbers, names, quoted texts) in
    mostly the same words. It takes one more where a little came of it, at most three new results a
    time. Counts as in hard_loop; frameworks bound hand-offs by about eight.
    Catches: support -> billing -> support with no work between; a brief that each passes on.
    Leaves alone: "check A, B and C", then "check B and C"; a writer and a critic with new drafts.
    """

    only_repeats: ClassVar[bool] = True
    warning: int = field(default=3, metadata={"doc": "same task, nothing came of it: warning"})
    critical: int = field(default=5, metadata={"doc": "same task, nothing came of it: critical"})
    little_warning: int = field(default=4, metadata={"doc": "same task, little came: warning"})
    little_critical: int = field(default=12, metadata={"doc": "same task, little came: critical"})
    hops_warning: int = field(default=4, metadata={"doc": "agents that pass a task on: warning"})
    hops_critical: int = field(default=6, metadata={"doc": "agents that pass a task on: critical"})
    relay_warning: int = field(default=7, metadata={"doc": "nothing but hand-overs: warning"})
    relay_critical: int = field(default=12, metadata={"doc": "nothing but hand-overs: critical"})

    def __call__(self, episode: Episode, step: Step, /) -> Finding | None:
        """See `Detector`."""
        handoffs = episode.handoffs
        if handoffs is None or (goes_round := self._round(handoffs)) is None:
            return None
        key, limits, first, times, evidence = goes_round
        return found(
            episode,
            step,
            Pattern.DELEGATION_LOOP,
            key=key,
            limits=limits,
            first=first,
            repeats=int(times),
            evidence=evidence,
        )

    def _round(self, handoffs: Handoffs) -> _Round | None:
        passing, errand, relay = handoffs.baton.passed, handoffs.errand, handoffs.relay
        if passing and passing.hops >= self.hops_warning:
            said = f"{passing.hops} agents in a row passed the same task on"
            limits, key = (self.hops_warning, self.hops_critical), f"passed:{passing.key}"
            return key, limits, passing.first, passing.hops, said
        if errand is None:
            return None
        if relay and relay.times >= self.relay_warning and errand.idle < self.warning:
            count = len(relay.agents)
            said = f"{count} agents handed over {relay.times:.0f} times, and that was all"
            limits, key = (self.relay_warning, self.relay_critical), f"{sorted(relay.agents)}"
            return key, limits, relay.first, relay.times, said
        return self._errand(errand)

    def _errand(self, errand: Errand) -> _Round:
        limits, first, times = (self.warning, self.critical), errand.first_idle, errand.idle
        if times < self.warning and errand.task is not None and errand.task.says_what:
            limits, first = (self.little_warning, self.little_critical), errand.first
            times = errand.times
        said = f"one agent gave another the same task {times:.0f} times, with little or no result"
        return f"{errand.caller}:{errand.target}:{errand.key}", limits, first, times, said
