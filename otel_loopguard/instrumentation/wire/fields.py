"""Fields of dicts and SDK objects alike: what is not there, or is no such thing, is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

MAX_TEXT = 1_000_000
"""Characters of one streamed text that are kept."""


def get(obj: object, name: str) -> object:
    """Return a field of a dict or an SDK object, None without it."""
    if isinstance(obj, (dict, Mapping)):  # dict first: the check of an abstract class is slow
        return cast("Mapping[str, object]", obj).get(name)
    return getattr(obj, name, None)


def items(obj: object) -> Sequence[object]:
    """Return a list as it is, and an empty one for anything else."""
    if obj is None or isinstance(obj, (str, bytes, bytearray)):
        return ()
    return cast("Sequence[object]", obj) if isinstance(obj, (list, Sequence)) else ()


def string(obj: object) -> str | None:
    """Return a text that is not empty, else None."""
    return obj if isinstance(obj, str) and obj else None


def count(obj: object, *path: str) -> int:
    """Return a number somewhere in an object, 0 without it."""
    for name in path:
        obj = get(obj, name)
    return obj if isinstance(obj, int) else 0


def text_of(content: object) -> str:
    """Return the text of a content: itself, or that of its parts."""
    if isinstance(content, str):
        return content
    return "".join(string(get(part, "text")) or "" for part in items(content))


def result_of(content: object) -> object:
    """Return a tool's result: its text where all of it is text, else the content as it is."""
    parts = items(content)
    if parts and all(isinstance(get(part, "text"), str) for part in parts):
        return text_of(content)
    return content


def name_of(obj: object) -> str | None:
    """Return the name of the tool that a definition, a choice or a call is about."""
    inner = (get(get(obj, kind), "name") for kind in ("function", "custom"))
    return string(get(obj, "name")) or next(filter(None, map(string, inner)), None)


class Pieces:
    """A text that arrives in pieces; `cut` says that it outgrew what is kept."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._room = MAX_TEXT
        self.cut = False

    def add(self, piece: object) -> None:
        """Append a piece; anything but text is ignored."""
        if isinstance(piece, str) and piece and not self.cut:
            self._room -= len(piece)
            self.cut = self._room < 0
            self._pieces.append(piece)

    def text(self) -> str | None:
        """Return the text so far, None if there is none or it was cut."""
        return None if self.cut else "".join(self._pieces) or None
