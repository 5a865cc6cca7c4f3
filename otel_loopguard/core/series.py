"""Whether tasks are a series: one instruction with the name of another thing in it each time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from otel_loopguard.core.subject import Subject

LONGEST: Final = 4
"""So many words may name a thing."""
MAX_KNOWN: Final = 256

_Words = tuple[int, ...]


class Series:
    """The tasks that one agent gives another. Of fixed size."""

    __slots__ = ("_frame", "_known", "_last")

    def __init__(self) -> None:
        self._last: _Words = ()
        self._frame: tuple[_Words, _Words] | None = None
        self._known: set[int] = set()

    def another(self, subject: Subject | None) -> bool:
        """Take a task; whether it is the next of a series, which takes two to be known as one.

        It is if it is the one before with words in one place that were in none before, and so was
        that one, in the same place. Who asks again in other words uses them in other places.
        """
        words = subject[0][1] if subject is not None and len(subject) == 1 else ()
        before, self._frame = self._frame, _frame(self._last, words, self._known)
        self._last = words
        if len(self._known) < MAX_KNOWN:
            self._known.update(words)
        return before is not None and before == self._frame


def _frame(old: _Words, new: _Words, known: set[int]) -> tuple[_Words, _Words] | None:
    """What stands before and behind the thing that two tasks name; None if they are no series."""
    shorter = min(len(old), len(new))
    start = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    end = next((at for at in range(shorter - start) if old[~at] != new[~at]), shorter - start)
    thing = new[start : len(new) - end]
    longest = max(len(thing), len(old) - start - end)
    if not 0 < longest <= min(LONGEST, start + end) or not thing or not known.isdisjoint(thing):
        return None
    return new[:start], new[len(new) - end :]
