"""Long cycles that other steps interrupt: the same few calls in each lap, and now and then another.

An exact cycle is over when one other step comes between. Here each call of a lap is counted by
itself, whatever was learned meanwhile, and the laps are told by how many rounds they took.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from otel_loopguard.core.cycles import Cycle

if TYPE_CHECKING:
    from otel_loopguard.core.cycles import Element
    from otel_loopguard.core.records import CallRecord, Moment

LAPS: Final = 3
FEWEST: Final = 4
"""Of fewer calls a lap is short, and what comes back after so few rounds is counted as it is."""
MOST: Final = 16
OTHERS: Final = (("*", "*", "*"),)
"""Stands for the other steps in a lap: with them it is another cycle than without."""


class Tours:
    """The calls of one lap, each taken when it comes for the third time. Of fixed size."""

    __slots__ = ("_epoch", "_first", "_lap", "_latest")

    def __init__(self) -> None:
        self._epoch = self._latest = 0
        self._first: Moment | None = None
        self._lap: list[tuple[Element, ...]] = []

    def take(self, call: CallRecord, element: Element, now: Moment, epoch: int) -> Cycle | None:
        """A call came again with an equal result; the cycle of which it begins another lap.

        There is one if a lap has at least four calls, and at most one other step came in each. It
        has three laps, however often it went round: others said something new meanwhile.
        """
        call.returns += 1
        if call.returns == LAPS:
            self._reach(call, element, now, epoch)
        first, calls, laps = self._first, len(self._lap), call.returns - 1
        if laps < LAPS or first is None or calls < FEWEST or epoch != self._epoch:
            return None
        others = now.iteration - first.iteration - laps * calls
        if not 0 <= others <= laps:
            return None
        masked = any(result.startswith("~") for each in self._lap for _, _, result in each)
        return Cycle(calls, LAPS, (*self._lap, OTHERS), first, masked)

    def _reach(self, call: CallRecord, element: Element, now: Moment, epoch: int) -> None:
        """A call came for the third time: the next one of a lap, or the first."""
        follows = now.iteration - self._latest in (1, 2) and len(self._lap) < MOST
        if epoch != self._epoch or not follows:
            self._epoch, self._first = epoch, call.begun
            self._lap.clear()
        self._lap.append((element,))
        self._latest = now.iteration
