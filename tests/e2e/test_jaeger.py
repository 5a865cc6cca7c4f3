"""The Jaeger that the other e2e tests stand on: it takes spans, finds them, and always ends."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from tests.e2e.backends.jaeger import Jaeger, Ports
from tests.e2e.backends.programs import ProgramMissing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.e2e

HOLDER = """
import time
from tests.e2e.backends.jaeger import Jaeger
with Jaeger() as jaeger:
    print(jaeger.ui, flush=True)
    time.sleep(60)
"""


@pytest.fixture(scope="module")
def jaeger() -> Iterator[Jaeger]:
    with Jaeger() as running:
        yield running


def eventually(look: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 10
    while not (seen := look()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return seen


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_spans_are_found_by_the_attributes_of_their_events(jaeger: Jaeger, protocol: str) -> None:
    service = f"agent-{protocol}"
    exporter = (
        HttpExporter(f"{jaeger.otlp_http}/v1/traces")
        if protocol == "http"
        else GrpcExporter(jaeger.otlp_grpc, insecure=True)
    )
    provider = TracerProvider(resource=Resource.create({"service.name": service}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with provider.get_tracer("test").start_as_current_span("execute_tool look") as span:
        span.add_event("found", {"pattern": "hard_loop", "deadlock": True})
    provider.shutdown()
    trace_id = f"{span.get_span_context().trace_id:032x}"

    trace = eventually(lambda: jaeger.trace(trace_id))
    assert [one["operationName"] for one in trace["spans"]] == ["execute_tool look"]
    found = jaeger.traces(service, {"pattern": "hard_loop", "deadlock": "true"})
    assert [one["traceID"] for one in found] == [trace_id]
    assert jaeger.traces(service, {"pattern": "another"}) == []


def test_what_is_not_there_is_not_found(jaeger: Jaeger) -> None:
    assert jaeger.trace("0" * 31 + "1") is None
    assert jaeger.traces("nobody") == []


def test_two_run_side_by_side_but_not_on_the_same_ports(jaeger: Jaeger) -> None:
    with Jaeger() as other:
        assert other.ui != jaeger.ui
    taken = Ports(ui=int(jaeger.ui.rpartition(":")[2]))
    with pytest.raises(ProgramMissing, match=f"Port {taken.ui} is taken"), Jaeger(taken):
        pass


def test_it_ends_with_the_process_that_started_it() -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True)
    with holder:
        assert holder.stdout is not None
        port = int(holder.stdout.readline().rpartition(":")[2])
        assert listens(port)
        holder.send_signal(signal.SIGKILL)
    assert eventually(lambda: not listens(port))


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
