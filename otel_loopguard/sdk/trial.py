"""A trial: a deadlock of our own goes out like any other, and what leaves the process is looked at.

It goes through the provider, the sampler, the limits and the exporters that the environment has set
up. Exporters are found among the objects of the process, since providers do not name them and some
vendors wrap them.
"""

from __future__ import annotations

import gc
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import _logs, metrics, trace
from opentelemetry.context import Context
from opentelemetry.sdk._logs.export import LogRecordExporter
from opentelemetry.sdk.metrics.export import MetricExporter, MetricReader
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision, Sampler

from otel_loopguard.core.detectors import HardLoop
from otel_loopguard.core.model import Kind, Sighting
from otel_loopguard.runtime import Runtime
from otel_loopguard.sdk import attributes as names
from otel_loopguard.sdk.attach import service_name
from otel_loopguard.sdk.doorman import Doorman
from otel_loopguard.sdk.pipeline import Pipeline
from otel_loopguard.sdk.processor import LoopGuardSpanProcessor
from otel_loopguard.sdk.scope import Run, reference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

    from typing_extensions import Self

    from otel_loopguard.sdk.facts import Provider, Trial
    from otel_loopguard.sdk.providers import Providers
    from otel_loopguard.settings import Settings

AGENT: Final = "otel-loopguard doctor"
"""The agent's name on the trial, so that nobody takes it for one of theirs."""

_ROOTS: Final = 1_000
"""How many traces are asked for, at most, until one is sampled."""


def _spans(batch: Any) -> Iterable[Any]:
    return (span for span in batch if _is_ours(span.instrumentation_scope))


def _metrics(batch: Any) -> Iterator[Any]:
    for resource in batch.resource_metrics:
        for scope in resource.scope_metrics:
            if _is_ours(scope.scope):
                yield from scope.metrics


def _logs_of(batch: Any) -> Iterable[Any]:
    return (record for record in batch if _is_ours(record.instrumentation_scope))


def _is_ours(scope: Any) -> bool:
    return scope is not None and scope.name == names.SCOPE


_SIGNALS: Final[dict[str, tuple[type, Callable[[Any], Iterable[Any]]]]] = {
    "traces": (SpanExporter, _spans),
    "metrics": (MetricExporter, _metrics),
    "logs": (LogRecordExporter, _logs_of),
}


class Watch:
    """Listens at one exporter.

    Attributes:
        signal: traces, metrics or logs.
        exporter: the exporter.
        outcome: what became of what was ours, see `facts.Exporter`.
        seconds: how long that took.
        passed: what was ours, as it was handed over.
    """

    def __init__(self, signal: str, exporter: Any) -> None:
        self.signal = signal
        self.exporter = exporter
        self.outcome = "not called"
        self.seconds = 0.0
        self.passed: list[Any] = []
        self._export: Callable[..., Any] = exporter.export
        exporter.export = self._listen

    def _listen(self, batch: Any, *args: Any, **kwargs: Any) -> Any:
        ours = list(_SIGNALS[self.signal][1](batch))
        if not ours:
            return self._export(batch, *args, **kwargs)
        self.passed += ours
        self.outcome = "no answer"
        began, outcome = time.monotonic(), "raised"
        try:
            result = self._export(batch, *args, **kwargs)
            outcome = str(result.name).lower()
        finally:
            self.seconds, self.outcome = time.monotonic() - began, outcome
        return result

    def stop(self) -> None:
        """Listen no longer."""
        del self.exporter.export


class Watches:
    """Listens at every exporter of the process: `with Watches() as watches:`."""

    def __enter__(self) -> Self:
        kinds = tuple(kind for kind, _ in _SIGNALS.values())
        exporters = _living(*kinds)
        self.all = [
            Watch(signal, exporter)
            for signal, (kind, _) in _SIGNALS.items()
            for exporter in exporters
            if isinstance(exporter, kind)
        ]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for watch in self.all:
            watch.stop()

    def passed(self, signal: str) -> list[Any]:
        """What was handed to the exporters of a signal."""
        return [each for watch in self.all if watch.signal == signal for each in watch.passed]


def _living(*kinds: type) -> list[Any]:
    """The objects of some classes. None is asked: proxies answer for what they stand for."""
    gc.collect()
    wanted = set(kinds)
    return [each for each in gc.get_objects() if not wanted.isdisjoint(type(each).__mro__)]


def readers() -> int:
    """How many metric readers there are; one that is pulled has no exporter."""
    return len(_living(MetricReader))


