"""Odd providers, odd spans, many threads: nothing is raised or lost, and counts are exact."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import otel_loopguard as loopguard
from otel_loopguard import runtime
from tests.unharmed.faults import break_
from tests.unharmed.running import Seen, assert_same, inside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

APPS = ("decorated", "openai_calls")
THREADS, CALLS = 64, 40


class Bare(trace.TracerProvider):
    """A provider of another make: it takes no processors."""

    def get_tracer(self, *_: Any, **__: Any) -> trace.Tracer:
        return trace.NoOpTracer()


class Stubborn(TracerProvider):
    """It takes no processor, and says so."""

    def add_span_processor(self, *_: Any, **__: Any) -> None:
        raise RuntimeError("no processors here")


class Lost(Bare):
    """It has no tracer."""

    def get_tracer(self, *_: Any, **__: Any) -> trace.Tracer:
        raise RuntimeError("no tracer here")


class RaisingSpan(trace.NonRecordingSpan):
    """A span of another make whose methods all raise."""

    def is_recording(self) -> bool:
        return True

    def end(self, *_: Any, **__: Any) -> None:
        raise RuntimeError("no end here")

    set_attribute = set_attributes = add_event = set_status = update_name = end  # type: ignore[assignment]


class Raising(Bare):
    """Its spans raise."""

    def get_tracer(self, *_: Any, **__: Any) -> trace.Tracer:
        class Tracer(trace.NoOpTracer):
            def start_span(self, *_: Any, **__: Any) -> trace.Span:
                return RaisingSpan(trace.INVALID_SPAN_CONTEXT)

        return Tracer()


class Spanless(Bare):
    """Its tracers start no spans."""

    def get_tracer(self, *_: Any, **__: Any) -> trace.Tracer:
        class Tracer(trace.NoOpTracer):
            def start_span(self, *_: Any, **__: Any) -> trace.Span:
                raise RuntimeError("no span here")

        return Tracer()


def _shut_down() -> TracerProvider:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.shutdown()
    return provider


PROVIDERS: dict[str, Callable[[], Any]] = {
    "no-op": trace.NoOpTracerProvider,
    "proxy": trace.ProxyTracerProvider,
    "another make": Bare,
    "stubborn": Stubborn,
    "without tracer": Lost,
    "raising": Raising,
    "without spans": Spanless,
    "no provider": object,
    "shut down": _shut_down,
}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("app", APPS)
@pytest.mark.parametrize("kind", PROVIDERS)
def test_an_odd_provider(kind: str, app: str, unwatched: Callable[[str, str], Seen]) -> None:
    alone = unwatched(app, "brief")
    loopguard.instrument(tracer_provider=PROVIDERS[kind](), log_warnings=False)
    try:
        beside = inside(app, "brief")
    finally:
        loopguard.uninstrument()
    assert_same(alone, beside)


@pytest.fixture
def provider() -> Iterator[TracerProvider]:
    made = TracerProvider(shutdown_on_exit=False)
    yield made
    made.shutdown()


@pytest.mark.parametrize("fault", ["settings", "building"])
def test_the_processor_alone_with_faults_from_the_start(
    fault: str, provider: TracerProvider
) -> None:
    runtime.reset()
    mend = break_(fault)
    try:
        provider.add_span_processor(loopguard.LoopGuardSpanProcessor(provider))
        with provider.get_tracer("app").start_as_current_span("execute_tool search"):
            pass
        assert provider.force_flush()
    finally:
        mend()


@pytest.mark.parametrize("fault", ["dialects", "observe", "guard", "reporter", "daemon"])
def test_the_processor_alone_with_faults(
    fault: str, provider: TracerProvider, faults: Counter[str]
) -> None:
    runtime.reset()
    memory = InMemorySpanExporter()
    provider.add_span_processor(loopguard.LoopGuardSpanProcessor(provider))
    provider.add_span_processor(SimpleSpanProcessor(memory))
    mend = break_(fault)
    try:
        _loop(provider, 8)
    finally:
        mend()
    assert faults
    assert sum(s.name == "execute_tool search" for s in memory.get_finished_spans()) == 8


def _loop(provider: TracerProvider, times: int, *, ends: int = 1) -> None:
    tracer = provider.get_tracer("opentelemetry.instrumentation.langchain")
    said = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search",
        "gen_ai.tool.call.arguments": '{"query": "chairs"}',
        "gen_ai.tool.call.result": "nothing",
    }
    with tracer.start_as_current_span("work"):
        for _ in range(times):
            span = tracer.start_span("execute_tool search", attributes=said)
            for _ in range(ends):
                span.end()


def test_a_span_that_ends_twice_counts_once(provider: TracerProvider, faults: Counter[str]) -> None:
    runtime.reset()
    memory = InMemorySpanExporter()
    processor = loopguard.LoopGuardSpanProcessor(provider)
    provider.add_span_processor(processor)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    _loop(provider, 2, ends=3)
    for span in memory.get_finished_spans():
        processor.on_end(span)
    assert not [span.name for span in memory.get_finished_spans() if "loopguard" in span.name]
    _loop(provider, 3, ends=3)
    events = [e.name for span in memory.get_finished_spans() for e in span.events]
    assert events == ["loopguard.deadlock"]
    assert not faults


def test_spans_that_lack_everything(provider: TracerProvider, faults: Counter[str]) -> None:
    processor = loopguard.LoopGuardSpanProcessor(provider)
    context = trace.SpanContext(1, 2, is_remote=False)
    for span in (
        ReadableSpan("", None),
        ReadableSpan("execute_tool search", context, attributes=None),
        ReadableSpan("chat", context, attributes={}, resource=Resource({})),
    ):
        processor.on_end(span)
    assert not faults


def test_many_threads_at_once(faults: Counter[str]) -> None:
    memory, reader = InMemorySpanExporter(), InMemoryMetricReader()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(memory, max_queue_size=100_000))
    meters = MeterProvider([reader], shutdown_on_exit=False)
    loopguard.instrument(tracer_provider=provider, meter_provider=meters, log_warnings=False)

    @loopguard.tool
    def search(query: str) -> str:
        return "nothing"

    @loopguard.tool
    def read(page: int) -> str:
        return f"page {page}"

    together = threading.Barrier(THREADS)

    def work(number: int) -> None:
        together.wait()
        with loopguard.run(f"agent-{number % 2}"):
            for n in range(CALLS):
                search("chairs") if number % 2 else read(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    loopguard.uninstrument()
    provider.shutdown()

    spans = memory.get_finished_spans()
    assert Counter(span.name for span in spans) == {
        "invoke_agent agent-0": THREADS // 2,
        "invoke_agent agent-1": THREADS // 2,
        "execute_tool search": THREADS // 2 * CALLS,
        "execute_tool read": THREADS // 2 * CALLS,
    }
    said = [event.attributes or {} for span in spans for event in span.events]
    # Third, fifth, and each doubling: 10, 20, 40.
    assert Counter(str(each["loopguard.severity"]) for each in said) == {
        "warning": THREADS // 2,
        "critical": THREADS // 2 * 4,
    }
    assert {each["gen_ai.agent.name"] for each in said} == {"agent-1"}
    points = _points(reader)
    assert sum(point.value for point in points["loopguard.deadlocks"]) == len(said)
    assert sum(point.value for point in points["loopguard.stuck_runs"]) == 0
    iterations = points["loopguard.iterations"]
    assert sum(point.count for point in iterations) == THREADS
    assert sum(point.sum for point in iterations) == THREADS * CALLS
    assert not faults


def _points(reader: InMemoryMetricReader) -> dict[str, list[Any]]:
    data = reader.get_metrics_data()
    assert data is not None
    return {
        metric.name: list(metric.data.data_points)
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
