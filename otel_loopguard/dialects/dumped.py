"""Spans as plain JSON objects with their attributes as a mapping: what the SDK's `to_json` writes.

Close relatives are read too, such as a list `spans` of objects with `trace_id` and `span_id`.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final, cast

from otel_loopguard.dialects.values import mapping
from otel_loopguard.dialects.view import SpanView

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_ERROR: Final = "ERROR"


def span(held: Mapping[str, object]) -> SpanView:
    """One span.

    Raises:
        AttributeError, KeyError, TypeError, ValueError, IndexError: it is none.
    """
    where = mapping(held.get("context")) or held
    scope, status = held.get("scope"), held.get("status")
    status = mapping(status) or {"code": status}
    parent = held.get("parent_id")
    trace_id, span_id = int(str(where["trace_id"]), 16), int(str(where["span_id"]), 16)
    return SpanView(
        str(held["name"]),
        str(held.get("kind", "")).rpartition(".")[2].lower() or "internal",
        f"{trace_id:032x}",
        f"{span_id:016x}",
        f"{int(str(parent), 16):016x}" if parent else None,
        str((mapping(scope) or {"name": scope or ""}).get("name", "")),
        _time(held.get("start_time", held.get("start_ns"))),
        _time(held.get("end_time", held.get("end_ns"))),
        _ERROR in (status.get("code"), status.get("status_code")) or held.get("is_error") is True,
        mapping(held.get("attributes")) or {},
        tuple(map(_event, cast("Iterable[object]", held.get("events") or ()))),
        ids=(trace_id, span_id),
    )


def _event(event: object) -> tuple[str, Mapping[str, object]]:
    held = mapping(event)
    if held is None:
        name, attributes = cast("tuple[object, object]", event)
        return str(name), mapping(attributes) or {}
    return str(held.get("name", "")), mapping(held.get("attributes")) or {}


def _time(value: object) -> int:
    """Nanoseconds since the epoch, of a number or of an ISO date; 0 if there is none."""
    if isinstance(value, str):
        return int(datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp() * 1e6) * 1000
    return int(cast("int", value or 0))
