"""Attribute values of other people's spans: what is one, what only stands in for one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

from otel_loopguard.core.model import MISSING

if TYPE_CHECKING:
    from otel_loopguard.dialects.view import SpanView

PARSED: Final = 4_000_000
"""Longer texts, in characters, are not parsed as JSON."""

_PLACEHOLDERS: Final = frozenset(
    {"<REDACTED>", "[REDACTED]", "__REDACTED__", "N/A", "<not specified>"}
)
_LONGEST_PLACEHOLDER: Final = max(map(len, _PLACEHOLDERS))
_HOLLOW: Final = ({"result": "<not specified>"},)  # Google ADK, for a tool that raised
_CUT: Final = "...[truncated]"
_BLANKS: Final = " \t\n\r"
_PLAIN: Final = frozenset({str, int, float, bool, list, tuple, type(None), type(MISSING)})
_decode: Final = json.JSONDecoder().raw_decode  # `loads` takes twice as long for short texts


def mapping(value: object) -> Mapping[str, object] | None:
    """`value` if it is a mapping, else None."""
    if type(value) is dict:
        return value  # pyright: ignore[reportUnknownVariableType] - a call of `cast` takes longer
    if type(value) in _PLAIN or not isinstance(value, Mapping):  # the latter takes far longer
        return None
    return cast("Mapping[str, object]", value)


def sequence(value: object) -> Sequence[object]:
    """`value` if it is a list or a tuple, else nothing."""
    return cast("Sequence[object]", value) if isinstance(value, (list, tuple)) else ()


def name(attributes: Mapping[str, object], *keys: str) -> str | None:
    """The first of the keys that holds a text which is neither blank nor a placeholder."""
    for key in keys:
        value = attributes.get(key)
        if value and isinstance(value, str) and value not in _PLACEHOLDERS:
            return value
    return None


def count(attributes: Mapping[str, object], *keys: str) -> int:
    """The first of the keys that holds a positive whole number, else 0."""
    for key in keys:
        value = attributes.get(key)
        if value is not None and isinstance(value, int) and value > 0:
            return int(value)
    return 0


def content(attributes: Mapping[str, object], keys: Iterable[str]) -> object:
    """The first of the keys that holds content; `MISSING` if none does. JSON text is parsed."""
    for key in keys:
        if key in attributes and (value := load(attributes[key])) is not MISSING:
            return value
    return MISSING


def load(value: object) -> object:
    """The value that JSON text stands for; other text as it is; `MISSING` for a placeholder."""
    if value is None:
        return MISSING
    if not isinstance(value, str):
        return value
    # No hash of a long text.
    if (len(value) <= _LONGEST_PLACEHOLDER and value in _PLACEHOLDERS) or value.endswith(_CUT):
        return MISSING
    if not value.startswith(("{", "[", '"')) or len(value) > PARSED:
        return value
    loaded = _parsed(value)
    return MISSING if loaded in _HOLLOW else loaded


def _parsed(text: str) -> object:
    """What JSON text stands for; any other text as it is."""
    try:
        said, end = _decode(text)
    except (ValueError, RecursionError):
        return text
    return text if text[end:].strip(_BLANKS) else said


def plain(value: object) -> object:
    """A result without the list of text blocks (`[{"text": ...}]`) that some put around it."""
    blocks = [mapping(item) for item in sequence(value)]
    texts = [block.get("text") if block else None for block in blocks]
    if not texts or not all(isinstance(text, str) for text in texts):
        return value
    return "\n".join(cast("list[str]", texts))


def error(view: SpanView) -> str | None:
    """The class of the failure that a span shows, "error" if it names none, None if it is fine."""
    attributes = view.attributes
    named = name(attributes, "error.type") if "error.type" in attributes else None
    if named or not view.is_error:
        return named
    return _exception(view, "exception.type") or "error"


def error_text(view: SpanView) -> object:
    """What the failure said, `MISSING` if that was not captured."""
    said = _exception(view, "exception.message")
    return MISSING if said is None else said


def _exception(view: SpanView, key: str) -> str | None:
    for event, attributes in reversed(view.events):
        if event == "exception" and (value := name(attributes, key)):
            return value
    return None
