"""Which convention a span follows: the readers, in the order in which they are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from otel_loopguard.dialects import genai, haystack, openinference, openllmetry
from otel_loopguard.dialects.reading import Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from otel_loopguard.dialects.reading import Reading, Start
    from otel_loopguard.dialects.view import SpanView

_BY_ATTRIBUTE: Final = (
    (openinference.KIND, openinference),
    (openllmetry.KIND, openllmetry),
    (genai.OPERATION, genai),
)
"""The dialect of a span is the first whose attribute it has."""
_BY_NAME: Final = (openllmetry, genai, haystack)
"""Who may know a span by its scope and name before its attributes are set."""


def read(view: SpanView, value_limit: int | None) -> Reading | None:
    """See `otel_loopguard.dialects.read`."""
    attributes = view.attributes
    for key, dialect in _BY_ATTRIBUTE:  # noqa: B007 - the last one is meant
        if key in attributes:
            break
    else:
        dialect = haystack
    reading = dialect.read(view if value_limit is None else _without_cut(view, value_limit))
    if view.kind == "server" and reading and reading.role is not Role.AGENT:
        return None
    return reading


def starts(name: str, scope: str, attributes: Mapping[str, object]) -> Start | None:
    """See `otel_loopguard.dialects.starts`."""
    for key, dialect in _BY_ATTRIBUTE:
        if key in attributes:
            return dialect.start(name, scope, attributes)
    said = (dialect.start(name, scope, attributes) for dialect in _BY_NAME)
    return next((start for start in said if start), None)


def _without_cut(view: SpanView, limit: int) -> SpanView:
    return view._replace(
        attributes=_uncut(view.attributes, limit),
        events=tuple((event, _uncut(held, limit)) for event, held in view.events),
    )


def _uncut(attributes: Mapping[str, object], limit: int) -> Mapping[str, object]:
    return {
        key: value
        for key, value in attributes.items()
        if not (isinstance(value, str) and len(value) >= limit)
    }
