"""What the guard costs, as ratios against the SDK's own span in the same process.

    python tests/bench/bench.py

Times are medians over alternating batches, so that a machine whose speed drifts does not decide.
The figures go to build/bench.json; the exit code is 1 if one is beyond its limit.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import resource
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

import otel_loopguard as loopguard
from otel_loopguard.core.model import Kind, Sighting
from otel_loopguard.runtime import build
from otel_loopguard.settings import from_env
from tests.figures import Figures

BATCH = 500
BATCHES = 41
Call = Callable[[int], object]


class Nowhere(SpanExporter):
    """Takes spans and drops them."""

    def export(self, spans: object) -> SpanExportResult:
        return SpanExportResult.SUCCESS


def kilobyte_text(n: int) -> str:
    """A different text of 1 kB each time."""
    return f"{n:08d} " + "the result of a tool, word by word, " * 28


def kilobyte_object(n: int) -> dict[str, object]:
    """A different JSON object of 1 kB each time."""
    rows = [
        {"id": n + i, "name": f"item {i}", "price": i + 0.5, "tags": ["a", "b"]} for i in range(16)
    ]
    return {"page": n, "rows": rows, "next": None, "more": True}


def timed(call: Call, numbers: count[int]) -> float:
    """Seconds for one call, over one batch."""
    todo = [next(numbers) for _ in range(BATCH)]
    started = time.perf_counter()
    for n in todo:
        call(n)
    return (time.perf_counter() - started) / BATCH


def side_by_side(*calls: Call) -> list[list[float]]:
    """Seconds for each call, measured in turn, batch by batch."""
    numbers = count()
    for call in calls:
        timed(call, numbers)
    rounds = [[timed(call, numbers) for call in calls] for _ in range(BATCHES)]
    return [list(column) for column in zip(*rounds, strict=True)]


def tool_call(figures: Figures, tracer: trace.Tracer) -> None:
    """Our part of a tool call over one span of the SDK."""
    for name, make, limit in (
        ("1 kB string", kilobyte_text, 1.0),
        ("1 kB JSON object", kilobyte_object, 2.0),
    ):

        def bare(n: int, make: Call = make) -> object:
            return make(n)

        def spanned(n: int, make: Call = make) -> object:
            with tracer.start_as_current_span(
                "execute_tool search",
                attributes={
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": "search",
                    "gen_ai.tool.call.id": "call_1",
                    "gen_ai.agent.name": "bench",
                },
            ):
                return make(n)

        guarded = loopguard.tool(name="search")(bare)
        with loopguard.run("bench"):
            plain, span, ours = side_by_side(bare, spanned, guarded)
        ratios = [(o - s) / (s - p) for p, s, o in zip(plain, span, ours, strict=True)]
        own = statistics.median(s - p for p, s in zip(plain, span, strict=True))
        print(f"  the SDK's own span: {own * 1e6:.1f} us")
        show(figures, f"our part of a tool call, {name}", statistics.median(ratios), "x", limit)


def step(n: int) -> Sighting:
    """A healthy step: arguments and result differ each time."""
    return Sighting(
        Kind.TOOL, "search", args={"page": n}, result=f"row {n}", start_ns=2 * n, end_ns=2 * n + 1
    )


def flatness(figures: Figures) -> None:
    """A step of a long run over a step of a short one."""
    guard = build(from_env({})).guard
    for n in range(100_000):
        guard.observe("long", step(n))
    runs = count()

    def young(n: int) -> None:
        guard.observe(f"run {next(runs) // BATCH}", step(n))

    def old(n: int) -> None:
        guard.observe("long", step(100_000 + n))

    def at_ten() -> float:
        """Steps 10 to 20 of a fresh run, many times."""
        seconds = 0.0
        for _ in range(BATCH // 10):
            run = f"young {next(runs)}"
            for n in range(10):
                guard.observe(run, step(n))
            started = time.perf_counter()
            for n in range(10, 20):
                guard.observe(run, step(n))
            seconds += time.perf_counter() - started
            guard.end(run, "closed")
        return seconds / BATCH

    numbers = count()
    pairs = [(timed(old, numbers), at_ten()) for _ in range(BATCHES)]
    print(f"  a step: {statistics.median(b for _, b in pairs) * 1e6:.1f} us")
    ratio = statistics.median(a / b for a, b in pairs)
    show(figures, "step cost at 100,000 steps over at 10", ratio, "x", 1.1)


def memory(figures: Figures) -> None:
    """What live episodes take, and whether a million steps leave anything behind."""
    for steps, limit in ((1, None), (20, 256.0), (64, None)):
        guard = build(from_env({})).guard
        gc.collect()
        tracemalloc.start()
        for n in range(10_000):
            for i in range(steps):
                guard.observe(f"run {n}", step(100 * n + i))
        used = tracemalloc.get_traced_memory()[0] / 2**20
        tracemalloc.stop()
        name = f"10,000 live episodes of {steps} steps"
        show(figures, name, used, "MiB", limit)
        if steps == 1:
            show(figures, "an idle episode", used * 2**10 / 10_000, "KiB", None)
    guard = build(from_env({})).guard
    for n in range(100_000):
        guard.observe("long", step(n))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for n in range(100_000, 1_000_000):
        guard.observe("long", step(n))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    show(figures, "growth from 100,000 to 1,000,000 steps", grown, "MiB", 1.0)


def start_up(figures: Figures) -> None:
    """What we add to `opentelemetry-instrument python -c pass`."""
    tool = str(Path(sys.executable).with_name("opentelemetry-instrument"))
    environment = {**os.environ, "OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none",
                   "OTEL_LOGS_EXPORTER": "none"}  # fmt: skip

    def once(**more: str) -> float:
        started = time.perf_counter()
        subprocess.run([tool, sys.executable, "-c", "pass"], env=environment | more, check=True)
        return time.perf_counter() - started

    once()
    added = [once() - once(OTEL_PYTHON_DISABLED_INSTRUMENTATIONS="loopguard") for _ in range(15)]
    show(figures, "added start-up", statistics.median(added) * 1000, "ms", 50.0)


def show(figures: Figures, name: str, value: float, unit: str, limit: float | None) -> None:
    """Print a figure and keep it."""
    holds = figures.add(name, round(value, 3), unit, limit)
    bound = "" if limit is None else f"  (at most {limit:g}{'' if holds else ': EXCEEDED'})"
    print(f"{name}: {value:.3f} {unit}{bound}", flush=True)


def main() -> int:
    logging.disable(logging.WARNING)
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    trace.set_tracer_provider(provider)
    loopguard.instrument()
    print(f"kilobyte object: {len(json.dumps(kilobyte_object(1)))} characters")
    with Figures("bench") as figures:
        tool_call(figures, trace.get_tracer("bench"))
        flatness(figures)
        memory(figures)
        start_up(figures)
    return 0 if figures.all_hold else 1


if __name__ == "__main__":
    sys.exit(main())
