"""What to give a model in place of a result that it cannot use, or has seen already."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Generic, TypeVar

_V = TypeVar("_V")


@dataclass(frozen=True, slots=True)
class Chunk:
    """One part of a long result.

    Attributes:
        text: the part.
        number: which one, from 1 on.
        of: how many there are.
    """

    text: str
    number: int
    of: int

    def labelled(self) -> str:
        """The part with a line that says which it is, so that the model asks for the next one."""
        return f"{self.text}\n[part {self.number} of {self.of}]"


class ChunkedResult:
    """A result that is longer than a model can use, to be given part by part.

    Parts end at a line's end where there is one in their second half.

    Args:
        text: the whole result.
        size: how many characters a part has at most.

    Raises:
        ValueError: `size` is below 1.
    """

    def __init__(self, text: str, *, size: int = 8_000) -> None:
        if size < 1:
            raise ValueError(f"size has to be at least 1, not {size}")
        self._parts = list(_cut(text, size)) or [""]

    def __len__(self) -> int:
        return len(self._parts)

    def part(self, number: int) -> Chunk:
        """A part by its number, from 1 on.

        Raises:
            IndexError: there is no such part.
        """
        if not 1 <= number <= len(self._parts):
            raise IndexError(f"there are parts 1 to {len(self._parts)}, no part {number}")
        return Chunk(self._parts[number - 1], number, len(self._parts))


def _cut(text: str, size: int) -> list[str]:
    parts: list[str] = []
    start = 0
    while start < len(text):
        end = min(start + size, len(text))
        if end < len(text):
            end = text.rfind("\n", start + size // 2, end) + 1 or end
        parts.append(text[start:end])
        start = end
    return parts


class RepeatCache(Generic[_V]):
    """The newest results of calls that only read, so that a repeated call need not be made.

    Thread-safe; bounded by `max_entries`, of which the one unused longest goes first.

    Args:
        max_entries: how many results are kept; at least 1.
    """

    def __init__(self, *, max_entries: int = 64) -> None:
        if max_entries < 1:
            raise ValueError(f"max_entries has to be at least 1, not {max_entries}")
        self._max = max_entries
        self._lock = threading.Lock()
        self._results: OrderedDict[tuple[str, str], _V] = OrderedDict()

    def put(self, tool: str, args_fingerprint: str, result: _V) -> None:
        """Keep the result of a call."""
        with self._lock:
            self._results[tool, args_fingerprint] = result
            self._results.move_to_end((tool, args_fingerprint))
            if len(self._results) > self._max:
                self._results.popitem(last=False)

    def get(self, tool: str, args_fingerprint: str, default: _V) -> _V:
        """The result of an equal call, or `default`."""
        with self._lock:
            key = (tool, args_fingerprint)
            if key not in self._results:
                return default
            self._results.move_to_end(key)
            return self._results[key]

    def clear(self) -> None:
        """Forget all results: something was changed."""
        with self._lock:
            self._results.clear()
