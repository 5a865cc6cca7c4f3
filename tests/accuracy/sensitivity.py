"""How much hangs on each number: every one is moved, and the verdicts are counted again."""

from __future__ import annotations

import multiprocessing
from typing import TYPE_CHECKING, NamedTuple

from tests.accuracy.counting import Tally, judge, total
from tests.accuracy.numbers import Move, moves
from tests.accuracy.report import SEVERITIES, WARNING
from tests.accuracy.suites import Suite, defaults, hits_of
from tests.figures import Figures

if TYPE_CHECKING:
    from otel_loopguard.settings import Settings

LIMIT = 4.99
"""Points by which precision and recall on all suites together may move: less than 5."""
WORKERS = 2
MOVES = 25
"""How many moves a worker makes: what is loaded anew each time is never quite let go of."""

Tallies = dict[str, Tally]
_suites: list[Suite] = []  # each worker has its own


class Moved(NamedTuple):
    """By how many points a share went up."""

    precision: float
    recall: float

    @property
    def worst(self) -> float:
        """The larger of the two, whichever way it went."""
        return max(abs(self.precision), abs(self.recall))


def main(suites: list[Suite]) -> int:
    """Print a table of what moves anything; 1 if something moves too much."""
    _take(suites)
    base, every = _tallies(defaults()), list(moves())
    columns = ("all: P, R (points)", *base)
    print(f"{'moved':64}{''.join(f'{name:>20}' for name in columns)}")
    inert, stuck = 0, list[str]()
    with (
        Figures("sensitivity") as figures,
        multiprocessing.get_context("spawn").Pool(WORKERS, _take, (suites,), MOVES) as workers,
    ):
        for move, tallies in zip(every, workers.imap(_after, every), strict=True):
            if isinstance(tallies, str):
                stuck.append(f"{move}: {tallies}")
            elif tallies == base:
                inert += 1
            else:
                whole = _moved(total(base.values()), total(tallies.values()))
                figures.add(str(move), round(whole.worst, 2), "points", LIMIT)
                rest = [_moved(base[name], tallies[name]) for name in base]
                cells = "".join(f"{p:+13.1f}, {r:+5.1f}" for p, r in (whole, *rest))
                print(f"{move!s:64}{cells}{'  TOO MUCH' * (whole.worst > LIMIT)}", flush=True)
    print(f"{len(every)} moves; {inert} of them change nothing")
    for each in stuck:
        print(f"cannot be moved alone: {each}")
    return 0 if figures.all_hold else 1


def _take(suites: list[Suite]) -> None:
    _suites[:] = suites


def _after(move: Move) -> Tallies | str:
    """The verdicts with a number moved, or why the package does not work so."""
    try:
        return _tallies(move.apply())
    except Exception as fault:
        return f"{type(fault).__name__}: {fault}"


def _tallies(settings: Settings) -> Tallies:
    found: Tallies = {}
    for suite in _suites:
        findings = suite.findings(settings)
        judged = zip(suite.cases, findings, strict=True)
        found[suite.name] = total(
            judge(case, hits_of(each, SEVERITIES[WARNING])) for case, each in judged
        )
    return found


def _moved(before: Tally, after: Tally) -> Moved:
    return Moved(100 * (after.precision - before.precision), 100 * (after.recall - before.recall))
