"""How long the newest rounds of a run have been repeating, for every period from 1 to 8.

One counter a period: it grows while the newest round equals the one a period ago, and falls to zero
else. That is O(periods) a step and finds a cycle in any rotation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, cast

from otel_loopguard.core.records import Moment

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_PERIOD: Final = 8
MAX_ROUND: Final = 64
"""Calls of one round that are told apart; a larger round is unknown, which equals nothing."""

NOT_CAPTURED: Final = "?"
"""Stands for the result of a call that did not fail and whose result was not captured."""

Call = tuple[str, str | None, str | None]
"""Action, digests of arguments and result."""
Element = tuple[str, str, str]
"""A call of which all is known; `~` is before the digest of a masked result."""
Token = tuple[Element, ...] | None
"""One round: its calls, sorted; None where any part of it is unknown, which equals nothing."""

Counters = tuple[int, ...] | list[int]
"""For each period, how many rounds equal the one a period before."""

_LAP: Final = (1 << MAX_PERIOD) - 1
_NO_RUNS: Final[Counters] = (0,) * MAX_PERIOD
_NOWHERE: Final = Moment(None, 0, 0, 0, 0)


class Cycle(NamedTuple):
    """A repeating tail: its period, how many full laps it has, the rounds of one lap, its start.

    `masked` says whether most of what it was told is only like what it was told before, or all was
    told in turns to one and the same call.
    """

    period: int
    laps: int
    lap: tuple[tuple[Element, ...], ...]
    first: Moment
    masked: bool

    @property
    def calls(self) -> int:
        """How many calls one lap has."""
        return sum(map(len, self.lap))

    @property
    def doubtful(self) -> bool:
        """Whether some of the results are not known."""
        return any(result_key == NOT_CAPTURED for round_ in self.lap for _, _, result_key in round_)


class Cycles:
    """The period counters of one run. A round may grow while it is the newest one."""

    __slots__ = (
        "_calls",
        "_exact",
        "_firsts",
        "_newest",
        "_past",
        "_runs",
        "_settled",
        "_vague",
    )

    def __init__(self) -> None:
        self._past: list[tuple[Token, Moment]] = []  # oldest first
        self._settled: Counters = _NO_RUNS
        # the newest round
        self._calls: Sequence[Call] = ()
        self._newest: tuple[Token, Moment] | None = None
        self._runs: Counters = _NO_RUNS
        self._firsts: list[Moment] | None = None
        self._exact = self._vague = (
            0  # for each round that came here a bit, the newest one's lowest
        )

    def clear(self) -> None:
        """Forget everything: what comes next repeats nothing."""
        self.__init__()

    def add(
        self,
        action: str,
        args_key: str | None,
        result_key: str | None,
        now: Moment,
        *,
        opens: bool,
        vague: bool | None = False,
    ) -> bool:
        """Take one call: the first of a new round (`opens`), or one more of the newest round.

        The same call again within a round replaces its result (another attempt at it). Returns
        whether the newest round equals one of the eight before it: else there is no cycle. `vague`
        is a result that its tool has not given before; None says that it tells next to nothing.
        """
        if opens:
            self._exact, self._vague = (bits << 1 & _LAP for bits in (self._exact, self._vague))
        self._exact |= vague is False
        self._vague |= vague is True
        newest = self._newest
        if opens or newest is None:
            calls: list[Call] = [(action, args_key, result_key)]
            token = _make_token(calls)
            self.begin(token, now)
            self._calls = calls
        else:
            moment = self._grow((action, args_key, result_key), newest[1], now)
            token = _make_token(self._calls)
            self._newest, self._runs = (token, moment), _NO_RUNS
        return token is not None and self._count(token)

    def begin(self, token: Token, now: Moment) -> None:
        """Take a new round of one call that equals none of those before it."""
        newest = self._newest
        if newest is not None:
            past = self._past
            past.append(newest)
            if len(past) > MAX_PERIOD:
                del past[0]
        self._settled, self._runs = self._runs, _NO_RUNS
        self._newest, self._calls = (token, now), token or ()

    def _grow(self, call: Call, begun: Moment, now: Moment) -> Moment:
        """Take one more call of the newest round, which began at `begun`; returns where it is."""
        if len(self._calls) <= MAX_ROUND:
            others = [each for each in self._calls if each[:2] != call[:2]]
            self._calls = [*others, call]
        return begun._replace(end_ns=now.end_ns) if now.end_ns > begun.end_ns else begun

    def _count(self, token: tuple[Element, ...]) -> bool:
        """Count the rounds among the past that equal the newest; whether there are any."""
        past = self._past
        if not any(token == earlier for earlier, _ in past):
            return False
        runs = self._runs = [0] * MAX_PERIOD
        firsts = self._firsts = self._firsts or [_NOWHERE] * MAX_PERIOD
        lap_end = past[-1][1]
        for index, (earlier, moment) in enumerate(reversed(past)):
            if earlier == token:
                runs[index] = self._settled[index] + 1
                if runs[index] == 1:
                    firsts[index] = moment._replace(end_ns=lap_end.end_ns, tokens=lap_end.tokens)
        return True

    def laps(self, period: int) -> int:
        """How many full laps of `period` rounds the tail holds; 0 while it has no second one."""
        run = self._runs[period - 1]
        return run // period + 1 if run >= period else 0

    def longest(self, laps: int) -> Cycle | None:
        """The cycle of `laps` laps (from 2 on) that reaches back furthest; of equals, the shortest.

        A cycle that only goes round a part of a longer one (the A, A in A, A, B, A, A, B) does not
        reach as far back.
        """
        runs, firsts, newest = self._runs, self._firsts, self._newest
        if runs is _NO_RUNS or firsts is None or newest is None:
            return None
        best = reach = 0
        for period, run in enumerate(runs, 1):
            if run >= period * (laps - 1) and run + period > reach:
                best, reach = period, run + period
        if not best:
            return None
        lap = [token for token, _ in self._past[len(self._past) - best + 1 :]]
        lap.append(newest[0])
        known = cast("list[tuple[Element, ...]]", lap)  # what is unknown is in no cycle
        newest_lap = (1 << best) - 1  # whose rounds have all come here, as they all repeat
        exact, vague = ((bits & newest_lap).bit_count() for bits in (self._exact, self._vague))
        one_call = len({call[:2] for round_ in known for call in round_}) == 1
        masked = one_call or vague > exact
        return Cycle(best, self.laps(best), tuple(known), firsts[best - 1], masked)


def _make_token(calls: Sequence[Call]) -> Token:
    if len(calls) > MAX_ROUND:
        return None
    known: list[Element] = []
    for action, args_key, result_key in calls:
        if args_key is None or result_key is None:
            return None
        known.append((action, args_key, result_key))
    known.sort()
    return tuple(known)
