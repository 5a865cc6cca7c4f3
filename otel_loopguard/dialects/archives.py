"""What a file holds, by its content: steps, or spans in one of several shapes."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, cast

from otel_loopguard.dialects import dumped, jaeger, otlp
from otel_loopguard.dialects.values import mapping, sequence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from otel_loopguard.dialects.view import SpanView

Form = Literal["steps", "otlp", "jaeger", "sdk"]
FORMS: Final[tuple[Form, ...]] = ("steps", "otlp", "jaeger", "sdk")
_OTLP: Final = frozenset({"resourceSpans", "resourceLogs", "resourceMetrics"})
_BY_TRACE: Final[dict[str, Form]] = {
    "traceId": "otlp",
    "traceID": "jaeger",
    "trace_id": "sdk",
    "context": "sdk",
}


class Found(NamedTuple):
    """A span as it is written in a file, and the name of its scope if that is known."""

    held: Mapping[str, object]
    scope: str = ""


def form_of(value: object) -> Form | None:
    """The shape of a decoded line or document; None if it is none that is known."""
    held = mapping(value)
    if held is None:
        listed = sequence(value)
        return form_of(listed[0]) if listed and mapping(listed[0]) is not None else None
    if "steps" in held:
        return "steps"
    if not _OTLP.isdisjoint(held):
        return "otlp"
    if "data" in held:
        return "jaeger"
    return "sdk" if "spans" in held else _by_trace(held)


def found(value: object, form: Form) -> Iterator[Found]:
    """The spans in a decoded line or document.

    Raises:
        AttributeError, KeyError, TypeError, ValueError, IndexError: it is not of that shape.
    """
    values = sequence(value) or [value]
    for each in cast("list[Mapping[str, object]]", values):
        if form == "otlp":
            yield from itertools.starmap(Found, otlp.found(each))
        elif form == "jaeger":
            for trace in cast("list[Mapping[str, list[Mapping[str, object]]]]", each["data"]):
                yield from map(Found, trace["spans"])
        else:
            yield from map(Found, cast("list[Mapping[str, object]]", each.get("spans", [each])))


def trace_of(held: Mapping[str, object]) -> str:
    """The trace of a span that was found, as it is written there.

    Raises:
        KeyError: it names none.
    """
    context = mapping(held.get("context")) or held
    for key in ("traceId", "traceID", "trace_id"):
        if key in context:
            return str(context[key])
    raise KeyError("traceId")


def span(each: Found) -> SpanView:
    """A span that was found, read.

    Raises:
        AttributeError, KeyError, TypeError, ValueError, IndexError: it is no span.
    """
    form = _by_trace(each.held)
    if form == "otlp":
        return otlp.span(each.held, each.scope)
    return jaeger.span(each.held) if form == "jaeger" else dumped.span(each.held)


def _by_trace(held: Mapping[str, object]) -> Form | None:
    return next((form for key, form in _BY_TRACE.items() if key in held), None)
