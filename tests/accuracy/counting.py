"""How verdicts are counted.

A loop is caught when something speaks at or after its `loop_start` and at or before its
`expect_by`, where those are given. Speaking of a quiet case is a false alarm, and so is speaking
before a loop has begun, in the suites that know exactly when it does. Cases without an `expect` say
only how often there is an alarm.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.accuracy.suites import Case, Hits

KNOW_THE_START = {"reports", "own"}
"""Suites whose `loop_start` is exact."""


@dataclass(frozen=True)
class Tally:
    """How often what happened."""

    loops: int = 0
    caught: int = 0
    late: int = 0
    missed: int = 0
    quiet: int = 0
    false: int = 0
    early: int = 0
    unlabelled: int = 0
    unlabelled_alarms: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def alarms(self) -> int:
        """False alarms, early ones included."""
        return self.false + self.early

    @property
    def recall(self) -> float:
        """The share of the loops that was caught in time; 1 if there are none."""
        return self.caught / self.loops if self.loops else 1.0

    @property
    def precision(self) -> float:
        """The share of what was caught among all that was spoken of; 1 if nothing was."""
        spoken = self.caught + self.alarms
        return self.caught / spoken if spoken else 1.0


def judge(case: Case, hits: Hits) -> Tally:
    """What speaking at these steps of a case counts as."""
    expect = case.get("expect")
    if expect is None:
        return Tally(unlabelled=1, unlabelled_alarms=bool(hits))
    if not expect:
        return Tally(quiet=1, false=bool(hits))
    start = case.get("loop_start", 1) if case.get("suite") in KNOW_THE_START else 1
    early = any(step < start for step in hits)
    first = next((step for step in hits if step >= start), None)
    if first is None:
        return Tally(loops=1, missed=1, early=early)
    in_time = first <= case.get("expect_by", first)
    return Tally(loops=1, caught=in_time, late=not in_time, early=early)


def pattern_of(case: Case) -> str:
    """The pattern that a case is labelled with; some real runs have several, some none."""
    label = case.get("pattern") or "none"
    return label if isinstance(label, str) else ",".join(label)


def total(tallies: Iterable[Tally]) -> Tally:
    """All together."""
    return sum(tallies, Tally())


def by_pattern(judged: Iterable[tuple[Case, Tally]]) -> Mapping[str, Tally]:
    """One tally for each pattern that cases are labelled with, by its name."""
    found: dict[str, Tally] = defaultdict(Tally)
    for case, tally in judged:
        found[pattern_of(case)] += tally
    return dict(sorted(found.items()))