def is_attached() -> bool:
    """Whether a processor of ours is at work in the process."""
    return any(each.active for each in _living(Doorman, LoopGuardSpanProcessor))


def describe(provider: object) -> Provider:
    """Say what the tracer provider is, and which others there are."""
    if isinstance(provider, trace.ProxyTracerProvider):
        kind = "none"
    else:
        kind = "sdk" if hasattr(provider, "add_span_processor") else "other"
    make = type(provider)
    return {
        "kind": kind,
        "type": f"{make.__module__}.{make.__qualname__}",
        "service": service_name(provider),
        "others": [
            f"{type(each).__module__}.{type(each).__qualname__}"
            for each in _living(TracerProvider)
            if each is not provider
        ],
    }


def sampled_share(provider: object) -> float | None:
    """The share of new traces that a provider's sampler keeps; None if it has no sampler."""
    sampler = getattr(provider, "sampler", None)
    if not isinstance(sampler, Sampler):
        return None
    ids = RandomIdGenerator()
    kept = sum(
        sampler.should_sample(Context(), ids.generate_trace_id(), AGENT).decision
        is Decision.RECORD_AND_SAMPLE
        for _ in range(_ROOTS)
    )
    return kept / _ROOTS


def send(settings: Settings, providers: Providers, watches: Watches, wait_s: float) -> Trial:
    """Send the trial and wait until the exporters have answered.

    Args:
        settings: whose `emit` and `error_status` count; thresholds and muted patterns do not.
        providers: where it goes.
        watches: what listens meanwhile.
        wait_s: seconds that the exporters may take.
    """
    trace_id = _loop(settings, providers)
    tracers = providers.tracer or trace.get_tracer_provider()
    meters = providers.meter or metrics.get_meter_provider()
    _flush((tracers, meters, providers.logger or _logs.get_logger_provider()), wait_s)
    # Several exporters may have been handed the same span.
    spans = {span.context.span_id: span for span in watches.passed("traces")}.values()
    return {
        "trace_id": trace_id,
        "sampled": sampled_share(tracers),
        "events": sum(event.name == names.DEADLOCK for span in spans for event in span.events),
        "lost_attributes": sum(map(_lost, spans)),
        "value_limit": SpanLimits().max_span_attribute_length,
        "metrics": sorted({metric.name for metric in watches.passed("metrics")}),
        "logs": len(watches.passed("logs")),
    }


def _flush(providers: Iterable[object], wait_s: float) -> None:
    """Flush all signals at once. An exporter takes what time it likes; we do not wait for it."""
    flushes = [getattr(provider, "force_flush", None) for provider in providers]
    threads = [threading.Thread(target=each, daemon=True) for each in flushes if each is not None]
    for thread in threads:
        thread.start()
    until = time.monotonic() + wait_s
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))


def _lost(span: Any) -> int:
    """How many attributes a limit has dropped from a span and its events."""
    events = (getattr(event.attributes, "dropped", 0) for event in span.events)
    return span.dropped_attributes + sum(events)


def _loop(settings: Settings, providers: Providers) -> str | None:
    """An agent that makes the same call until the guard warns; gives the trace's id."""
    plain = replace(
        settings,
        thresholds={},
        muted_patterns=frozenset(),
        ignored_tools=frozenset(),
        detectors=(),
        log_warnings=False,
    )
    pipeline = Pipeline(Runtime(plain), providers)
    root = _sampled_root(pipeline.tracer)
    where = root.get_span_context()
    run = Run(trace.format_span_id(where.span_id), AGENT, span=root)
    here = trace.set_span_in_context(root, Context())
    for _ in range(HardLoop().warning):
        attributes = {names.OPERATION: "execute_tool", names.TOOL_NAME: "trial"}
        span = pipeline.tracer.start_span("execute_tool trial", here, attributes=attributes)
        said = "a result that is the same each time"
        seen = Sighting(Kind.TOOL, "trial", args={}, result=said, span=reference(span))
        pipeline.see(run, seen, span)
        span.end()
    pipeline.end_run(run, "answer")
    recorded = root.is_recording()
    root.end()
    pipeline.close()
    return trace.format_trace_id(where.trace_id) if recorded else None


def _sampled_root(tracer: trace.Tracer) -> trace.Span:
    """The agent's span of a trace that is sampled, if one can be had."""
    attributes = {names.OPERATION: "invoke_agent", names.AGENT_NAME: AGENT}
    root: trace.Span = trace.INVALID_SPAN
    for _ in range(_ROOTS):
        root = tracer.start_span(f"invoke_agent {AGENT}", Context(), attributes=attributes)
        if root.is_recording():
            break
    return root
