"""Runs an app inside of this process or as one of its own, and keeps all that can be seen of it."""

from __future__ import annotations

import gc
import importlib
import io
import os
import re
import subprocess
import sys
import warnings
from contextlib import contextmanager, redirect_stdout
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_loopguard import instrument, uninstrument
from tests.unharmed.scenarios import model

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
APPS = ("decorated", "openai_calls", "anthropic_calls", "langchain_calls", "langgraph_calls")

_VOLATILE = re.compile(
    r"req_[0-9a-f]{24}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|0x[0-9a-f]{6,}|127\.0\.0\.1:\d+"
)


class Seen(NamedTuple):
    """What can be seen of a run: output, warnings, exit code, and what went to stderr."""

    out: list[str]
    warned: list[str]
    code: int = 0
    err: str = ""


def assert_same(before: Seen, after: Seen) -> None:
    """Two runs look the same; the failure shows the lines that differ."""
    lines = (
        [*run.out, "-- warnings", *run.warned, f"-- exit {run.code}"] for run in (before, after)
    )
    different = [line[:400] for line in unified_diff(*lines, n=0, lineterm="")]
    assert not different, "\n".join(different)


class Asleep(SpanExporter):
    """An exporter that raises."""

    def export(self, spans: Any) -> Any:
        raise RuntimeError("a fault of the exporter")

    def shutdown(self) -> None:
        raise RuntimeError("a fault of the exporter")

    def force_flush(self, timeout_millis: int = 0) -> bool:
        raise RuntimeError("a fault of the exporter")


def inside(app: str, part: str = "main") -> Seen:
    """Run a part of an app here, and see what it prints and which warnings come up."""
    run = getattr(importlib.import_module(f"tests.unharmed.apps.{app}"), part)
    out = io.StringIO()
    with (
        model() as server,
        warnings.catch_warnings(record=True) as caught,
        _environment(**addresses(server.base_url)),
        redirect_stdout(out),
    ):
        warnings.simplefilter("always")
        run()
        gc.collect()  # here, where what it finds is caught
    warned = {f"{each.category.__name__}: {each.message}" for each in caught}
    kept = [
        each for each in warned if "ResourceWarning" not in each
    ]  # when, is up to the collector
    return Seen(_lines(out.getvalue()), sorted(_lines("\n".join(kept))))


def addresses(base_url: str) -> dict[str, str]:
    """The environment in which the SDKs find the scripted model."""
    return {
        "OPENAI_BASE_URL": f"{base_url}/v1",
        "OPENAI_API_KEY": "unused",
        "ANTHROPIC_BASE_URL": base_url,
        "ANTHROPIC_API_KEY": "unused",
    }


@contextmanager
def _environment(**more: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in more}
    os.environ.update(more)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _lines(text: str) -> list[str]:
    return _VOLATILE.sub("-", text).splitlines()


@contextmanager
def watched(exporter: SpanExporter | None = None, **options: Any) -> Iterator[InMemorySpanExporter]:
    """Watch what is run in the block; the spans that ended are in what this gives."""
    memory = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter or memory))
    meters = MeterProvider([InMemoryMetricReader()])
    instrument(tracer_provider=provider, meter_provider=meters, log_warnings=False, **options)
    try:
        yield memory
    finally:
        uninstrument()


def start(
    *command: str, faults: str = "", without: bool = False, **environment: str
) -> subprocess.Popen[str]:
    """Start a script in a process of its own, as `opentelemetry-instrument python SCRIPT` does.

    Args:
        *command: the file, and what it is given.
        faults: the names of what is to raise from the start on.
        without: leave otel_loopguard out altogether.
        **environment: what to add to the environment.
    """
    path = [str(HERE / "start"), str(ROOT), str(ROOT / "examples")]
    if without:
        path.insert(1, str(HERE / "without"))
        environment["OTEL_PYTHON_DISABLED_INSTRUMENTATIONS"] = "loopguard"
    return subprocess.Popen(
        [sys.executable, *command],
        env={
            **{k: v for k, v in os.environ.items() if not k.startswith("OTEL_")},
            "PYTHONPATH": os.pathsep.join(path),
            "PYTHONUNBUFFERED": "1",
            "FAULTS": faults,
            "OTEL_SERVICE_NAME": "shop",
            "OTEL_METRICS_EXPORTER": "none",
            "OTEL_LOGS_EXPORTER": "none",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
            **environment,
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str], told: str | None = None) -> Seen:
    """What can be seen of a process when it has ended; `told` is what it reads."""
    out, err = process.communicate(told, timeout=100)
    return Seen(_lines(out), [], process.returncode, err)
