"""What `otel-loopguard scan` costs beside reading the same JSON, and what it takes of memory.

    python tests/bench/scan.py

The archive is what an instrumentation of the GenAI conventions writes with content captured: agents
of twenty tool calls whose spans come interleaved, a fifth of them in a loop.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from typing import TYPE_CHECKING

from otel_loopguard.cli.scan import Scan
from otel_loopguard.cli.sources import ALL, Share, Source
from otel_loopguard.settings import from_env

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.figures import Figures

    Show = Callable[[Figures, str, float, str, float | None], None]

MEGABYTE = 1_000_000
CALLS = 20
ABREAST = 25
SECOND = 1_000_000_000
TEXT = "The page lists the opening hours of all branches, sorted by city. " * 6


def attributes(said: dict[str, object]) -> list[dict[str, object]]:
    """Attributes as OTLP writes them."""
    return [
        {"key": key, "value": {"intValue": str(v)} if isinstance(v, int) else {"stringValue": v}}
        for key, v in said.items()
    ]


def span(trace: int, number: int, name: str, start_ns: int, **said: object) -> dict[str, object]:
    """One span of a trace; number 0 is the agent's own, all others hang below it."""
    said = {"gen_ai." + key.replace("__", "."): value for key, value in said.items()}
    return {
        "traceId": f"{trace + 1:032x}",
        "spanId": f"{trace * 100 + number + 1:016x}",
        "parentSpanId": f"{trace * 100 + 1:016x}" if number else "",
        "flags": 256,
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(start_ns),
        "endTimeUnixNano": str(start_ns + SECOND),
        "attributes": attributes(said),
        "status": {},
    }


def agent(trace: int) -> Iterator[dict[str, object]]:
    """The spans of one agent in the order in which they end: model, tool, model ..., the agent."""
    loops = trace % 5 == 0
    begun = 1_700_000_000 * SECOND + trace * SECOND
    for n in range(CALLS):
        page = 1 if loops else n
        asked = {
            "type": "tool_call",
            "id": f"call_{n}",
            "name": "search",
            "arguments": {"page": page},
        }
        said = json.dumps([{"role": "assistant", "parts": [asked]}])
        yield span(
            trace, 2 * n + 1, "chat m-1", begun + 2 * n * SECOND, operation__name="chat",
            request__model="m-1", agent__name="finder", usage__input_tokens=900 + n,
            usage__output_tokens=20, output__messages=said,
            response__id=f"response-{trace}-{n}", conversation__id=f"conversation-{trace}",
        )  # fmt: skip
        yield span(
            trace, 2 * n + 2, "execute_tool search", begun + (2 * n + 1) * SECOND,
            operation__name="execute_tool", tool__name="search", tool__call__id=f"call_{n}",
            agent__name="finder",
            tool__call__arguments=json.dumps({"query": "hours", "page": page}),
            tool__call__result=f"{TEXT} page {page}",
        )  # fmt: skip
    yield span(
        trace, 0, "invoke_agent finder", begun, operation__name="invoke_agent",
        agent__name="finder", conversation__id=f"conversation-{trace}",
    ) | {"endTimeUnixNano": str(begun + 2 * CALLS * SECOND)}  # fmt: skip


def archive(path: Path, size: int) -> None:
    """Write at least so many bytes of spans, in batches of a hundred."""
    written = trace = 0
    with path.open("w", encoding="utf-8") as file:
        while written < size:
            abreast = [agent(trace + n) for n in range(ABREAST)]
            trace += ABREAST
            spans = [each for spans in zip(*abreast, strict=True) for each in spans]
            for start in range(0, len(spans), 100):
                scope = {"scope": {"name": "bench"}, "spans": spans[start : start + 100]}
                line = json.dumps(
                    {"resourceSpans": [{"scopeSpans": [scope]}]}, separators=(",", ":")
                )
                written += file.write(line + "\n")


def scanned(path: Path, share: Share = ALL) -> float:
    """Seconds of the processor that a scan takes, or a part of one."""
    began = time.process_time()
    for _ in Scan(from_env({}), share).read([Source(str(path), share=share)]):
        pass
    return time.process_time() - began


def loaded(path: Path) -> float:
    """Seconds of the processor that `json.loads` takes of the same lines."""
    lines = path.read_bytes().splitlines()
    began = time.process_time()
    for line in lines:
        json.loads(line)
    return time.process_time() - began


def command(path: Path) -> tuple[float, float]:
    """Seconds of the processor and the most MiB that `otel-loopguard scan --json` takes.

    On Linux a process's `ru_maxrss` begins with that of who started it: VmHWM does not.
    """
    program = (
        "import os, resource, sys; from otel_loopguard.cli import main; main(sys.argv[1:]);"
        "used = resource.getrusage(resource.RUSAGE_SELF); peak = used.ru_maxrss;"
        "status = '/proc/self/status';"
        "lines = open(status).read().splitlines() if os.path.exists(status) else [];"
        "peak = next((int(line.split()[1]) for line in lines if line.startswith('VmHWM')), peak);"
        "print(used.ru_utime, peak / 1024, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "scan", "--json", str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, memory = map(float, done.stderr.split()[-2:])
    return seconds, memory


def scanning(figures: Figures, show: Show, large: int = 100) -> None:
    """The figures of the scan.

    Args:
        figures: where they go.
        show: prints and keeps one.
        large: megabytes of the large archive; a tenth of that are the small one.
    """
    with tempfile.TemporaryDirectory() as folder:
        small, big = Path(folder, "small.jsonl"), Path(folder, "big.jsonl")
        archive(small, large * MEGABYTE // 10)
        archive(big, large * MEGABYTE)
        pairs = [(scanned(small), loaded(small)) for _ in range(3)]
        ratio = statistics.median(ours / theirs for ours, theirs in pairs)
        show(figures, "scan over json.loads", ratio, "x", 8.0)
        part = scanned(small, Share(0, 2)) / statistics.median(ours for ours, _ in pairs)
        show(figures, "one of two jobs over the whole scan", part, "x", 0.6)
        (short, little), (long, much) = command(small), command(big)
        growth = long / short / (big.stat().st_size / small.stat().st_size)
        show(figures, f"scan of {large} MB over a tenth of it, per byte", growth, "x", 1.2)
        show(figures, f"memory of a scan of {large} MB", much, "MiB", 250.0)
        show(
            figures,
            f"memory of a scan of {large} MB over a tenth of it",
            much - little,
            "MiB",
            None,
        )


def main() -> int:
    from tests.bench.bench import show  # noqa: PLC0415 - it imports this module
    from tests.figures import Figures  # noqa: PLC0415

    with Figures("scan") as figures:
        scanning(figures, show, int(sys.argv[1]) if len(sys.argv) > 1 else 100)
    return 0 if figures.all_hold else 1


if __name__ == "__main__":
    sys.exit(main())
