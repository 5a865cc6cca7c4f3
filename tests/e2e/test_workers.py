"""A web server and a task queue that fork, a pool that spawns, replicas: each stuck run is counted
once, and the same call has the same digest everywhere if all have the same key."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.agents import spans_of
from tests.e2e.backends.programs import free_ports, get
from tests.e2e.fleet import REPEATS, UTTERANCES
from tests.e2e.oncall import WORKERS, Line, events, eventually
from tests.matrix import ROOT, Row, environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.backends.jaeger import Jaeger

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

KEY = {"OTEL_LOOPGUARD_HASH_KEY": "the same in each process of the service"}
BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def line(jaeger: Jaeger) -> Iterator[Line]:
    with ExitStack() as stack:
        yield Line.open(jaeger, stack)


def start(
    line: Line,
    running: ExitStack,
    service: str,
    *command: str,
    tools: Path = BIN,
    **environment: str,
) -> subprocess.Popen[str]:
    """A program with its workers; it ends with the stack."""
    process = subprocess.Popen(
        [str(tools / "opentelemetry-instrument"), *command],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "OTEL_SERVICE_NAME": service,
            "OTEL_EXPORTER_OTLP_ENDPOINT": line.collector.otlp_http,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_LOGS_EXPORTER": "none",
            "OTEL_METRIC_EXPORT_INTERVAL": "1000",
            "OTEL_BSP_SCHEDULE_DELAY": "500",
            "OTEL_LOOPGUARD_LOG_WARNINGS": "false",
            **environment,
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    running.callback(process.communicate)
    running.callback(os.killpg, process.pid, signal.SIGKILL)
    return process


def web_server(line: Line, running: ExitStack, service: str) -> list[int]:
    """Gunicorn with two workers, each of which is stuck at least once: the worker of each run."""
    (port,) = free_ports(1)
    command = ("-w", "2", "-b", f"127.0.0.1:{port}", "tests.e2e.workers:application")
    start(line, running, service, str(BIN / "gunicorn"), *command, **KEY)

    def up() -> bool:
        try:
            return get(port, "/")[0] == 200
        except OSError:
            return False

    assert eventually(up)
    workers = [0]  # of the request that was the first to be answered
    with ThreadPoolExecutor(4) as clients:
        while len(set(workers)) < 3:
            workers += [pid for _, pid in clients.map(lambda _: get(port, "/"), range(4))]
    return workers


def pool(line: Line, running: ExitStack, service: str, **environment: str) -> list[int]:
    """A pool of three spawned workers, each of which is stuck once."""
    process = start(line, running, service, sys.executable, str(WORKERS), "3", **environment)
    assert process.stdout is not None
    workers = [int(pid) for pid in process.stdout.readline().split()]
    assert len(set(workers)) == 3
    return workers


@pytest.fixture(scope="module")
def celery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with Celery."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    row = Row("celery", "newest", version, ["celery>=5.6,<6"], [])
    log = tmp_path_factory.mktemp("celery") / "log"
    python = environment(row, log)
    assert python, log.read_text()
    return python.parent


def queue(
    line: Line, running: ExitStack, service: str, celery: Path, folder: Path, **settings: str
) -> list[int]:
    """Celery with two processes, each of which is stuck at least once: the worker of each run."""
    settings["FOLDER"] = str(folder)
    app = "tests.e2e.celery_app"
    command = ("-A", app, "worker", "-P", "prefork", "-c", "2", "-l", "error")
    program = str(celery / "celery")
    start(line, running, service, program, *command, tools=celery, **settings)
    workers: list[int] = []
    while len(set(workers)) < 2:
        sent = subprocess.run(
            [celery / "python", "-m", app, "4"],
            cwd=ROOT,
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            check=True,
        )
        workers += map(int, sent.stdout.split())
    return workers


def digests(line: Line, service: str) -> set[str]:
    return {
        span.tags["loopguard.args_fingerprint"]
        for span in spans_of(line.jaeger, service)
        if span.name == "execute_tool search"
    }


def counted(line: Line, service: str, runs: int) -> None:
    """Each run is counted, and each event of it, and none twice."""
    for series, expected in (
        ("stuck_runs", runs),
        ("deadlocks_total", runs * UTTERANCES),
        ("deadlock_events_total", runs * UTTERANCES),
        ("tool_spans_total", runs * REPEATS),
    ):
        asked = f'loopguard_{series}{{job="{service}"}}'
        assert eventually(
            lambda asked=asked, value=expected: line.prometheus.total(asked) == value
        ), (
            asked,
            line.prometheus.query(asked),
        )
    assert eventually(lambda: len(events(line.jaeger, service)) == runs * UTTERANCES)


def test_a_service_of_a_web_server_and_a_pool_counts_each_run_once(line: Line) -> None:
    with ExitStack() as running:
        workers = web_server(line, running, "replicas") + pool(line, running, "replicas", **KEY)
        counted(line, "replicas", len(workers))
        assert len(digests(line, "replicas")) == 1, "they have the key in common"


def test_the_processes_of_a_task_queue_count_each_run_once(
    line: Line, celery: Path, tmp_path: Path
) -> None:
    with ExitStack() as running:
        workers = queue(line, running, "queue", celery, tmp_path, **KEY)
        counted(line, "queue", len(workers))
        assert len(digests(line, "queue")) == 1, "they have the key in common"


def test_without_a_key_each_process_has_its_own_digests(line: Line) -> None:
    with ExitStack() as running:
        workers = pool(line, running, "keyless")
        counted(line, "keyless", len(workers))
        assert len(digests(line, "keyless")) == len(workers)
