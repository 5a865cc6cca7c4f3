"""What the window of a run's models does to it: answers cut off, compactions for nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from otel_loopguard.core.model import FAILED, Outcome
from otel_loopguard.core.sketch import likeness
from otel_loopguard.core.turns import ALIKE, Spell, longer

if TYPE_CHECKING:
    from otel_loopguard.core.model import Step
    from otel_loopguard.core.records import CallRecord, Moment, Once
    from otel_loopguard.core.sketch import Sketch

CAP: Final = 1_000
"""Two answers in a row of so many tokens or more are equally long only at their limit."""
LEAST: Final = 16
"""Who lets a model write fewer tokens than this wants no more of it."""
RAISED: Final = 1.5
"""Who is cut off so much later than before has been given more room, which may do next time."""
FRESH_WEIGHT: Final = 0.25
BROKEN_WEIGHT: Final = 0.5
FREED: Final = 0.05
"""A compaction that frees a smaller share than this has freed next to nothing."""
FETCHED: Final = 3
"""So many results fetched again after a compaction are what it had thrown away."""

_BROKEN: Final = frozenset({Outcome.INVALID_ARGS, Outcome.TRUNCATED})
_TRUNCATED: Final = Outcome.TRUNCATED


class Window:
    """The answers that were cut off, and the compactions, of one run.

    Attributes:
        cut: answers in a row that were cut off at their limit; one that says something new weighs
            less, a call that came out broken adds a half.
        futile: compactions in a row that freed next to nothing.
        fetched: compactions in a row after each of which the same results were fetched again.
    """

    __slots__ = ("_again", "_moment", "_text", "_wrote", "cut", "fetched", "futile")

    def __init__(self) -> None:
        self.cut: Spell | None = None
        self.futile: Spell | None = None
        self.fetched: Spell | None = None
        self._text: Sketch | None = None
        self._wrote = 0
        self._moment: Moment | None = None
        self._again = -1  # how many results were fetched again since; -1 before any compaction

    def start_over(self) -> None:
        """The user spoke."""
        self.cut, self._wrote = None, 0

    def answered(self, step: Step, now: Moment) -> bool:
        """Take an answer of a model; whether it goes on with a row of answers cut off."""
        said = step.said
        wrote = 0 if said is None else said.wrote
        text = None if said is None or said.blank else said.sketch
        is_cut = step.outcome is _TRUNCATED and not 0 < wrote < LEAST
        capped = wrote >= CAP and wrote == self._wrote
        before, earlier, old, self._wrote = self._wrote, self._moment, self._text, wrote
        self._moment, self._text = now, text
        if not is_cut and not capped:
            self.cut = None
        elif not capped and (self.cut is None or wrote >= RAISED * before > 0):
            self.cut = Spell(now)
        else:
            # Of two that are equally long the first was cut off as well, as is known by now only.
            cut = self.cut = self.cut or Spell(earlier or now)
            cut.count += 1
            cut.weight += FRESH_WEIGHT if _is_new(text, old) else 1.0
        return self.cut is not None

    def called(self, step: Step, call: CallRecord | Once, now: Moment) -> bool:
        """Take a call; whether it is broken after an answer that was cut off, or was thrown away.

        A result that a compaction threw away is fetched again once it is needed: that is fine. That
        the next compaction throws the same away is not.
        """
        fetched = self._again >= 0 and call.same > 1
        if fetched:
            self._again += 1
            if self._again == FETCHED:
                self.fetched = longer(self.fetched, now)
        if self.cut is not None and step.outcome in _BROKEN:
            self.cut.weight += BROKEN_WEIGHT
            return True
        if step.outcome not in FAILED:
            self.cut = None
        return fetched

    def compacted(self, step: Step, now: Moment) -> bool:
        """Take a compaction; whether it was for nothing."""
        before, after = step.tokens, step.size or 0
        if before and after:
            self.futile = longer(self.futile, now) if 1 - after / before < FREED else None
        if self._again < FETCHED:
            self.fetched = None
        self._again = 0
        return self.futile is not None


def _is_new(text: Sketch | None, old: Sketch | None) -> bool:
    """Whether an answer says something else than the one before."""
    return text is not None and (old is None or likeness(text, old) < ALIKE[text.form])
