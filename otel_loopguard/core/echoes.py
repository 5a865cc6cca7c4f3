"""How long a run has gone round among results that it knew, whatever it asked for.

Where the arguments drift, no call is equal to an earlier one, and where results take turns, no tool
gives the same one in a row. What is left is that nothing is learned, and that the same results of
several tools follow each other lap after lap. The results of a sweep come in any order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from otel_loopguard.core.model import Outcome
from otel_loopguard.core.streaks import is_bare

if TYPE_CHECKING:
    from otel_loopguard.core.evidence import Evidence
    from otel_loopguard.core.model import Step
    from otel_loopguard.core.records import CallRecord, Moment, Once

MOST: Final = 16
"""Among more results it is too wide a round to be told."""
DRIFTING: Final = 0.25
"""At least this share of the calls has to have arguments that never came before."""
FOLLOWING: Final = 0.55
"""At least this share of the results has to come after the one that it mostly comes after."""

# Before Python 3.12 it takes long to read a member from its enum.
_OK: Final = Outcome.OK
_End = tuple[str, str]


class Round(NamedTuple):
    """A round among known results: how many they are, how often each came, whose they are."""

    results: int
    laps: int
    actions: frozenset[str]
    first: Moment


class Echoes:
    """The calls since a run last learned or changed something. Of fixed size."""

    __slots__ = ("_calls", "_drifted", "_first", "_followed", "_last", "_latest", "_next")

    def __init__(self, now: Moment) -> None:
        self._next: dict[_End, tuple[_End, int]] = {}
        self._calls = self._drifted = self._followed = 0
        self._last: _End | None = None
        self._latest = self._first = now

    @property
    def round(self) -> Round | None:
        """The round that is gone now; None while there is none."""
        results, calls = len(self._next), self._calls
        if not 1 < results <= MOST or calls < 2 * results:
            return None
        if self._drifted < DRIFTING * calls or self._followed < FOLLOWING * (calls - results):
            return None
        actions = frozenset(action for action, _ in self._next)
        laps = calls // results + 1  # the first time each of them was news
        return Round(results, laps, actions, self._first) if len(actions) > 1 else None

    def take(self, step: Step, call: CallRecord | Once, learned: Evidence, now: Moment) -> None:
        """Take a call that repeats something. One that does not comes between, and ends it all."""
        latest, self._latest = self._latest, now
        like = call.like
        if like is None or step.outcome is not _OK or is_bare(step) or learned.moved:
            self._begin(now)
            return
        if learned.changed or now.iteration - latest.iteration > 1 or now.waited(step, latest):
            self._begin(now)
        elif now.iteration == latest.iteration and self._calls:
            return  # the calls of one round are one
        self._calls += 1
        self._drifted += call.seen == 1
        end = (step.action, like)
        if self._last is not None and len(self._next) <= MOST:
            self._follow(self._last, end)
        self._last = end

    def _follow(self, last: _End, end: _End) -> None:
        """Note what came after what; what mostly does stays in spite of an exception."""
        known, votes = self._next.get(last, (end, 0))
        if known == end:
            self._followed += votes > 0
            self._next[last] = (end, votes + 1)
        else:
            self._next[last] = (known, votes - 1) if votes > 1 else (end, 1)

    def _begin(self, now: Moment) -> None:
        self._next.clear()
        self._calls = self._drifted = self._followed = 0
        self._last, self._first = None, now
