"""Before a run: does the message point at something that the history does not contain?

"Delete that file", said first of all, sends an agent on a search that cannot end well. It should
ask which one is meant.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from otel_loopguard.breaking.pointers import NO_THINGS, POINTERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_ITEM: Final = re.compile(r"^\s*(?:[-*\u2022]|\(?\d{1,3}[.)])\s+\S", re.MULTILINE)
_COMMAS: Final = frozenset(",;\uff0c\u3001")
_STEM: Final = 3
"""A noun is found again if all but its last letters are: `files` in `file`."""
_LONGEST: Final = 20_000
"""Of the message, and of all the history together, so many of the newest characters are read."""


class Unresolved(NamedTuple):
    """What a message points at, and nobody said.

    Attributes:
        words: the words that point, as they stand in the message.
        start: where they stand in the message.
    """

    words: str
    start: int


def unresolved(
    message: str,
    history: Sequence[str] = (),
    *,
    judge: Callable[[str, Sequence[str]], bool | None] | None = None,
) -> Unresolved | None:
    """The first thing that a message points at and that neither it nor the history contains.

    It works without a model, by the words of a few languages, and rather lets a message pass than
    asks in vain: where nothing is known of a pointer, None is returned.

    Args:
        message: what the user says.
        history: what was said before, oldest first.
        judge: a model's word, asked about a message in which something seems to be missing: True if
            the history holds it after all, False if it does not, None if it cannot say.
    """
    text = message[-_LONGEST:]
    missing = next(_missing(text, "\n".join(history)[-_LONGEST:]), None)
    if missing is None:
        return None
    if judge is not None and judge(message, history) is True:
        return None
    return missing


def _missing(message: str, history: str) -> Iterator[Unresolved]:
    for pointer in POINTERS:
        for match in pointer.words.finditer(message):
            before, noun = message[: match.start()], match.groupdict().get("noun")
            if pointer.item:
                known = _has_items(history, before, max(pointer.item, 1))
            else:
                known = _has_noun(history, before, (noun or "").lower())
            if not known:
                yield Unresolved(match.group(), match.start())


def _has_items(history: str, before: str, count: int) -> bool:
    """Whether so many things were listed, or named in a sentence."""
    listed = len(_ITEM.findall(history))
    if listed >= count or not _COMMAS.isdisjoint(before):
        return True
    return not listed and bool(history.strip())


def _has_noun(history: str, before: str, noun: str) -> bool:
    """Whether a noun was said; anything at all will do where it is not said but meant ("that")."""
    if not noun:
        return bool(history.strip())
    stem = noun[: max(_STEM, len(noun) - 2)]
    return noun in NO_THINGS or stem in history.lower() or stem in before.lower()
