"""Forks, exits and signals, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

START = """
import json, os, pathlib, signal, sys, threading, time
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
import otel_loopguard
from otel_loopguard.runtime import boundary

class Exporter(SpanExporter):
    blocked = threading.Event()
    release = threading.Event()
    blocks = False
    def export(self, spans):
        if self.blocks:
            self.blocked.set()
            self.release.wait(60)
        with open(sys.argv[1], "a") as file:
            for span in spans:
                events = [event.attributes["loopguard.severity"] for event in span.events]
                print(json.dumps([os.getpid(), span.name, events]), file=file)
        return SpanExportResult.SUCCESS
    def force_flush(self, timeout_millis=0):
        return True

def provider():
    made = TracerProvider()
    made.add_span_processor(BatchSpanProcessor(Exporter(), schedule_delay_millis=3_600_000))
    return made

reader = InMemoryMetricReader()
def deadlocks():
    points = []
    for resource in reader.get_metrics_data().resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                if metric.name == "loopguard.deadlocks":
                    points += [point.value for point in metric.data.data_points]
    return sum(points)

def instrument(**options):
    global tracer_provider
    tracer_provider = provider()
    options |= {"tracer_provider": tracer_provider, "meter_provider": MeterProvider([reader])}
    otel_loopguard.instrument(log_warnings=False, **options)

@otel_loopguard.tool
def search(query):
    return "nothing found"

def loop(times, agent="finder"):
    with otel_loopguard.run(agent):
        for _ in range(times):
            search("x")

def wait_for(condition):
    while not condition():
        time.sleep(0.01)

def exported():
    return file.read_text() if (file := pathlib.Path(sys.argv[1])).exists() else ""
"""


def python(tmp_path: Path, program: str) -> tuple[str, list[list[object]]]:
    """What a program printed, and (process, span, severities) of each span that it exported."""
    file = tmp_path / "exported.jsonl"
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", START + textwrap.dedent(program), str(file)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=100,
        env={**os.environ, "PYTHONWARNINGS": "error,ignore::DeprecationWarning"},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = file.read_text().splitlines() if file.exists() else []
    return done.stdout, [json.loads(line) for line in lines]


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


@needs_fork
def test_a_child_flushes_and_counts_on_its_own(tmp_path: Path) -> None:
    out, spans = python(
        tmp_path,
        """
        instrument()
        loop(5)  # the thread of the parent runs
        wait_for(exported)
        before = deadlocks()
        child = os.fork()
        if child == 0:
            with otel_loopguard.run("child"):
                for _ in range(5):
                    search("y")
                wait_for(lambda: f'[{os.getpid()}, "execute_tool search"' in exported())
                os._exit(10 + int(deadlocks() - before))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(status, deadlocks(), dict(boundary.faults))
        """,
    )
    assert out.split(maxsplit=2) == ["12", "2", "{}\n"]
    processes = {process for process, _, _ in spans}
    assert len(processes) == 2  # the child's critical one came out, though its agent never ended


@needs_fork
def test_locks_that_were_held_at_the_fork(tmp_path: Path) -> None:
    """Children of a process whose other threads are at work all the time."""
    out, _ = python(
        tmp_path,
        """
        instrument(flush=False)
        stop = threading.Event()
        def work():
            while not stop.is_set():
                loop(3)
        workers = [threading.Thread(target=work, daemon=True) for _ in range(4)]
        for each in workers:
            each.start()
        codes = set()
        for _ in range(20):
            child = os.fork()
            if child == 0:
                loop(5)
                os._exit(7)
            codes.add(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        stop.set()
        for each in workers:
            each.join()
        print(codes, dict(boundary.faults))
        """,
    )
    assert out == "{7} {}\n"


def test_an_exit_in_the_middle_of_a_flush(tmp_path: Path) -> None:
    python(
        tmp_path,
        """
        Exporter.blocks = True
        instrument()
        loop(5)
        Exporter.blocked.wait(60)
        os._exit(0)
        """,
    )


def test_a_signal_in_the_middle_of_a_flush(tmp_path: Path) -> None:
    out, spans = python(
        tmp_path,
        """
        Exporter.blocks = True
        instrument()
        class Stop(Exception): pass
        def handle(*_):
            search("from the handler")
            raise Stop
        signal.signal(signal.SIGTERM, handle)
        try:
            with otel_loopguard.run("finder"):
                for _ in range(5):
                    search("x")
                Exporter.blocked.wait(60)
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(60)
        except Stop:
            print("stopped", dict(boundary.faults))
        Exporter.release.set()
        """,
    )
    assert out == "stopped {}\n"
    assert [name for _, name, _ in spans].count("execute_tool search") == 6
    assert "invoke_agent finder" in [name for _, name, _ in spans]


def test_the_end_of_a_program_ends_what_is_open(tmp_path: Path) -> None:
    """A thread of ours that waits and an agent that never came back: no noise, nothing lost."""
    _, spans = python(
        tmp_path,
        """
        instrument()
        def forever():
            with otel_loopguard.run("hanging"):
                for _ in range(3):
                    search("x")
                threading.Event().wait()
        threading.Thread(target=forever, daemon=True).start()
        loop(5)
        """,
    )
    assert [name for _, name, _ in spans].count("invoke_agent finder") == 1


def test_tools_that_run_while_the_interpreter_shuts_down(tmp_path: Path) -> None:
    out, _ = python(
        tmp_path,
        """
        import atexit
        instrument()
        @atexit.register
        def last():
            loop(5)
            print("done", dict(boundary.faults))
        """,
    )
    assert out == "done {}\n"
