"""How a setting may be written, and how it is read from text (environment) or a value (code).

A form accepts the plain built-in types only and runs no code of a value's own, so that nothing but
`ValueError` can come out of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

MAX_NUMBER: Final = 10**9
"""No waiting time and no count above this makes sense, and the clocks of all platforms take it."""
MAX_TEXT: Final = 256
_MAX_KEY: Final = 64  # bytes, of BLAKE2b
MAX_LONG_TEXT: Final = 2_000

_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,12}")
_UNFIT: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters and lone surrogates: what no exporter and no terminal takes well."""
_FLAG: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("TRUE", "1", "YES", "ON"), True),
    **dict.fromkeys(("FALSE", "0", "NO", "OFF"), False),
}
_CAPTURE: Final[Mapping[str, bool]] = {
    "NO_CONTENT": False,
    "SPAN_ONLY": True,
    "EVENT_ONLY": False,
    "SPAN_AND_EVENT": True,
}


def _collection(value: object) -> Collection[object] | None:
    """The value itself, where it is a collection of one of the plain types."""
    plain = isinstance(value, list | tuple | set | frozenset)
    return cast("Collection[object]", value) if plain else None


def show(value: object) -> str:
    """A setting's value as it would be written in the environment."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Enum):
        return str(value.value)
    if (items := _collection(value)) is not None:
        return ",".join(map(show, items)) or "unset"
    return "unset" if value is None else str(value)


class MalformedError(ValueError):
    """What was written is not what the form allows."""


@dataclass(frozen=True, slots=True)
class Form:
    """How a setting may be written.

    Attributes:
        allowed: what may be written, for people.
        read: makes the setting from what was written; raises ValueError where that is not allowed.
        show: writes the setting.
        secret: whether what was written must not be shown to anybody.
    """

    allowed: str
    read: Callable[[object], object]
    show: Callable[[object], str] = show
    secret: bool = False


def read_text(raw: object, longest: int = MAX_TEXT) -> str:
    """Text without what no exporter takes; MalformedError for all else."""
    text = raw.strip() if isinstance(raw, str) else None
    if text is None or len(text) > longest or _UNFIT.search(text):
        raise MalformedError
    return text


def _switch(words: Mapping[str, bool]) -> Callable[[object], bool]:
    """On or off: a bool, or a word in any case."""

    def read(raw: object) -> bool:
        if isinstance(raw, bool):
            return raw
        word = read_text(raw).upper()
        if word not in words:
            raise MalformedError
        return words[word]

    return read


def _read_key(raw: object) -> bytes:
    """Text of the environment may hold bytes that are no UTF-8; a key may be anything."""
    key = raw.encode("utf-8", "surrogatepass") if isinstance(raw, str) else raw
    if not isinstance(key, bytes):
        raise MalformedError
    if len(key) <= _MAX_KEY:
        return key
    import hashlib  # noqa: PLC0415 - only for a long key

    return hashlib.blake2b(key).digest()


def _read_items(raw: object) -> Iterable[str]:
    """The items of a list, in order and once each: text with commas, or a collection of text."""
    parts = raw.split(",") if isinstance(raw, str) else _collection(raw)
    if parts is None:
        raise MalformedError
    items = dict.fromkeys(text for text in map(read_text, parts) if text)
    if parts and not items:
        raise MalformedError
    return items


def number(low: int) -> Form:
    """A whole number from `low` on."""

    def read(raw: object) -> int:
        if isinstance(raw, int) and not isinstance(raw, bool):
            value = raw
        elif _NUMBER.fullmatch(text := read_text(raw)):
            value = int(text)
        else:
            raise MalformedError
        if not low <= value <= MAX_NUMBER:
            raise MalformedError
        return value

    return Form(f"whole number, {low} to 10^9", read)


def one_of(words: type[Enum]) -> Form:
    """One word of an enumeration, in any case."""
    allowed = ", ".join(each.value for each in words)
    return Form(f"one of {allowed}", lambda raw: words(read_text(raw).lower()))


def some_of(words: type[Enum]) -> Form:
    """Any words of an enumeration, in any case; shown in the order of the enumeration."""

    def read(raw: object) -> frozenset[Enum]:
        return frozenset(words(item.lower()) for item in _read_items(raw))

    def in_order(value: object) -> str:
        chosen = cast("frozenset[Enum]", value)
        return show(tuple(each for each in words if each in chosen))

    return Form(f"any of {', '.join(each.value for each in words)}", read, in_order)


def pairs(words: type[Enum], values: Form, separator: str, between: str) -> Form:
    """For some words of an enumeration a value each: a mapping, or `word=value` text.

    Args:
        words: the enumeration.
        values: the form of each value.
        separator: what separates the pairs in a text.
        between: the separator's name, for people.
    """

    def read(raw: object) -> dict[Enum, object]:
        if isinstance(raw, dict):
            given = cast("dict[object, object]", raw)
            return {words(read_text(key).lower()): values.read(given[key]) for key in given}
        if not isinstance(raw, str):
            raise MalformedError
        parts = [part.partition("=") for part in raw.split(separator) if part.strip()]
        return {words(read_text(key).lower()): values.read(value) for key, _, value in parts}

    def written(value: object) -> str:
        chosen = cast("dict[Enum, object]", value or {})
        shown = (f"{word.value}={values.show(chosen[word])}" for word in words if word in chosen)
        return separator.join(shown) or "unset"

    return Form(f"`pattern=value` with {between} between; value: {values.allowed}", read, written)


FLAG: Final = Form("true or false", _switch(_FLAG))
TEXT: Final = Form(f"text of at most {MAX_TEXT} printable characters", read_text)
LONG_TEXT: Final = Form(
    f"text of at most {MAX_LONG_TEXT} characters in one line",
    lambda raw: read_text(raw, MAX_LONG_TEXT),
)
NAME_SET: Final = Form("names with commas between", lambda raw: frozenset(_read_items(raw)))
NAME_LIST: Final = Form("names with commas between", lambda raw: tuple(_read_items(raw)))
KEY: Final = Form(
    "text", _read_key, lambda key: "unset" if key is None else "the other key", secret=True
)
CAPTURE: Final = Form(
    f"one of {', '.join(_CAPTURE)}",
    _switch(_CAPTURE),
    lambda on: "SPAN_ONLY" if on else "NO_CONTENT",
)


def quote(raw: object) -> str:
    """What was written, for a log line: short, ASCII, and without running the value's own code."""
    if (items := _collection(raw)) is not None:
        raw = ",".join(each if isinstance(each, str) else type(each).__name__ for each in items)
    if isinstance(raw, str):
        return ascii(raw if len(raw) <= 80 else raw[:77] + "...")
    if isinstance(raw, int) and abs(raw) > MAX_NUMBER**2:
        return "a huge number"
    if isinstance(raw, int | float):
        return ascii(raw)
    return ascii(type(raw).__name__)
