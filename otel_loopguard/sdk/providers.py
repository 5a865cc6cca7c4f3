"""Where telemetry goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from opentelemetry import trace

if TYPE_CHECKING:
    from opentelemetry import metrics
    from opentelemetry._logs import LoggerProvider


class Providers(NamedTuple):
    """Where spans, metrics and logs go; the global provider where None."""

    tracer: trace.TracerProvider | None = None
    meter: metrics.MeterProvider | None = None
    logger: LoggerProvider | None = None

    @property
    def spans(self) -> object:
        """The tracer provider as of now, of whatever make."""
        return self.tracer or trace.get_tracer_provider()


GLOBAL: Final = Providers()
