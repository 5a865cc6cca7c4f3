"""Regular expressions that are compiled when they are first used.

A process under instrumentation that never runs an agent should not pay for them as it starts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Pattern:
    """A regular expression, with the methods of a compiled one that are needed here.

    Attributes:
        search, match, sub, findall: as those of `re.Pattern`; its own from the first use on.
    """

    __slots__ = ("_flags", "_source", "findall", "match", "search", "sub")

    search: Callable[[str], re.Match[str] | None]
    match: Callable[[str], re.Match[str] | None]
    sub: Callable[[str, str], str]
    findall: Callable[[str], list[str]]  # of a pattern without groups

    def __init__(self, source: str, flags: int = 0) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> object:
        compiled = re.compile(self._source, self._flags)
        self.search, self.match, self.sub = compiled.search, compiled.match, compiled.sub
        self.findall = compiled.findall
        return getattr(compiled, name)
