"""OTLP in JSON, as the official file exporter and the collector write it: one batch a line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, cast

from otel_loopguard.dialects.view import SpanView

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_KINDS: Final = ("internal", "internal", "server", "client", "producer", "consumer")
_ERROR: Final = 2


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
            batch = json.loads(line)
        except ValueError as fault:
            raise BadLineError(line_no, f"no JSON ({fault})") from None
        try:
            yield from _batch(batch)
        except (AttributeError, KeyError, TypeError, ValueError, IndexError) as fault:
            raise BadLineError(
                line_no, f"no OTLP spans ({type(fault).__name__}: {fault})"
            ) from None


def _batch(batch: Mapping[str, object]) -> Iterator[SpanView]:
    for resource in _list(batch, "resourceSpans"):
        for scope in _list(resource, "scopeSpans"):
            name = _map(scope, "scope").get("name", "")
            for span in _list(scope, "spans"):
                yield _span(span, str(name))


def _span(span: Mapping[str, object], scope: str) -> SpanView:
    return SpanView(
        name=str(span["name"]),
        kind=_KINDS[_number(span.get("kind", 0))],
        trace_id=str(span["traceId"]),
        span_id=str(span["spanId"]),
        parent_id=str(span.get("parentSpanId") or "") or None,
        scope=scope,
        start_ns=_number(span.get("startTimeUnixNano", 0)),
        end_ns=_number(span.get("endTimeUnixNano", 0)),
        is_error=_map(span, "status").get("code") in (_ERROR, "STATUS_CODE_ERROR"),
        attributes=_attributes(span),
        events=tuple((str(e.get("name", "")), _attributes(e)) for e in _list(span, "events")),
    )


def _attributes(holder: Mapping[str, object]) -> dict[str, object]:
    return {str(each["key"]): _value(_map(each, "value")) for each in _list(holder, "attributes")}


def _value(value: Mapping[str, object]) -> object:
    """An AnyValue as a plain one; 64-bit integers come as text in JSON."""
    for kind, held in value.items():
        if kind == "intValue":
            return _number(held)
        if kind == "arrayValue":
            return [_value(each) for each in _list(cast("Mapping[str, object]", held), "values")]
        if kind == "kvlistValue":
            held_map = cast("Mapping[str, object]", held)
            return {str(e["key"]): _value(_map(e, "value")) for e in _list(held_map, "values")}
        return held
    return None


def _number(value: object) -> int:
    return int(cast("int | str", value))


def _map(holder: Mapping[str, object], key: str) -> Mapping[str, object]:
    return cast("Mapping[str, object]", holder.get(key) or {})


def _list(holder: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    return cast("list[Mapping[str, object]]", holder.get(key) or [])
