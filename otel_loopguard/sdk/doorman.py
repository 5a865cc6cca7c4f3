"""What is on a provider from the start: it lets our processor in when the first span comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace import Span as SdkSpan

from otel_loopguard.runtime import guarded, unforked

if TYPE_CHECKING:
    from opentelemetry.context import Context

Make = Callable[[], SpanProcessor]


class Doorman(SpanProcessor):
    """Passes spans on to a processor that is loaded with the first of them.

    A program that makes no span pays for nothing else.

    Args:
        make: makes the processor; it is asked once.
    """

    def __init__(self, make: Make) -> None:
        self._make: Make | None = make
        self._inside: SpanProcessor | None = None

    @property
    def active(self) -> bool:
        """Whether spans are passed on, or will be."""
        return self._make is not None or self._inside is not None

    def on_start(self, span: SdkSpan, parent_context: Context | None = None) -> None:
        """Let the processor have a span that starts."""
        inside = self._inside
        if inside is None and self._make is not None:
            inside = self._let_in()
        if inside is not None:
            # From here on it is asked itself: a span of ours is passed on at each call of a tool.
            vars(self).update(on_start=inside.on_start, on_end=inside.on_end)
            inside.on_start(span, parent_context)

    def on_end(self, span: ReadableSpan) -> None:
        """Nothing: of a span that ends before the processor is there it has not heard."""

    def shutdown(self) -> None:
        """Do nothing more."""
        inside, self._inside, self._make = self._inside, None, None
        for name in ("on_start", "on_end"):
            vars(self).pop(name, None)
        if inside is not None:
            inside.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing is held back here."""
        return True

    @guarded("loading of the processor")
    def _let_in(self) -> SpanProcessor | None:
        with unforked():
            if self._make is not None:
                try:
                    self._inside = self._make()
                finally:
                    self._make = None  # only now: until then who comes waits here
            return self._inside
