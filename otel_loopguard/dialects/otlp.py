"""OTLP in JSON, as the official file exporter and the collector write it: one batch a line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, cast

from otel_loopguard.dialects.view import SpanView

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_KINDS: Final = ("internal", "internal", "server", "client", "producer", "consumer")
_KIND_NAMES: Final = {f"SPAN_KIND_{kind.upper()}": kind for kind in _KINDS}
ERRORS: Final = (2, "STATUS_CODE_ERROR")
_REMOTE: Final = 0x300
"""Flags that it is known where the parent is, and that it is elsewhere."""
MALFORMED: Final = (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError)
"""What reading a decoded line that is not of its format raises."""


class BadLineError(ValueError):
    """A line that is no OTLP batch of spans; says which and why."""

    def __init__(self, line_no: int, reason: str) -> None:
        super().__init__(f"line {line_no}: {reason}")
        self.line_no = line_no
        self.reason = reason


def spans(lines: Iterable[str]) -> Iterator[SpanView]:
    """Read the spans of OTLP JSON lines; batches of logs and metrics are passed over.

    Raises:
        BadLineError: a line is no JSON object, or a span in it lacks what every span has.
    """
    for line_no, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            decoded = json.loads(line)
        except ValueError as fault:
            raise BadLineError(line_no, f"no JSON ({fault})") from None
        try:
            for held, scope in found(decoded):
                yield span(held, scope)
        except MALFORMED as fault:
            raise BadLineError(
                line_no, f"no OTLP spans ({type(fault).__name__}: {fault})"
            ) from None


def found(batch: Mapping[str, object]) -> Iterator[tuple[Mapping[str, object], str]]:
    """The spans of one batch as they are written there, each with the name of its scope.

    Raises:
        AttributeError, KeyError, TypeError, ValueError, IndexError: it is none (`MALFORMED`).
    """
    for resource in _list(batch, "resourceSpans"):
        for scope in _list(resource, "scopeSpans"):
            name = str(_map(scope, "scope").get("name", ""))
            for each in _list(scope, "spans"):
                yield each, name


def span(held: Mapping[str, object], scope: str) -> SpanView:
    """One span, read; raises what `found` raises."""
    flags = held.get("flags", 0)
    status = held.get("status")
    trace_id, span_id = str(held["traceId"]).lower(), str(held["spanId"]).lower()
    return SpanView(
        str(held["name"]),
        kind(held.get("kind", 0)),
        trace_id,
        span_id,
        str(held.get("parentSpanId") or "").lower() or None,
        scope,
        _number(held.get("startTimeUnixNano", 0)),
        _number(held.get("endTimeUnixNano", 0)),
        bool(status) and cast("Mapping[str, object]", status).get("code") in ERRORS,
        _attributes(held),
        tuple((str(e.get("name", "")), _attributes(e)) for e in _list(held, "events")),
        isinstance(flags, int) and is_remote(flags),
        (int(trace_id, 16), int(span_id, 16)),
    )


def hexadecimal(written: object) -> str:
    """An id in lower case; raises ValueError if it is none."""
    text = str(written).lower()
    int(text, 16)
    return text


def kind(written: object) -> str:
    """A span's kind by its number or name; raises IndexError, KeyError or ValueError."""
    if isinstance(written, str) and written in _KIND_NAMES:
        return _KIND_NAMES[written]
    return _KINDS[_number(written)]


def is_remote(flags: int) -> bool:
    """Whether the flags say that a span's parent is in another process."""
    return flags & _REMOTE == _REMOTE


def _attributes(holder: Mapping[str, object]) -> dict[str, object]:
    read: dict[str, object] = {}
    for each in _list(holder, "attributes"):
        held = cast("dict[str, object]", each.get("value") or {})
        text = held.get("stringValue")
        read[str(each["key"])] = value(held) if text is None else text
    return read


def value(any_value: Mapping[str, object]) -> object:
    """An AnyValue as a plain one; 64-bit integers come as text in JSON."""
    for kind, held in any_value.items():
        if kind == "intValue":
            return _number(held)
        if kind == "arrayValue":
            return [value(each) for each in _list(cast("Mapping[str, object]", held), "values")]
        if kind == "kvlistValue":
            held_map = cast("Mapping[str, object]", held)
            return {str(e["key"]): value(_map(e, "value")) for e in _list(held_map, "values")}
        return held
    return None


def _number(value: object) -> int:
    return int(cast("int | str", value))


def _map(holder: Mapping[str, object], key: str) -> Mapping[str, object]:
    return cast("Mapping[str, object]", holder.get(key) or {})


def _list(holder: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    return cast("list[Mapping[str, object]]", holder.get(key) or [])
