"""Texts within bounds: samples of long ones, and Unicode form C."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from unicodedata import normalize

from otel_loopguard.core.patterns import Pattern

if TYPE_CHECKING:
    from collections.abc import Iterable

_SAMPLES: Final = 16  # blocks that stand for a text that is too long
_NFC_CHARS: Final = 1_024  # normalising a run of combining marks takes quadratic time

# Anything outside of these ranges may change under Unicode form C, or change its neighbours.
_UNSURE: Final = Pattern(
    "[^\x00-\u02ff\u0400-\u0482\u048a-\u0590\u2002-\u20cf\u2100-\u2125\u2190-\u2328\u232b-\u2adb"
    "\u3000-\u3029\u3030-\u3098\u309b-\ua66e\uac00-\ud7a3\uff00-\uffef\U0001f300-\U0001faff]"
)


def is_form_c(text: str) -> bool:
    """Whether a text surely is in Unicode form C, told from its characters in linear time."""
    return text.isascii() or _UNSURE.search(text) is None


def sample(text: str, room: int) -> str:
    """Returns a text in Unicode form C; of one longer than `room` characters only a sample.

    The sample is the length and evenly spaced blocks, head and tail among them. Texts of over 1,024
    characters are not brought into form C.
    """
    size = str.__len__(text)
    if size > room:
        parts = (str.__getitem__(text, block) for block in blocks(size, room))
        return f"#{size}:{''.join(parts)}"
    exact = str.__getitem__(text, slice(None))
    return exact if size > _NFC_CHARS or is_form_c(exact) else normalize("NFC", exact)


def blocks(size: int, room: int) -> Iterable[slice]:
    """Slices of about `room` items in all, evenly spaced over `size` items."""
    length = max(room // _SAMPLES, 1)
    gap = (size - length) / (_SAMPLES - 1)
    return (slice(int(i * gap), int(i * gap) + length) for i in range(_SAMPLES))
