"""Which series a PromQL expression watches: enough of the language to find its selectors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN: Final = re.compile(
    r"""
    (?P<space> \s+ | \#[^\n]* | \[[^\]]*\] )            # ranges are no selectors
  | (?P<text> "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' | `[^`]*` )
  | (?P<name> [a-zA-Z_:][a-zA-Z0-9_:]* )
  | (?P<number> \.?[0-9][0-9a-zA-Z_.]* )
  | (?P<sign> =~ | !~ | != | == | >= | <= | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_LABEL_LISTS: Final = {"by", "without", "on", "ignoring", "group_left", "group_right"}
_WORDS: Final = {
    *("and", "or", "unless", "atan2", "offset", "bool", "inf", "nan"),
    *("sum", "min", "max", "avg", "group", "stddev", "stdvar", "count", "count_values"),
    *("bottomk", "topk", "quantile", "limitk", "limit_ratio"),
}
_ABSENCE: Final = {"absent", "absent_over_time"}


class Selector(NamedTuple):
    """One series selector.

    Attributes:
        name: the metric's name; None if the selector does not say one.
        labels: the labels that a series must have to match.
        of_absence: whether the expression asks for its absence.
    """

    name: str | None
    labels: frozenset[str]
    of_absence: bool = False


def selectors(expression: str) -> list[Selector]:
    """The selectors of an expression, in their order. Never raises: what is odd is passed over."""
    return list(_Reader(expression).selectors())


class _Reader:
    def __init__(self, expression: str) -> None:
        self._tokens = [
            (found.lastgroup or "", found.group())
            for found in _TOKEN.finditer(expression)
            if found.lastgroup != "space"
        ]
        self._at = 0
        self._depth = 0
        self._absence: int | None = None  # the depth inside the outermost absent(...)

    def selectors(self) -> Iterator[Selector]:
        while self._at < len(self._tokens):
            kind, text = self._take()
            if text == "(":
                self._depth += 1
            elif text == ")":
                self._depth -= 1
                if self._absence is not None and self._depth < self._absence:
                    self._absence = None
            elif text == "{":
                yield self._braces(None)
            elif kind == "name":
                yield from self._word(text)

    def _word(self, text: str) -> Iterator[Selector]:
        """A function, an operator, or a metric's name."""
        word, follows = text.lower(), self._peek()
        if word in _LABEL_LISTS:
            self._skip_list()
        elif follows == "(":
            if word in _ABSENCE and self._absence is None:
                self._absence = self._depth + 1
        elif follows == "{":
            self._take()
            yield self._braces(text)
        elif word not in _WORDS:
            yield Selector(text, frozenset(), self._absence is not None)

    def _take(self) -> tuple[str, str]:
        self._at += 1
        return self._tokens[self._at - 1]

    def _peek(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _skip_list(self) -> None:
        """Pass over `(label, label)` if it comes next."""
        if self._peek() == "(":
            while self._at < len(self._tokens) and self._take()[1] != ")":
                pass

    def _braces(self, name: str | None) -> Selector:
        """Read matchers up to the closing brace."""
        inside: list[tuple[str, str]] = []
        while self._at < len(self._tokens):
            token = self._take()
            if token[1] == "}":
                break
            inside.append(token)
        labels: set[str] = set()
        for at, (kind, text) in enumerate(inside):
            sign = inside[at + 1][1] if at + 1 < len(inside) else ","
            value = inside[at + 2][1][1:-1] if at + 2 < len(inside) else ""
            if kind == "text" and sign == "," and (at == 0 or inside[at - 1][1] == ","):
                name = text[1:-1]  # {"a.metric", label="value"}
            elif kind == "name" and text == "__name__" and sign == "=":
                name = value
            elif kind == "name" and text != "__name__" and _needs(sign, value):
                labels.add(text)
        return Selector(name, frozenset(labels), self._absence is not None)


def _needs(sign: str, value: str) -> bool:
    """Whether a matcher can only match a series that has the label."""
    if sign == "=":
        return value != ""
    if sign == "=~":
        return not any(each in {"", ".*"} for each in value.split("|"))
    return False
