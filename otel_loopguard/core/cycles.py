"""How long the newest rounds of a run have been repeating, for every period from 1 to 8.

One counter a period: it grows while the newest token equals the one a period ago, and falls to zero
else. That is O(periods) a step and finds a cycle in any rotation.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from otel_loopguard.core.records import Mark

MAX_PERIOD: Final = 8

Element = tuple[str, str, str]
"""Action, arguments' digest, result's digest: all three known."""
Token = frozenset[Element] | None
"""One round: the set of its calls; None where any part of it is unknown, which equals nothing."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """A repeating tail: its period, how many full laps it has, the rounds of one lap, its start."""

    period: int
    laps: int
    lap: tuple[frozenset[Element], ...]
    first: Mark


class Cycles:
    """The period counters of one run. A round may grow while it is the newest one."""

    __slots__ = ("_elements", "_firsts", "_mark", "_past", "_runs", "_settled", "_token")

    def __init__(self) -> None:
        self._past: deque[tuple[Token, Mark]] = deque(maxlen=MAX_PERIOD)
        self._settled = [0] * (MAX_PERIOD + 1)
        self._runs = [0] * (MAX_PERIOD + 1)
        self._firsts: list[Mark | None] = [None] * (MAX_PERIOD + 1)
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
        if opens and self._mark is not None:
            self._past.append((self._token, self._mark))
            self._settled = self._runs
            self._runs = [0] * (MAX_PERIOD + 1)
        if opens:
            self._elements = {}
        self._elements[action, args_key] = result_key
        self._mark = mark
        self._token = self._make_token()
        self._count()

    def _make_token(self) -> Token:
        known: list[Element] = []
        for (action, args_key), result_key in self._elements.items():
            if args_key is None or result_key is None:
                return None
            known.append((action, args_key, result_key))
        return frozenset(known)

    def _count(self) -> None:
        past, token = self._past, self._token
        for period in range(1, len(past) + 1):
            if token is None or past[-period][0] != token:
                self._runs[period] = 0
                continue
            self._runs[period] = self._settled[period] + 1
            if self._settled[period] == 0:
                lap_end = past[-1][1]
                self._firsts[period] = Mark(
                    past[-period][1].span_id, lap_end.end_ns, lap_end.tokens
                )

    def laps(self, period: int) -> int:
        """How many full laps of `period` rounds the tail holds; 0 while it has no second one."""
        run = self._runs[period]
        return run // period + 1 if run >= period else 0

    def longest(self, laps: int) -> Cycle | None:
        """The cycle of at least `laps` laps at the tail; of several, the shortest counts."""
        for period in range(1, MAX_PERIOD + 1):
            if self.laps(period) >= laps:
                return self._cycle(period)
        return None

    def _cycle(self, period: int) -> Cycle | None:
        first, token = self._firsts[period], self._token
        if first is None or token is None:
            return None
        tokens = [*(past for past, _ in list(self._past)[len(self._past) - period + 1 :]), token]
        lap = tuple(each for each in tokens if each is not None)
        return Cycle(period, self.laps(period), lap, first)
