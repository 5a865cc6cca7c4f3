"""The whole line from an agent to a page, and programs that are watched through it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.e2e.agents import Span, spans_of
from tests.e2e.backends.collector import COLLECTOR, CONFIG, Collector
from tests.e2e.backends.prometheus import Alertmanager, Pager, Prometheus

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack

    from typing_extensions import Self

    from tests.e2e.backends.jaeger import Jaeger

FLEET = Path(__file__).with_name("fleet.py")
FLOOD = Path(__file__).with_name("flood.py")
WORKERS = Path(__file__).with_name("workers.py")
JAEGER = CONFIG / "exporters" / "jaeger.yaml"


class Line(NamedTuple):
    """An agent's data goes to the collector, from there to Jaeger and to whoever is on call."""

    jaeger: Jaeger
    collector: Collector
    prometheus: Prometheus
    pager: Pager

    @classmethod
    def open(cls, jaeger: Jaeger, stack: ExitStack, **settings: str) -> Self:
        """Start all of it but Jaeger; it ends with the stack."""
        collector = collector_before(jaeger, **settings)
        pager = stack.enter_context(Pager())
        alertmanager = stack.enter_context(Alertmanager(pager, group_interval="2s"))
        stack.enter_context(collector)
        prometheus = stack.enter_context(Prometheus(collector, alertmanager))
        return cls(jaeger, collector, prometheus, pager)


def collector_before(jaeger: Jaeger, *files: Path, **settings: str) -> Collector:
    """A collector, with our configuration unless another is given, that sends to a Jaeger."""
    return Collector(
        files or (COLLECTOR, JAEGER), **{"JAEGER_ENDPOINT": jaeger.otlp_http, **settings}
    )


class Fleet:
    """A service of several workers with many runs each (`fleet.py`), inside the `with` block.

    Args:
        service: its name.
        endpoint: where its data goes, as OTLP over HTTP.
        workers, runs, stuck: how many workers; how many runs in each; how many of these get stuck.
        pause_s: between two steps of a run.
        environment: more of its environment.
    """

    def __init__(
        self,
        service: str,
        endpoint: str,
        workers: int,
        runs: int,
        stuck: int,
        *,
        pause_s: float = 0.2,
        **environment: str,
    ) -> None:
        self.service = service
        self._workers = workers
        tool = Path(sys.executable).with_name("opentelemetry-instrument")
        numbers = map(str, (workers, runs, stuck, pause_s))
        self._command = [str(tool), sys.executable, str(FLEET), *numbers]
        self._environment = {
            "OTEL_SERVICE_NAME": service,
            "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_LOGS_EXPORTER": "none",
            "OTEL_METRIC_EXPORT_INTERVAL": "1000",
            "OTEL_BSP_SCHEDULE_DELAY": "500",
            "OTEL_LOOPGUARD_LOG_WARNINGS": "false",
            **environment,
        }

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            self._command,
            env={**os.environ, **self._environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        return self

    def wait_until_stuck(self) -> float:
        """Wait until all runs have done what they do: the seconds that a call took."""
        assert self.process.stdout is not None
        return max(float(self.process.stdout.readline()) for _ in range(self._workers))

    def end(self) -> None:
        """All runs end, then the processes, in an orderly way."""
        self.process.communicate("\n", timeout=60)
        assert self.process.returncode == 0

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


def events(jaeger: Jaeger, service: str) -> list[Span]:
    """The spans of a service that carry a deadlock event, as many times as Jaeger has them."""
    return [
        span
        for span in spans_of(jaeger, service)
        for event in span.events
        if event["event"] == "loopguard.deadlock"
    ]


def eventually(holds: Callable[[], object], timeout_s: float = 30) -> bool:
    """Whether something comes to hold in time."""
    until = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def doctor(endpoint: str, *options: str, protocol: str = "http/protobuf") -> dict[str, Any]:
    """What it reports; its exit code agrees with that."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    given = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
        "OTEL_SERVICE_NAME": "visited",
        "PYTHONPATH": str(CONFIG.parent),
    }
    command = [sys.executable, "-m", "otel_loopguard.cli", "doctor", "--json", *options]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**kept, **given}, check=False
    )
    assert done.returncode in {0, 1}, done.stderr
    report = json.loads(done.stdout)
    assert report["ok"] is (done.returncode == 0)
    return report


def findings(report: dict[str, Any]) -> dict[str, str]:
    """What is said under each name."""
    found: dict[str, str] = {}
    for each in report["findings"]:
        found[each["id"]] = f"{found.get(each['id'], '')}{each['what']}; {each['fix']}\n"
    return found
