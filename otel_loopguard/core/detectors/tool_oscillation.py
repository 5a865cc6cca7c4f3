"""tool_oscillation: A, B, A, B, or any cycle of up to eight rounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, ClassVar

from otel_loopguard.core.detectors.base import found
from otel_loopguard.core.model import Pattern
from otel_loopguard.core.weights import MASKED_WEIGHT

if TYPE_CHECKING:
    from otel_loopguard.core.cycles import Cycle
    from otel_loopguard.core.episode import Episode
    from otel_loopguard.core.model import Finding, Step


def _identity(cycle: Cycle) -> str:
    """The same for each rotation of a cycle."""
    lap = [",".join("/".join(call) for call in sorted(token)) for token in cycle.lap]
    return min("|".join(lap[i:] + lap[:i]) for i in range(len(lap)))


@dataclass(frozen=True, slots=True)
class ToolOscillation:
    """A cycle of two to eight rounds with equal calls and equal results in each lap.

    Catches: open, close, open, close with the same answers; a tour of five tools, three times.
    Leaves alone: read, write, read, write with new content; poll and sleep until a job is done.
    """

    only_repeats: ClassVar[bool] = True
    warning: int = field(default=3, metadata={"doc": "equal laps of a cycle: warning"})
    critical: int = field(default=5, metadata={"doc": "equal laps of a cycle: critical"})
    unknown_laps: int = field(
        default=4, metadata={"doc": "equal laps of which results are not known: warning"}
    )
    poll_warning: int = field(default=10, metadata={"doc": "laps with a pending result: warning"})
    poll_critical: int = field(default=20, metadata={"doc": "laps with a pending result: critical"})

    def __call__(self, episode: Episode, step: Step, /) -> Finding | None:
        """See `Detector`."""
        cycle = episode.cycle
        if cycle is None or cycle.period == 1:
            return None
        polls = episode.deeds.polls(cycle.period)
        limits = (self.poll_warning, self.poll_critical) if polls else (self.warning, self.critical)
        if not polls and episode.deeds.waited(cycle.period):
            limits = (self.unknown_laps, self.critical)  # who knows what it waits for
        if cycle.doubtful:
            limits = (self.poll_warning if polls else self.unknown_laps, inf)
        return found(
            episode,
            step,
            Pattern.TOOL_OSCILLATION,
            key=_identity(cycle),
            limits=limits,
            first=cycle.first,
            repeats=cycle.laps,
            weight=cycle.laps if not cycle.masked else 1 + (cycle.laps - 1) * MASKED_WEIGHT,
            evidence=f"a cycle of {cycle.period} steps came {cycle.laps} times with the same calls "
            f"and {'results that are not known' if cycle.doubtful else 'the same results'}",
            period=cycle.period,
            action=step.action,
            args_key=step.args_key,
            wasted_calls=(cycle.laps - 1) * cycle.calls,
            covers=frozenset((call[0], call[1]) for lap in cycle.lap for call in lap),
            doubt=cycle.masked or cycle.doubtful,
        )
