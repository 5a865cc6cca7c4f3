"""How far the ladder of each loop of a run was climbed. Bounded; O(1) a step.

A rung works on the next answer of the model at the soonest. So the next rung is due only once the
loop was seen to go on after an answer that came later than the last rung: one step of grace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from otel_loopguard.core.model import Kind, Source
from otel_loopguard.core.records import remember
from otel_loopguard.core.recovery import END, Climb, Remedy, by_note, missed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from otel_loopguard.core.model import Finding, Pattern, Step

MAX_LOOPS: Final = 64


class Progress:
    """How far one ladder was climbed.

    Attributes:
        passed: how many of its rungs are left behind, taken or not.
        tried: what was done.
        nth: how often something was done.
        notes: how often a call was answered with a note in place of its result.
        rung_at, seen_at: how many answers the model had given when a rung was taken last, and when
            the loop was last seen to go on.
        by_model: whether it shows in what the model says, not in its calls.
        hooked: whether its calls are seen before they are made, and can be held back.
        round: the tool round that it was last seen in.
    """

    __slots__ = (
        "by_model", "hooked", "notes", "nth", "passed", "round", "rung_at", "seen_at", "tried",
    )  # fmt: skip

    def __init__(self) -> None:
        self.passed = self.nth = self.notes = self.round = 0
        self.tried: tuple[Remedy, ...] = ()
        self.rung_at = self.seen_at = -1
        self.by_model = self.hooked = False

    def take(self, climbed: Climb, turn: int) -> None:
        """A rung is taken."""
        self.nth += 1
        self.passed = max(self.passed, climbed.passed)
        self.rung_at = turn
        if climbed.rung.remedy not in self.tried:
            self.tried = (*self.tried, climbed.rung.remedy)


class Climbs:
    """The ladders of one run.

    Attributes:
        turn: how many answers the model has given since something went wrong first.
        round: the newest tool round.
        moves: grows with all that may change what is to be done next.
    """

    __slots__ = ("_loops", "moves", "round", "turn")

    def __init__(self) -> None:
        self.turn = self.round = self.moves = 0
        self._loops: dict[str, Progress] = {}

    def of(self, identity: str) -> Progress:
        """How far the ladder of a loop was climbed."""
        progress = self._loops.get(identity) or Progress()
        remember(self._loops, identity, progress, MAX_LOOPS)
        return progress

    def take(
        self, step: Step, found: Iterable[Finding], iteration: int, *, asked: Collection[str] = ()
    ) -> None:
        """Take a step, and the loops that are seen to go on at it.

        Args:
            step: the newest step. A model that failed has not answered: it is asked again.
            found: the findings that hold at it.
            iteration: the tool round that it belongs to.
            asked: the tools whose calls are asked about before they are made.
        """
        by_model = step.kind is Kind.MODEL
        if by_model and step.error is not None:
            return
        self.moves += 1
        self.turn += by_model
        self.round = iteration
        if step.kind is Kind.USER:
            self._loops.clear()
        for finding in found:
            progress = self.of(finding.identity)
            progress.seen_at, progress.round = self.turn, iteration
            progress.by_model = by_model
            hooked = step.source is Source.HOOK or step.action in asked
            progress.hooked = hooked and step.kind is Kind.TOOL

    def goes_on(self, progress: Progress) -> bool:
        """Whether a loop was still there when one of its kind could last be seen."""
        if progress.by_model:
            return progress.seen_at == self.turn
        return progress.round == self.round

    def hold(self, finding: Finding, grace: int | None) -> tuple[Progress, Climb]:
        """A call is held back; what that is on the ladder.

        Args:
            finding: the loop.
            grace: after how many notes the run is ended; None for never.
        """
        progress = self.of(finding.identity)
        progress.notes += 1
        progress.seen_at = self.turn
        self.moves += 1
        pattern = finding.pattern
        if grace is not None and progress.notes > grace:
            climbed = self.end(pattern, progress)
        else:
            climbed = by_note(pattern, progress.tried)
        if progress.notes == 1 or climbed.rung is END:
            progress.take(climbed, self.turn)
        else:
            progress.nth += 1
        return progress, climbed

    def end(self, pattern: Pattern, progress: Progress, *, asks: bool = False) -> Climb:
        """The last rung."""
        return Climb(END, missed(pattern, None, progress.tried, asks=asks))
