"""Spans by trace, held back until their trace is likely to be whole, within a bound of memory.

An archive has no order by run: a span is written when it ends, so children come before their
parents, and those of other traces between them.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HELD: Final = 32_000_000
"""Characters of JSON that are held back at most."""
LEAST: Final = 500
"""Characters that a span counts for at least."""

_Span = TypeVar("_Span")


class Window(Generic[_Span]):
    """Holds spans back by trace. Beyond its bound, the trace that has waited longest is let go.

    A trace is let go in pieces if it is silent for that long in between, or fills the whole window.

    Args:
        limit: how many characters of JSON are held back.
    """

    def __init__(self, limit: int = HELD) -> None:
        self._limit = limit
        self._held = 0
        self._traces: OrderedDict[str, list[_Span]] = OrderedDict()
        self._sizes: dict[str, int] = {}

    def add(self, trace: str, span: _Span, size: int) -> Sequence[tuple[str, list[_Span]]]:
        """Take a span; gives the traces that are let go.

        Args:
            trace: its trace.
            span: the span, in whatever shape.
            size: how many characters it takes in the archive.
        """
        if size < LEAST:  # noqa: PLR1730 - max() takes four times as long
            size = LEAST
        spans = self._traces.get(trace)
        if spans is None:
            self._traces[trace] = [span]
            self._sizes[trace] = size
        else:
            spans.append(span)
            self._sizes[trace] += size
            self._traces.move_to_end(trace)
        self._held += size
        if self._held <= self._limit:
            return ()
        gone: list[tuple[str, list[_Span]]] = []
        while self._held > self._limit:
            gone.append(self._let_go())
        return gone

    def drain(self) -> Iterator[tuple[str, list[_Span]]]:
        """There is no more: let go of all traces, the one that has waited longest first."""
        while self._traces:
            yield self._let_go()

    def _let_go(self) -> tuple[str, list[_Span]]:
        trace, spans = self._traces.popitem(last=False)
        self._held -= self._sizes.pop(trace)
        return trace, spans
