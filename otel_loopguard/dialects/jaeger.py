"""Spans in the JSON of Jaeger: what its query API answers, and what its pages let you download."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final, cast

from otel_loopguard.dialects.otlp import hexadecimal
from otel_loopguard.dialects.view import SpanView

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SCOPE: Final = ("otel.scope.name", "otel.library.name")
_KINDS: Final = frozenset({"server", "client", "producer", "consumer"})


def span(held: Mapping[str, object]) -> SpanView:
    """One span. Its times are in microseconds, so that what is nearer in time has no order.

    Raises:
        AttributeError, KeyError, TypeError, ValueError, IndexError: it is none.
    """
    tags = _tags(held.get("tags"))
    trace_id, span_id = hexadecimal(held["traceID"]), hexadecimal(held["spanID"])
    start_ns = int(cast("int", held.get("startTime", 0))) * 1000
    kind = str(tags.get("span.kind"))
    return SpanView(
        str(held["operationName"]),
        kind if kind in _KINDS else "internal",
        trace_id.zfill(32),
        span_id.zfill(16),
        _parent(held, trace_id),
        str(next((tags[key] for key in _SCOPE if key in tags), "")),
        start_ns,
        start_ns + int(cast("int", held.get("duration", 0))) * 1000,
        tags.get("error") in (True, "true") or tags.get("otel.status_code") == "ERROR",
        tags,
        tuple(map(_event, _maps(held.get("logs")))),
        ids=(int(trace_id, 16), int(span_id, 16)),
    )


def _parent(held: Mapping[str, object], trace_id: str) -> str | None:
    for reference in _maps(held.get("references")):
        if reference["refType"] == "CHILD_OF" and str(reference["traceID"]).lower() == trace_id:
            return str(reference["spanID"]).lower().zfill(16)
    parent = str(held.get("parentSpanID") or "").lower()
    return parent.zfill(16) if parent else None


def _event(log: Mapping[str, object]) -> tuple[str, Mapping[str, object]]:
    fields = _tags(log.get("fields"))
    return str(fields.pop("event", "")), fields


def _tags(listed: object) -> dict[str, object]:
    return {str(tag["key"]): _value(tag) for tag in _maps(listed)}


def _value(tag: Mapping[str, object]) -> object:
    value = tag.get("value")
    if tag.get("type") == "binary":
        return base64.b64decode(str(value))
    if tag.get("type") == "int64":
        return int(cast("int | str", value))
    return value


def _maps(listed: object) -> Iterable[Mapping[str, object]]:
    return cast("Iterable[Mapping[str, object]]", listed or ())
