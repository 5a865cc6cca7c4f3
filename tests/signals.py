"""Where the tests look at all three signals: providers of their own, and what they exported."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider, UpDownCounter
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_loopguard.instrumentation import instrument, uninstrument, wiring
from otel_loopguard.runtime import Runtime
from otel_loopguard.sdk.pipeline import Pipeline
from otel_loopguard.sdk.providers import Providers
from otel_loopguard.settings import from_env

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.sdk._logs import ReadableLogRecord
    from opentelemetry.sdk.trace import Event, ReadableSpan
    from opentelemetry.sdk.trace.sampling import Sampler

DEADLOCK = "loopguard.deadlock"
KEY = "a key of the tests"


class Signals:
    """Providers for spans, metrics and logs, and what came out of them."""

    def __init__(self, *, sampler: Sampler | None = None, delta: bool = False) -> None:
        self.tracer_provider = TracerProvider(sampler=sampler)
        self._spans = InMemorySpanExporter()
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self._spans))
        change = AggregationTemporality.DELTA
        temporality = {Counter: change, Histogram: change, UpDownCounter: change}
        self._reader = InMemoryMetricReader(temporality if delta else None)
        self.meter_provider = MeterProvider([self._reader])
        self._logs = InMemoryLogRecordExporter()
        self.logger_provider = LoggerProvider()
        self.logger_provider.add_log_record_processor(SimpleLogRecordProcessor(self._logs))

    @property
    def providers(self) -> Providers:
        return Providers(self.tracer_provider, self.meter_provider, self.logger_provider)

    def pipeline(self, **settings: object) -> Pipeline:
        """A pipeline into these providers with a guard of its own."""
        runtime: Runtime = Runtime(from_env({}, hash_key=KEY, **settings))
        return Pipeline(runtime, self.providers)

    @contextmanager
    def instrumented(self, **settings: Any) -> Iterator[wiring.Wiring]:
        """Our instrumentor, on these providers."""
        tracer, meter, logger = self.providers
        settings = {"hash_key": KEY, **settings}
        instrument(tracer_provider=tracer, meter_provider=meter, logger_provider=logger, **settings)
        wired = wiring.current()
        assert wired is not None
        try:
            yield wired
        finally:
            uninstrument()

    @property
    def spans(self) -> list[ReadableSpan]:
        """All spans that ended, in the order of their end."""
        return list(self._spans.get_finished_spans())

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]

    def span(self, name: str) -> ReadableSpan:
        (found,) = self.named(name)
        return found

    @property
    def events(self) -> list[Event]:
        """All deadlock events, in the order in which their spans ended."""
        return [event for span in self.spans for event in span.events if event.name == DEADLOCK]

    @property
    def severities(self) -> list[object]:
        return [(event.attributes or {})["loopguard.severity"] for event in self.events]

    @property
    def logs(self) -> list[ReadableLogRecord]:
        return list(self._logs.get_finished_logs())

    def points(self, metric: str) -> dict[tuple[object, ...], Any]:
        """Each series of a metric, by the values of its labels in the order of their names.

        The value of a histogram is its sum.
        """
        data = self._reader.get_metrics_data()
        found = {}
        for resource in data.resource_metrics if data is not None else ():
            for scope in resource.scope_metrics:
                for each in scope.metrics:
                    if each.name == metric:
                        for point in each.data.data_points:
                            labels = tuple(
                                point.attributes[key] for key in sorted(point.attributes)
                            )
                            found[labels] = getattr(point, "value", getattr(point, "sum", None))
        return found


def attributes(of: Any) -> dict[str, Any]:
    """The attributes of a span, an event or a log record."""
    return dict(of.attributes or {})
