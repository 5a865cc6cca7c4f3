"""The short way to the canonical form: JSON-like values, written by the C encoder.

What it writes is, letter for letter, what `canonical.Writer` would write; where it cannot promise
that, it says None and the writer does the work.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Final, cast
from unicodedata import normalize

BIG: Final = 1 << 14_000
"""Whole numbers from here on are written in hexadecimal, which takes linear time."""

_NFC_CHARS: Final = 1_024  # normalising a run of combining marks takes quadratic time
_SCALARS: Final = frozenset({bool, float, type(None)})

# Anything outside of these ranges may change under Unicode form C, or change its neighbours.
_UNSURE: Final = re.compile(
    "[^\x00-\u02ff\u0400-\u0482\u048a-\u0590\u2000-\u20cf\u2100-\u2125\u2190-\u2328\u232b-\u2adb"
    "\u3000-\u3029\u3030-\u3098\u309b-\ua66e\uac00-\ud7a3\uff00-\uffef\U0001f300-\U0001faff]"
)

_encode: Final = json.JSONEncoder(
    ensure_ascii=False,
    check_circular=False,
    allow_nan=False,
    sort_keys=True,
    separators=(",", ":"),
).encode


def form_c(text: str) -> str:
    """Returns a text in Unicode form C; texts of over 1,024 characters as they are."""
    if text.isascii() or len(text) > _NFC_CHARS or not _UNSURE.search(text):
        return text
    return normalize("NFC", text)


def plain_form(value: object, max_chars: int, max_nodes: int, max_depth: int) -> str | None:
    """Returns the canonical form of a JSON-like value; None where the long way is needed."""
    if not _is_plain(value, max_chars, max_nodes, max_depth):
        return None
    try:
        text = _encode(value)
    except (TypeError, ValueError):  # keys that are no text; NaN and infinities
        return None
    if ".0" in text and (".0," in text or ".0}" in text or ".0]" in text or text.endswith(".0")):
        return None  # a float that may be a whole number
    if "e+" in text or not (text.isascii() or _UNSURE.search(text) is None):
        return None
    return text


def _is_plain(value: object, room: int, nodes: int, depth: int) -> bool:
    """Whether a value holds only exact JSON types and keeps within the limits."""
    level: list[object] = [(value,)]
    nodes_left, depth_left = nodes, depth + 1
    while level:
        depth_left -= 1
        deeper: list[object] = []
        for box in level:
            inside = cast("Collection[object]", box)
            nodes_left -= len(inside)
            if nodes_left < 0 or depth_left < 0:
                return False
            if type(box) is dict:
                try:
                    room -= sum(map(len, cast("dict[str, object]", box)))
                except TypeError:  # keys that are no text
                    return False
                inside = cast("dict[str, object]", box).values()
            for item in inside:
                kind = type(item)
                if kind is str:
                    room -= len(cast("str", item))
                elif kind is dict or kind is list or kind is tuple:
                    deeper.append(item)
                elif kind is int:
                    if not -BIG < cast("int", item) < BIG:
                        return False
                elif kind not in _SCALARS:
                    return False
            if room < 0:
                return False
        level = deeper
    return True
