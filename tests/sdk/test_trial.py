"""The trial: what it sends, and what is seen of it at the exporters."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    InMemoryMetricReader,
    MetricExporter,
    MetricExportResult,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, TraceIdRatioBased

from otel_loopguard.sdk import trial
from otel_loopguard.sdk.facts import without_credentials
from otel_loopguard.sdk.processor import LoopGuardSpanProcessor
from otel_loopguard.sdk.providers import Providers
from otel_loopguard.settings import from_env
from tests.signals import Signals

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from opentelemetry.sdk.trace.sampling import Sampler

    from otel_loopguard.sdk.facts import Trial


class Metrics(MetricExporter):
    """Takes all metrics."""

    def export(self, *_: Any, **__: Any) -> MetricExportResult:
        return MetricExportResult.SUCCESS

    def force_flush(self, timeout_millis: float = 0) -> bool:
        return True

    def shutdown(self, timeout_millis: float = 0, **_: Any) -> None:
        """Nothing is held."""


class Spans(SpanExporter):
    """Does something with spans."""

    def __init__(self, export: Callable[[], SpanExportResult]) -> None:
        self._export = export

    def export(self, spans: object) -> SpanExportResult:
        return self._export()


def send(provider: TracerProvider, wait_s: float = 5, **settings: object) -> tuple[Trial, Any]:
    with trial.Watches() as watches:
        sent = trial.send(from_env({}, **settings), Providers(provider), watches, wait_s)
    return sent, watches


def test_all_three_signals() -> None:
    signals = Signals()
    meters = MeterProvider([PeriodicExportingMetricReader(Metrics(), 60_000)])
    meters.get_meter("theirs").create_counter("work").add(1)
    providers = signals.providers._replace(meter=meters)
    with trial.Watches() as watches:
        settings = from_env({}, emit="span,metric,log", muted_patterns="hard_loop")
        sent = trial.send(settings, providers, watches, 5)
    meters.shutdown()
    assert sent["events"] == sent["logs"] == 1
    assert {"loopguard.deadlocks", "loopguard.stuck_runs"} <= set(sent["metrics"])
    assert (sent["sampled"], sent["lost_attributes"], sent["value_limit"]) == (1, 0, None)
    root = signals.span(f"invoke_agent {trial.AGENT}")
    assert sent["trace_id"] == trace.format_trace_id(root.context.trace_id)
    assert len(signals.named("execute_tool trial")) == 3
    assert signals.severities == ["warning"]
    called = [watch.signal for watch in watches.all if watch.outcome == "success"]
    assert called == ["traces", "metrics", "logs"]


def test_what_is_not_ours_passes_unseen() -> None:
    signals = Signals()
    with trial.Watches() as watches:
        signals.tracer_provider.get_tracer("theirs").start_span("work").end()
    assert watches.passed("traces") == []
    assert len(signals.spans) == 1
    assert all(watch.outcome == "not called" for watch in watches.all)


def test_a_span_at_two_exporters_is_one() -> None:
    signals = Signals()
    second = Spans(lambda: SpanExportResult.SUCCESS)
    signals.tracer_provider.add_span_processor(SimpleSpanProcessor(second))
    sent, watches = send(signals.tracer_provider)
    assert sent["events"] == 1
    assert len(watches.passed("traces")) == 8


def test_an_exporter_that_raises_and_one_that_refuses() -> None:
    def broken() -> SpanExportResult:
        raise ConnectionError

    for export, outcome in ((broken, "raised"), (lambda: SpanExportResult.FAILURE, "failure")):
        provider, exporter = TracerProvider(), Spans(export)
        provider.add_span_processor(BatchSpanProcessor(exporter))
        _, watches = send(provider)
        (watch,) = (each for each in watches.all if each.exporter is exporter)
        assert watch.outcome == outcome
        provider.shutdown()


def test_an_exporter_that_does_not_answer_is_not_waited_for() -> None:
    go_on = threading.Event()

    def slow() -> SpanExportResult:
        go_on.wait(60)
        return SpanExportResult.SUCCESS

    provider, exporter = TracerProvider(), Spans(slow)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    sent, watches = send(provider, wait_s=0.2)
    (watch,) = (each for each in watches.all if each.exporter is exporter)
    assert (watch.outcome, sent["events"]) == ("no answer", 1)
    go_on.set()
    provider.shutdown()


def test_limits_show() -> None:
    for limits, events, lost in (
        (SpanLimits(max_events=0), 0, False),
        (SpanLimits(max_event_attributes=4), 1, True),
        (SpanLimits(max_span_attributes=4), 1, True),
    ):
        provider = TracerProvider(span_limits=limits)
        provider.add_span_processor(SimpleSpanProcessor(Spans(lambda: SpanExportResult.SUCCESS)))
        sent, _ = send(provider)
        assert sent["events"] == events
        assert bool(sent["lost_attributes"]) is lost


@pytest.mark.parametrize(
    ("sampler", "least", "most"),
    [(ALWAYS_ON, 1, 1), (ALWAYS_OFF, 0, 0), (TraceIdRatioBased(0.5), 0.3, 0.7)],
)
def test_the_share_that_is_sampled(sampler: Sampler, least: float, most: float) -> None:
    sent, _ = send(Signals(sampler=sampler).tracer_provider)
    assert sent["sampled"] is not None
    assert least <= sent["sampled"] <= most
    assert (sent["trace_id"] is None) is (most == 0)


def test_a_provider_without_a_sampler() -> None:
    assert trial.sampled_share(trace.NoOpTracerProvider()) is None


def test_a_provider_is_described() -> None:
    named = TracerProvider(resource=Resource.create({SERVICE_NAME: "shop"}))
    said = trial.describe(named)
    assert (said["kind"], said["service"]) == ("sdk", "shop")
    assert said["type"] == "opentelemetry.sdk.trace.TracerProvider"
    assert trial.describe(trace.NoOpTracerProvider())["kind"] == "other"
    nobody = trial.describe(trace.ProxyTracerProvider())
    assert nobody["kind"] == "none"
    assert said["type"] in nobody["others"]


def test_our_processor_and_readers_are_found() -> None:
    reader = InMemoryMetricReader()
    processor = LoopGuardSpanProcessor()
    assert trial.is_attached()
    assert trial.readers() >= 1
    processor.shutdown()
    del reader


def test_addresses_lose_their_credentials() -> None:
    said = without_credentials("no answer from https://me:secret@host:4318/v1, mail a@b.c")
    assert said == "no answer from https://host:4318/v1, mail a@b.c"
