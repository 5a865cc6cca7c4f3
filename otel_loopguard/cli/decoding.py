"""Spans as they lie in an archive, read when they are needed.

A line of OTLP is only split into its spans. They stay as they are until their trace is played: they
are compact that way, and who leaves them to others never decodes them.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from otel_loopguard.cli import typed
from otel_loopguard.core.tuples import make
from otel_loopguard.dialects import archives
from otel_loopguard.dialects.archives import Found
from otel_loopguard.dialects.own import RUN_ID
from otel_loopguard.dialects.values import mapping, sequence

if TYPE_CHECKING:
    from otel_loopguard.dialects.view import SpanView

_RUN: Final = re.compile(
    rb'"%s"\s*,\s*"value"\s*:\s*\{\s*"stringValue"\s*:\s*"([^"\\]*)"' % RUN_ID.encode()
)


class Piece(NamedTuple):
    """A span of an archive.

    Attributes:
        trace: its trace, as it is written.
        held: the span, decoded or as bytes of OTLP.
        size: how many characters it takes.
        line: where it stands.
    """

    trace: str
    held: Found | tuple[bytes, str]
    size: int
    line: int

    def view(self) -> SpanView:
        """The span, read; raises what `archives.span` raises."""
        if isinstance(self.held, Found):
            return archives.span(self.held)
        written, scope = self.held
        try:
            return typed.span(written, scope)
        except ValueError:  # it may still be written in some other way
            return archives.span(Found(json.loads(written), scope))

    def run(self) -> str | None:
        """The run that the span says it belongs to."""
        if not isinstance(self.held, Found):
            found = _RUN.search(self.held[0])
            return found[1].decode() if found else None
        held = self.held.held
        attributes = held.get("attributes", held.get("tags"))
        if (plain := mapping(attributes)) is not None:
            return cast("str | None", plain.get(RUN_ID))
        for each in map(mapping, sequence(attributes)):
            if each is not None and each.get("key") == RUN_ID:
                value = each.get("value")
                return str((mapping(value) or {"": value}).get("stringValue", value))
        return None


def split(line: bytes, number: int) -> list[Piece] | None:
    """The spans of a line of OTLP; None if that takes a slower and more patient reader."""
    try:
        spans = typed.split(line)
    except ValueError:
        return None
    return [make(Piece, (trace, (held, scope), len(held), number)) for trace, scope, held in spans]
