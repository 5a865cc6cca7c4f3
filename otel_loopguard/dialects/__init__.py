"""A span of any convention in, what it says of an agent's actions out. One file a convention."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from otel_loopguard.core.model import SpanView
from otel_loopguard.dialects import genai
from otel_loopguard.dialects.reading import Asked, Reading, Role, Start

__all__ = ["Asked", "Reading", "Role", "Start", "read", "starts"]

_Reader = Callable[[SpanView], Reading | None]

_BY_ATTRIBUTE: Final[tuple[tuple[str, _Reader], ...]] = ((genai.OPERATION, genai.read),)
"""The reader of a span is the first whose attribute the span has."""


def read(view: SpanView, *, value_limit: int | None = None) -> Reading | None:
    """What a finished span says; None if it is no span of a known convention, or no step.

    Args:
        view: the span. Spans of kind server show the far side of a call: no tool or model of ours.
        value_limit: the length at which the recorder cuts texts, if it does. A text of that length
            is taken for cut, which makes it unknown.
    """
    reader = next((read for key, read in _BY_ATTRIBUTE if key in view.attributes), None)
    if reader is None:
        return None
    reading = reader(view if value_limit is None else _without_cut(view, value_limit))
    if reading and view.kind == "server" and reading.role is not Role.AGENT:
        return None
    return reading


def starts(name: str, scope: str, attributes: Mapping[str, object]) -> Start | None:
    """What can be said of a span when it starts; None if nothing, which `read` may correct."""
    return genai.start(name, scope, attributes)


def _without_cut(view: SpanView, limit: int) -> SpanView:
    return replace(
        view,
        attributes=_uncut(view.attributes, limit),
        events=tuple((event, _uncut(held, limit)) for event, held in view.events),
    )


def _uncut(attributes: Mapping[str, object], limit: int) -> Mapping[str, object]:
    return {
        key: value
        for key, value in attributes.items()
        if not (isinstance(value, str) and len(value) >= limit)
    }
