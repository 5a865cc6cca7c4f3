"""What the guard costs, as ratios against the SDK's own span in the same process.

    python tests/bench/bench.py

Times are medians of calls that alternate, so that a machine whose speed drifts does not decide.
The figures go to build/bench.json; the exit code is 1 if one is beyond its limit.
"""

from __future__ import annotations

import gc
import logging
import os
import random
import resource
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections import Counter, deque
from collections.abc import Callable
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from typing import TYPE_CHECKING

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

import otel_loopguard as loopguard
from otel_loopguard.core.model import Kind, Sighting, Source, Step
from otel_loopguard.core.records import Moment
from otel_loopguard.core.said import said_by
from otel_loopguard.core.turns import Turns
from otel_loopguard.runtime import Runtime
from otel_loopguard.settings import from_env
from tests.bench.scan import scanning
from tests.figures import Figures

if TYPE_CHECKING:
    from opentelemetry import trace

TURNS = 20_000
BATCH = 500
BATCHES = 41
FOUR = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "search",
    "gen_ai.tool.call.id": "call_1",
    "gen_ai.agent.name": "bench",
}
Call = Callable[[int], object]
NO_MOMENT = Moment(None, 0, 0, 0, 0)
MODEL_STEP = Step(Kind.MODEL, "model", Source.HOOK, None, None)


class Nowhere(SpanExporter):
    """Takes spans and drops them."""

    def export(self, spans: object) -> SpanExportResult:
        return SpanExportResult.SUCCESS


def kilobyte_text(n: int) -> str:
    """A different text of 1 kB each time."""
    return f"{n:08d} " + "the result of a tool, word by word, " * 28


def kilobyte_object(n: int) -> dict[str, object]:
    """A different JSON object of 1 kB each time: what a search gives back."""
    found = [
        {
            "id": n + i,
            "title": f"Result {i} of a search, with a title of some length",
            "url": f"https://example.com/articles/{n + i}",
            "score": 0.5 + i / 100,
        }
        for i in range(7)
    ]
    return {"query": "a search", "page": n, "results": found, "more": True}


def dense_object(n: int) -> dict[str, object]:
    """A different JSON object of 1 kB each time that has a hundred values."""
    rows = [
        {"id": n + i, "name": f"item {i}", "price": i + 0.5, "tags": ["a", "b"]} for i in range(16)
    ]
    return {"page": n, "rows": rows, "next": None, "more": True}


def side_by_side(*calls: Call, turns: int = TURNS) -> list[list[int]]:
    """Nanoseconds of each call, one after the other in turn: all meet the same caches."""
    spent: list[list[int]] = [[] for _ in calls]
    for n in range(turns):
        for call, times in zip(calls, spent, strict=True):
            started = time.perf_counter_ns()
            call(n)
            times.append(time.perf_counter_ns() - started)
    return [times[turns // 5 :] for times in spent]


def both(results: list[object], tracer: trace.Tracer) -> tuple[Call, Call]:
    """A tool that only gives back its result, without any span and with one of the SDK."""

    def bare(n: int) -> object:
        return results[n]

    def spanned(n: int) -> object:
        with tracer.start_as_current_span("execute_tool search", attributes=FOUR):
            return results[n]

    return bare, spanned


def tool_call(figures: Figures, watched: TracerProvider, action: str) -> None:
    """Our part of a tool call over one span of the SDK: (ours - span) / (span - nothing).

    The SDK's span is what a traced tool costs without us; it has four attributes and a processor of
    its own. All else that a call costs with us is our part, the attributes of our span included.
    With the action `break` each call is decided about before it is made; all of them are healthy.
    """
    unwatched = TracerProvider()
    unwatched.add_span_processor(BatchSpanProcessor(Nowhere()))
    tracer = unwatched.get_tracer("bench")
    loopguard.instrument(tracer_provider=watched, action=action)
    mode = "" if action == "observe" else f" with action {action}"
    for name, make, limit in (
        ("1 kB string", kilobyte_text, 1.0),
        ("1 kB JSON object", kilobyte_object, 2.0),
        ("1 kB JSON object of 100 values", dense_object, None),
    ):
        bare, spanned = both([make(n) for n in range(TURNS)], tracer)
        guarded = loopguard.tool(name="search")(bare)
        with loopguard.run("bench"):
            plain, span, ours = map(statistics.median, side_by_side(bare, spanned, guarded))
        print(
            f"  {name}: the SDK's span {(span - plain) / 1e3:.1f} us, with us {ours / 1e3:.1f} us"
        )
        figure = f"our part of a tool call{mode}, {name}"
        show(figures, figure, (ours - span) / (span - plain), "x", limit)
    loopguard.uninstrument()


def timed(call: Call, numbers: count[int]) -> float:
    """Seconds for one call, over one batch."""
    todo = [next(numbers) for _ in range(BATCH)]
    started = time.perf_counter()
    for n in todo:
        call(n)
    return (time.perf_counter() - started) / BATCH


def step(n: int) -> Sighting:
    """A healthy step: arguments and result differ each time."""
    return Sighting(
        Kind.TOOL, "search", args={"page": n}, result=f"row {n}", start_ns=2 * n, end_ns=2 * n + 1
    )


def prose(size: int, seed: int) -> str:
    """A text of `size` characters, in words that vary."""
    chance = random.Random(seed)
    words = ["".join(chance.choices("etaoinshr", k=chance.randint(2, 9))) for _ in range(800)]
    return " ".join(chance.choices(words, k=size // 2))[:size]


def grams(text: str) -> Counter[str]:
    return Counter(text[i : i + 4] for i in range(len(text) - 3))


def jaccard(one: Counter[str], other: Counter[str]) -> float:
    return sum((one & other).values()) / sum((one | other).values())


def texts(figures: Figures) -> None:
    """What a model's text costs us, over its character 4-grams compared to the last three."""
    for name, size in (("1 kB", 1_000), ("10 kB", 10_000)):
        rows = [prose(size, seed) for seed in range(200)]
        last: deque[Counter[str]] = deque(maxlen=3)
        turns = Turns()

        def by_grams(n: int, rows: list[str] = rows, last: deque[Counter[str]] = last) -> None:
            new = grams(rows[n % len(rows)])
            for old in last:
                jaccard(new, old)
            last.append(new)

        def by_us(n: int, rows: list[str] = rows, turns: Turns = turns) -> None:
            seen = Sighting(Kind.MODEL, "model", result=rows[n % len(rows)])
            turns.take(MODEL_STEP, said_by(seen), NO_MOMENT)

        theirs, ours = side_by_side(by_grams, by_us, turns=200)
        ratio = statistics.median(ours) / statistics.median(theirs)
        figure = f"a text of {name} over its 4-grams against the last three"
        print(f"  {name}: ours {statistics.median(ours) / 1e3:.0f} us")
        show(figures, figure, ratio, "x", 0.1)


def flatness(figures: Figures) -> None:
    """A step of a long run over a step of a short one."""
    guard = Runtime(from_env({})).guard
    for n in range(100_000):
        guard.observe("long", step(n))
    runs = count()

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
        guard = Runtime(from_env({})).guard
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
    guard = Runtime(from_env({})).guard
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
    with Figures("bench") as figures:
        for action in ("observe", "break"):
            watched = TracerProvider()
            watched.add_span_processor(BatchSpanProcessor(Nowhere()))
            tool_call(figures, watched, action)
        texts(figures)
        flatness(figures)
        memory(figures)
        start_up(figures)
        scanning(figures, show)
    return 0 if figures.all_hold else 1


if __name__ == "__main__":
    sys.exit(main())
