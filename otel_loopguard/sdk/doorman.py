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

    def on_start(self, span: SdkSpan, parent_context: Context | None = None) -> None:
        """Let the processor have a span that starts."""
        inside = self._inside or self._let_in()
        if inside is not None:
            inside.on_start(span, parent_context)

    def on_end(self, span: ReadableSpan) -> None:
        """Let the processor have a span that has ended."""
        if self._inside is not None:
            self._inside.on_end(span)

    def shutdown(self) -> None:
        """Do nothing more."""
        self._make = None
        if self._inside is not None:
            self._inside.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing is held back here."""
        return True

    @guarded("loading of the processor")
    def _let_in(self) -> SpanProcessor | None:
        with unforked():
            make, self._make = self._make, None
            if make is not None:
                self._inside = make()
            return self._inside
