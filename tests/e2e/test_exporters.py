"""What each file of exporters/ sends: to the right path, with its key, and nothing that its backend
does not take."""

from __future__ import annotations

import gzip
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality

from tests.e2e.backends.collector import COLLECTOR, Collector
from tests.e2e.oncall import Fleet, eventually
from tests.e2e.test_collector_files import EXPORTERS, form, variables
from tests.serving import Answer, Serving

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

OVER_HTTP = [file for file in EXPORTERS if file.stem != "tempo"]
KEYS = {
    "honeycomb": ("x-honeycomb-team", "HONEYCOMB_API_KEY-1"),
    "newrelic": ("api-key", "NEW_RELIC_LICENSE_KEY-1"),
    "dynatrace": ("authorization", "Api-Token DT_API_TOKEN-1"),
    "grafana-cloud": ("authorization", "Basic GRAFANA_OTLP_BASIC-1"),
    "elastic": ("authorization", "ApiKey ELASTIC_API_KEY-1"),
    "sentry": ("x-sentry-auth", "sentry sentry_key=SENTRY_PUBLIC_KEY-1"),
    "signoz": ("signoz-ingestion-key", "SIGNOZ_INGESTION_KEY-1"),
    "otlp": ("authorization", "OTLP_AUTHORIZATION-1"),
}
TRACES, METRICS, LOGS = "/v1/traces", "/v1/metrics", "/v1/logs"
TAKEN = {"jaeger": {TRACES}, "sentry": {TRACES, LOGS}}
DELTAS = {"datadog", "dynatrace", "newrelic"}


class Vendors(Serving):
    """All backends at once: each has a path of its own before that of OTLP."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: defaultdict[str, set[str]] = defaultdict(set)
        self.keys: defaultdict[str, set[str | None]] = defaultdict(set)
        self.metrics: defaultdict[str, list[Any]] = defaultdict(list)

    def answer(self, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        _, backend, signal = path.split("/", 2)
        self.sent[backend].add(f"/{signal}")
        if backend in KEYS:
            self.keys[backend].add(headers.get(KEYS[backend][0]))
        if f"/{signal}" == METRICS:
            plain = gzip.decompress(body) if headers["content-encoding"] == "gzip" else body
            said = ExportMetricsServiceRequest.FromString(plain)
            scopes = [scope for each in said.resource_metrics for scope in each.scope_metrics]
            self.metrics[backend] += [metric for scope in scopes for metric in scope.metrics]
        return Answer(content_type="application/x-protobuf")

    def deadlocks(self, backend: str) -> list[Any]:
        """The counter's data, as it came."""
        told = list(self.metrics[backend])
        return [metric.sum for metric in told if metric.name == "loopguard.deadlocks"]


@pytest.fixture(scope="module")
def vendors() -> Iterator[Vendors]:
    """They have been sent a deadlock in all three ways."""
    with Vendors() as running:
        settings = {
            name: f"{running.url}/{file.stem}" if form(name) == "address" else f"{name}-1"
            for file in OVER_HTTP
            for name in variables(file)
        }
        with (
            Collector((COLLECTOR, *OVER_HTTP), **settings) as collector,
            Fleet(
                "sold",
                collector.otlp_http,
                1,
                1,
                1,
                OTEL_LOGS_EXPORTER="otlp",
                OTEL_LOOPGUARD_EMIT="span,metric,log",
            ) as fleet,
        ):
            fleet.wait_until_stuck()
            assert eventually(
                lambda: all(
                    TAKEN.get(file.stem, {TRACES, METRICS, LOGS}) <= running.sent[file.stem]
                    and (file.stem in TAKEN or running.deadlocks(file.stem))
                    for file in OVER_HTTP
                )
            ), running.sent
            yield running


@pytest.mark.parametrize("backend", [file.stem for file in OVER_HTTP])
def test_a_backend_is_sent_what_it_takes_with_its_key(vendors: Vendors, backend: str) -> None:
    assert vendors.sent[backend] == TAKEN.get(backend, {TRACES, METRICS, LOGS})
    if backend in KEYS:
        assert vendors.keys[backend] == {KEYS[backend][1]}
    temporality = {each.aggregation_temporality for each in vendors.deadlocks(backend)}
    kind = "DELTA" if backend in DELTAS else "CUMULATIVE"
    expected = AggregationTemporality.Value(f"AGGREGATION_TEMPORALITY_{kind}")
    assert temporality == (set() if backend in TAKEN else {expected})
