"""What the name of a tool hints at: a weak hint, never the sole reason of a verdict."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_WORD: Final = re.compile("[a-z]+")
_WAITING: Final = frozenset({"wait", "sleep", "delay", "pause"})


@lru_cache(maxsize=256)
def waits(action: str) -> bool:
    """Whether a tool's name says that it only lets time pass."""
    return not _WAITING.isdisjoint(_WORD.findall(action.lower()))
