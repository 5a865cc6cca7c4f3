"""A span of any convention in, what it says of an agent's actions out. One file a convention."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from otel_loopguard.dialects.reading import Asked, Reading, Role, Start

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from otel_loopguard.dialects.view import SpanView

__all__ = ["Asked", "Reading", "Role", "Start", "read", "starts"]


def read(view: SpanView, *, value_limit: int | None = None) -> Reading | None:
    """What a finished span says; None if it is no span of a known convention, or no step.

    Args:
        view: the span. Spans of kind server show the far side of a call: no tool or model of ours.
        value_limit: the length at which the recorder cuts texts, if it does. A text of that length
            is taken for cut, which makes it unknown.
    """
    return _conventions().read(view, value_limit)


def starts(name: str, scope: str, attributes: Mapping[str, object]) -> Start | None:
    """What can be said of a span when it starts; None if nothing. `read` has the last word."""
    return _conventions().starts(name, scope, attributes)


@cache
def _conventions() -> ModuleType:
    """The readers, loaded with the first span of somebody else."""
    from otel_loopguard.dialects import conventions  # noqa: PLC0415

    return conventions
