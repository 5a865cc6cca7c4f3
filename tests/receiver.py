"""A receiver of OTLP over HTTP that keeps what it gets, to the byte."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.serving import Answer, Serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

KINDS = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/metrics": ExportMetricsServiceRequest,
    "/v1/logs": ExportLogsServiceRequest,
}


class Receiver(Serving):
    """An endpoint for `OTEL_EXPORTER_OTLP_ENDPOINT`.

    Args:
        status: what it answers.

    Attributes:
        bodies: the body of each request, with its path.
    """

    def __init__(self, status: int = 200) -> None:
        super().__init__()
        self.bodies: list[tuple[str, bytes]] = []
        self._status = status

    def answer(self, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        self.bodies.append((path, body))
        return Answer(self._status)

    def messages(self, path: str) -> Iterator[Any]:
        """What came to a path, decoded."""
        for where, body in tuple(self.bodies):
            if where == path:
                message: Any = KINDS[path]()
                message.ParseFromString(body)
                yield message

    @property
    def scopes(self) -> Iterator[Any]:
        """All spans by their scope, as `ScopeSpans`."""
        for message in self.messages("/v1/traces"):
            for resource in message.resource_spans:
                yield from resource.scope_spans

    @property
    def spans(self) -> list[Any]:
        """All spans."""
        return [span for scope in self.scopes for span in scope.spans]

    @property
    def names(self) -> Counter[str]:
        """How often each name of a span came."""
        return Counter(span.name for span in self.spans)

    @property
    def severities(self) -> list[str]:
        """The severity of each deadlock event."""
        return [
            attribute.value.string_value
            for span in self.spans
            for event in span.events
            if event.name == "loopguard.deadlock"
            for attribute in event.attributes
            if attribute.key == "loopguard.severity"
        ]

    def wait_until(self, holds: Callable[[], bool], timeout_s: float = 30) -> bool:
        """Whether something comes to hold in time."""
        until = time.monotonic() + timeout_s
        while not holds():
            if time.monotonic() > until:
                return False
            time.sleep(0.02)
        return True
