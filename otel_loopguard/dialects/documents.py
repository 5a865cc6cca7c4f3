"""One large JSON document, read piece by piece: the spans in it come out as they are met."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from otel_loopguard.dialects.archives import Found
from otel_loopguard.dialects.values import mapping

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHUNK: Final = 65_536
LONGEST: Final = 64_000_000
"""Characters of one value, such as a span, beyond which a document is not read on."""
DEEPEST: Final = 12
EARLY: Final = "the document ends too early"

_ENTERED: Final = frozenset({"", "resourceSpans", "scopeSpans", "spans", "data", "result"})
"""What holds spans: they are entered, all other values are read whole."""
_BLANK: Final = " \t\r\n"
_decode: Final = json.JSONDecoder(strict=False).raw_decode


class Document:
    """A JSON text that comes in pieces.

    Args:
        read: gives the next characters, at most as many as asked for; none at the end.

    Attributes:
        line: the line that was come to, from 1 on.
        size: how many characters the newest value took.
    """

    def __init__(self, read: Callable[[int], str]) -> None:
        self._read = read
        self._text = ""
        self._at = 0
        self._ended = False
        self.line = 1
        self.size = 0

    def spans(self) -> Iterator[Found]:
        """The spans of the document, in their order.

        Raises:
            ValueError: it is no JSON from some place on; says why.
        """
        yield from self._enter("", "", DEEPEST)
        if self._peek():
            raise ValueError("there is more behind the end of the document")

    def _enter(self, key: str, scope: str, depth: int) -> Iterator[Found]:
        """The spans in the value that comes now, which stands under a key."""
        opening = self._peek() if depth and key in _ENTERED else ""
        if opening == "[":
            for _ in self._members("]"):
                yield from self._enter(key, scope, depth - 1)
        elif opening == "{" and key != "spans":
            for name in self._members("}"):
                if name == "scope":
                    scope = str((mapping(self._value()) or {}).get("name", ""))
                else:
                    yield from self._enter(name, scope, depth - 1)
        else:
            held = mapping(self._value())
            if held is not None and key == "spans":
                yield Found(held, scope)

    def _members(self, closing: str) -> Iterator[str]:
        """Stop at each value of the array or object that begins here; gives its key, if any."""
        self._at += 1
        separated = True
        while self._peek() != closing:
            if not separated:
                self._expect(",")
            if not self._peek():
                raise ValueError(EARLY)
            name = ""
            if closing == "}":
                name = str(self._value())
                self._expect(":")
            yield name
            separated = False
        self._at += 1

    def _expect(self, mark: str) -> None:
        found = self._peek()
        if found != mark:
            raise ValueError(f"{mark!r} is missing" if found else EARLY)
        self._at += 1

    def _value(self) -> object:
        """The whole value that comes now."""
        self._peek()
        while True:
            try:
                value, end = _decode(self._text, self._at)
            except (ValueError, RecursionError) as fault:
                if self._ended or len(self._text) - self._at > LONGEST:
                    raise ValueError(str(fault)) from None
            else:
                if end < len(self._text) or self._ended:  # a number may go on
                    self._at, self.size = end, end - self._at
                    return value
            self._more(max(CHUNK, len(self._text) - self._at))

    def _peek(self) -> str:
        """The next character that is not blank; none at the end."""
        while True:
            while self._at < len(self._text):
                if (mark := self._text[self._at]) not in _BLANK:
                    return mark
                self._at += 1
            if self._ended:
                return ""
            self._more(CHUNK)

    def _more(self, wanted: int) -> None:
        self.line += self._text.count("\n", 0, self._at)
        more = self._read(wanted)
        self._text = self._text[self._at :] + more
        self._at = 0
        self._ended = not more
