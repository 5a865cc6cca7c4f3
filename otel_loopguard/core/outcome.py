"""What came of a call, told from its result: structure first, words second.

Words count only where a text says nothing but them: in a short text, in a field such as `status`,
in the text of a failure. A long document that mentions a failure is not one.
"""

from __future__ import annotations

import json
from typing import Final, cast

from otel_loopguard.core.canonical import plain
from otel_loopguard.core.fields import of_mapping, wrapped_in
from otel_loopguard.core.model import MISSING, Outcome
from otel_loopguard.core.phrases import (
    failure_kind,
    failure_text_kind,
    is_cut_off,
    short_text_kind,
)
from otel_loopguard.core.sizes import SHORT
from otel_loopguard.core.words import ACKS, ERROR_START

_BLANK_CHARS: Final = 2_000
_JSON_CHARS: Final = 32_768
_WRAPPERS: Final = 4  # one in the other
_BOXES: Final = frozenset({dict, list, tuple, set, frozenset})
_NO_WORD: Final = frozenset("{[(|#*-+>\"'0123456789")
_NOTHING: Final = frozenset({"", "[]", "{}", "()", "null", "none", '""', "''"})
# Before Python 3.12 it takes long to read a member from its enum.
_OK: Final = Outcome.OK
_EMPTY: Final = Outcome.EMPTY
_parse: Final = json.JSONDecoder(strict=False).raw_decode


def classify(value: object, error: str | None = None, *, deep: bool = False) -> Outcome:
    """Returns the kind of a result.

    Args:
        value: the result; for a failed call the text of the failure, if known.
        error: the class of the failure, such as an exception's name; None if it was none.
        deep: also look into structures, JSON text and the words of short texts. Without it the work
            is the same whatever the size of the value.
    """
    kind = type(value)
    text = cast("str", value) if issubclass(kind, str) else None
    if error is not None:
        return failure_kind(error, text or "")
    if text is not None:
        return of_text(str.__str__(text), deep)
    return _of_other(value, kind, deep=deep)


def _of_other(value: object, kind: type[object], *, deep: bool) -> Outcome:
    if issubclass(kind, BaseException):
        return failure_kind(kind.__name__, "")
    if value is None or (kind in _BOXES and not value):
        return Outcome.EMPTY
    if value is True or value is MISSING:
        return Outcome.ACK if value is True else Outcome.UNKNOWN
    return _of_plain(plain(value)) if deep else _OK


def of_text(text: str, deep: bool) -> Outcome:  # noqa: FBT001 - a name takes time
    """Returns the kind of a result that is a text; see `classify`."""
    size = len(text)
    if size <= SHORT:
        word = text.strip().lower()
        if word in _NOTHING:
            return _EMPTY
        if word.rstrip(".!") in ACKS:
            return Outcome.ACK
    elif size <= _BLANK_CHARS and text.isspace():
        return _EMPTY
    # JSON, tables and lists are the most: to look at their first character takes no time.
    if text[0] not in _NO_WORD and ERROR_START.match(text[:SHORT].lstrip().lower()) is not None:
        return failure_text_kind(text)
    return _of_content(text) if deep else _OK


def _of_content(text: str) -> Outcome:
    structure = _structure(text)
    if structure is not None:
        return _of_plain(structure)
    if len(text) <= SHORT:
        return short_text_kind(text)
    return Outcome.TRUNCATED if is_cut_off(text) else Outcome.OK


def _structure(text: str) -> object:
    """What JSON text says, which may be followed by a remark; None if it is no JSON."""
    text = text.strip() if len(text) <= _JSON_CHARS else ""
    if not text.startswith(("{", "[")):
        return None
    try:
        value, end = cast("tuple[object, int]", _parse(text))
    except (ValueError, RecursionError):
        return None
    remark = text[end:].lstrip()
    is_all = not remark or (text.startswith("{") and not remark.startswith("{"))
    return value if is_all else None


def _of_plain(value: object, wrappers: int = _WRAPPERS) -> Outcome:
    """What a structure of plain JSON types says; None is one that could not be read."""
    if isinstance(value, str):
        return of_text(value, deep=True)
    if isinstance(value, list):
        return _of_list(cast("list[object]", value))
    if not isinstance(value, dict) or wrappers == 0:
        return Outcome.OK
    mapping = cast("dict[str, object]", value)
    if not mapping:
        return Outcome.EMPTY
    return of_mapping(mapping) or _of_plain(wrapped_in(mapping), wrappers - 1)


def _of_list(items: list[object]) -> Outcome:
    """An empty list is empty; one block of text, as models get results, is that text."""
    if len(items) != 1 or not isinstance(items[0], dict):
        return Outcome.OK if items else Outcome.EMPTY
    text = cast("dict[str, object]", items[0]).get("text")
    return of_text(text, deep=True) if isinstance(text, str) else Outcome.OK
