"""What the name of a tool hints at: a weak hint, never the sole reason of a verdict."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_WORD: Final = re.compile("[A-Z]?[a-z]+|[A-Z]+")
_WAITING: Final = frozenset({"wait", "sleep", "delay", "pause"})
_CHANGING: Final = frozenset(
    {
        *("edit", "write", "create", "update", "delete", "remove", "insert", "apply", "patch"),
        *("replace", "save", "commit", "move", "rename", "append", "overwrite", "modify", "send"),
        *("add", "set", "put", "store", "submit", "upload", "publish", "register", "assign"),
    }
)
_STEPPING: Final = frozenset({"scroll", "swipe", "press", "zoom", "key", "keypress"})
_ASKING: Final = frozenset({"status", "progress", "poll", "watch", "monitor"})


@lru_cache(maxsize=256)
def waits(action: str) -> bool:
    """Whether a tool's name says that it only lets time pass."""
    return not _WAITING.isdisjoint(_words(action))


@lru_cache(maxsize=256)
def asks(action: str) -> bool:
    """Whether a tool's name says that it tells how far something is."""
    return not _ASKING.isdisjoint(_words(action))


@lru_cache(maxsize=256)
def steps(action: str) -> bool:
    """Whether a tool's name says that it goes one step on each time."""
    return not _STEPPING.isdisjoint(_words(action))


@lru_cache(maxsize=256)
def changes(action: str) -> bool:
    """Whether a tool's name says that it changes something."""
    return not _CHANGING.isdisjoint(_words(action))


def _words(action: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(action)]
