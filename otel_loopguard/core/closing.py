"""What the gauge of stuck runs and the histogram of iterations learn of runs that go away."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from otel_loopguard.core.model import RunEnd, StuckChange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from otel_loopguard.core.episode import Episode


class Closing(NamedTuple):
    """What changes when runs go away."""

    changes: tuple[StuckChange, ...] = ()
    ended: tuple[RunEnd, ...] = ()


def close_all(episodes: Sequence[Episode], reason: str) -> Closing:
    """End runs, each once, and say what that changes."""
    changes = tuple(StuckChange(e.run, e.stuck, None) for e in episodes if e.stuck is not None)
    ended = tuple(
        RunEnd(e.run, e.agent, e.iteration, reason, e.stuck) for e in episodes if not e.closed
    )
    for episode in episodes:
        episode.stuck, episode.closed = None, True
    return Closing(changes, ended)
