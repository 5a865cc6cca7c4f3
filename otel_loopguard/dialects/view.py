"""The one shape in which the readers get a span, whoever made it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from otel_loopguard.core.model import SpanRef


class SpanView(NamedTuple):
    """A finished span of any origin, as the dialect readers see it.

    Ids are lower-case hex. `kind` is internal, server, client, producer or consumer. `attributes`
    and those of `events` hold what the SDK or the file gave: primitives and sequences of them.
    `is_remote` says that the parent is in another process. `ids` are those of trace and span as
    numbers, where the maker has them at hand.
    """

    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str | None
    scope: str
    start_ns: int
    end_ns: int
    is_error: bool
    attributes: Mapping[str, object]
    events: tuple[tuple[str, Mapping[str, object]], ...] = ()
    is_remote: bool = False
    ids: SpanRef | None = None

    @property
    def reference(self) -> SpanRef:
        """How a step names this span."""
        return self.ids or (int(self.trace_id, 16), int(self.span_id, 16))
