"""The runs of this process, bounded in number and in memory."""

from __future__ import annotations

from collections import OrderedDict
from itertools import chain
from typing import TYPE_CHECKING, Final

from otel_loopguard.core.episode import Episode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_AWAKE: Final = 1_000


class Runs:
    """The episodes by run, in the order of their newest step.

    The newest 1,000 are awake. Those behind them are condensed: they forget what happened long ago
    and go on as usual with their next step. Beyond `limit` the one that was silent longest is lost.

    Attributes:
        awake: the episode of a run that is awake, as most that are asked for; else None.
        touch: says that a run that is awake has the newest step.
    """

    __slots__ = ("_asleep", "_awake", "_limit", "awake", "touch")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._awake: OrderedDict[str, Episode] = OrderedDict()
        self.awake: Callable[[str], Episode | None] = self._awake.get
        self.touch: Callable[[str], None] = self._awake.move_to_end
        self._asleep: OrderedDict[str, Episode] = OrderedDict()

    def __len__(self) -> int:
        return len(self._awake) + len(self._asleep)

    def __iter__(self) -> Iterator[Episode]:
        return chain(self._asleep.values(), self._awake.values())

    def get(self, run: str) -> Episode | None:
        """The episode of a run. Safe without a lock: at worst it misses one that wakes."""
        return self._awake.get(run) or self._asleep.get(run)

    def pop(self, run: str) -> Episode | None:
        """Forget a run."""
        return self._awake.pop(run, None) or self._asleep.pop(run, None)

    def expire(self, now_ns: int, ttl_ns: int) -> list[Episode]:
        """Forget the runs that have been silent for so long; returns them.

        A run whose steps never said when they were lives from the first call of this on.
        """
        over: list[Episode] = []
        for episode in self:
            episode.last_seen_ns = episode.last_seen_ns or now_ns
            if now_ns - episode.last_seen_ns >= ttl_ns:
                over.append(episode)
        for episode in over:
            self.pop(episode.run)
        return over

    def wake(self, run: str, agent: str | None) -> tuple[Episode, Episode | None]:
        """Return the episode of a run, new or old, and the episode that had to make room for it."""
        episode = self._awake.get(run)
        if episode is not None:
            self._awake.move_to_end(run)
            return episode, None
        episode = self._awake[run] = self._asleep.get(run) or Episode(run, agent)
        self._asleep.pop(run, None)
        if len(self._awake) > min(MAX_AWAKE, self._limit):
            idle = next(iter(self._awake.values()))
            idle.condense()
            self._asleep[idle.run] = idle
            del self._awake[idle.run]
        lost = self._asleep.popitem(last=False)[1] if len(self) > self._limit else None
        return episode, lost
