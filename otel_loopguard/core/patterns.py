"""Regular expressions that are compiled when they are first used.

A process under instrumentation that never runs an agent should not pay for them as it starts.
"""

from __future__ import annotations

import re


class Pattern:
    """A regular expression, with the methods of a compiled one that are needed here."""

    __slots__ = ("_compiled", "_flags", "_source")

    def __init__(self, source: str, flags: int = 0) -> None:
        self._source = source
        self._flags = flags
        self._compiled: re.Pattern[str] | None = None

    def _ready(self) -> re.Pattern[str]:
        compiled = self._compiled = re.compile(self._source, self._flags)
        return compiled

    def search(self, text: str) -> re.Match[str] | None:
        """As `re.Pattern.search`."""
        return (self._compiled or self._ready()).search(text)

    def match(self, text: str) -> re.Match[str] | None:
        """As `re.Pattern.match`."""
        return (self._compiled or self._ready()).match(text)

    def sub(self, replacement: str, text: str) -> str:
        """As `re.Pattern.sub`."""
        return (self._compiled or self._ready()).sub(replacement, text)
