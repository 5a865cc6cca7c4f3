"""How long the newest rounds of a run have been repeating, for every period from 1 to 8.

One counter a period: it grows while the newest round equals the one a period ago, and falls to zero
else. That is O(periods) a step and finds a cycle in any rotation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from otel_loopguard.core.records import Mark

MAX_PERIOD: Final = 8
MAX_ROUND: Final = 64
"""Calls of one round that are told apart; a larger round is unknown, which equals nothing."""

Element = tuple[str, str, str]
"""Action, arguments' digest, result's digest: all three known."""
Token = tuple[Element, ...] | None
"""One round: its calls, sorted; None where any part of it is unknown, which equals nothing."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """A repeating tail: its period, how many full laps it has, the rounds of one lap, its start."""

    period: int
    laps: int
    lap: tuple[tuple[Element, ...], ...]
    first: Mark

    @property
    def calls(self) -> int:
        """How many calls one lap has."""
        return sum(map(len, self.lap))


class Cycles:
    """The period counters of one run. A round may grow while it is the newest one."""

    __slots__ = ("_elements", "_firsts", "_mark", "_past", "_runs", "_settled", "_token")

    def __init__(self) -> None:
        self._past: list[tuple[Token, Mark]] = []
        self._settled: list[int] = [0] * MAX_PERIOD
        self._runs: list[int] = [0] * MAX_PERIOD
        self._firsts: list[Mark] = [Mark(None, 0, 0, 0)] * MAX_PERIOD
        self._elements: dict[tuple[str, str | None], str | None] = {}
        self._token: Token = None
        self._mark: Mark | None = None

    def clear(self) -> None:
        """Forget everything: what comes next repeats nothing."""
        self.__init__()

    def add(
        self, action: str, args_key: str | None, result_key: str | None, mark: Mark, *, opens: bool
    ) -> None:
        """Take one call: the first of a new round (`opens`), or one more of the newest round.

        The same call again within a round replaces its result (another attempt at it).
        """
        if opens or self._mark is None:
            self._open(mark)
        else:
            self._mark = self._mark._replace(end_ns=max(mark.end_ns, self._mark.end_ns))
        if len(self._elements) <= MAX_ROUND:
            self._elements[action, args_key] = result_key
        self._token = self._make_token()
        self._count()

    def _open(self, mark: Mark) -> None:
        if self._mark is not None:
            self._past.append((self._token, self._mark))
            del self._past[:-MAX_PERIOD]
            self._settled, self._runs = self._runs, self._settled
        self._elements.clear()
        self._mark = mark

    def _make_token(self) -> Token:
        if len(self._elements) > MAX_ROUND:
            return None
        known: list[Element] = []
        for (action, args_key), result_key in self._elements.items():
            if args_key is None or result_key is None:
                return None
            known.append((action, args_key, result_key))
        return tuple(sorted(known))

    def _count(self) -> None:
        token, past = self._token, self._past
        for index, (earlier, mark) in enumerate(reversed(past)):
            if token is None or earlier != token:
                self._runs[index] = 0
                continue
            self._runs[index] = self._settled[index] + 1
            if self._runs[index] == 1:
                lap_end = past[-1][1]
                self._firsts[index] = mark._replace(end_ns=lap_end.end_ns, tokens=lap_end.tokens)

    def laps(self, period: int) -> int:
        """How many full laps of `period` rounds the tail holds; 0 while it has no second one."""
        run = self._runs[period - 1]
        return run // period + 1 if run >= period else 0

    def longest(self, laps: int) -> Cycle | None:
        """The cycle of at least `laps` laps that reaches back furthest; of equals, the shortest.

        A cycle that only goes round a part of a longer one (the A, A in A, A, B, A, A, B) does not
        reach as far back.
        """
        runs = self._runs
        if not any(runs):
            return None
        whole = [period for period in range(1, MAX_PERIOD + 1) if self.laps(period) >= laps]
        if not whole:
            return None
        best = max(whole, key=lambda period: (runs[period - 1] + period, -period))
        past = [token for token, _ in self._past[len(self._past) - best + 1 :]]
        lap = tuple(token for token in (*past, self._token) if token is not None)
        return Cycle(best, self.laps(best), lap, self._firsts[best - 1])
