"""What breaking loops brings: oscillations that end by themselves, and a load with and without it.

    python tests/bench/breaking.py [RUNS]

The figures go to build/breaking.json; the exit code is 1 if one is beyond its limit.
"""

from __future__ import annotations

import logging
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from opentelemetry.sdk.trace import TracerProvider
from rich.console import Console
from rich.table import Table

import otel_loopguard as loopguard
from tests.bench.bench import show
from tests.bench.mixed import STUCK_SHARE, loaded
from tests.bench.oscillating import Outcome, played, variants
from tests.figures import Figures

VARIANTS = 200
RUNS = 600
LATENCY_S = 0.02


def oscillations(figures: Figures) -> None:
    """Agents that go round, each in its own way."""
    outcomes: list[Outcome] = []
    for action in ("nudge", "break"):
        loopguard.instrument(tracer_provider=TracerProvider(), action=action)
        outcomes += [played(each) for each in variants(VARIANTS) if each.action == action]
        loopguard.uninstrument()
    ends = Counter(each.end for each in outcomes)
    table = Table("oscillations", "ended", "of", box=None)
    for field in ("kind", "period", "drift", "noise", "obeys"):
        groups = Counter(getattr(each.variant, field) for each in outcomes)
        ended = Counter(getattr(each.variant, field) for each in outcomes if each.ended)
        for value in sorted(groups, key=str):
            table.add_row(f"{field} {value}", str(ended[value]), str(groups[value]))
    Console().print(table)
    share = 100 * ends["limit"] / len(outcomes)
    show(figures, f"of {VARIANTS} oscillations, not ended without a human", share, "%", 10.0)


def load(figures: Figures, number: int) -> None:
    """The same runs without the guard and with it."""
    alone = loaded(number, latency_s=LATENCY_S)
    loopguard.instrument(tracer_provider=TracerProvider(), action="break")
    guarded = loaded(number, latency_s=LATENCY_S)
    loopguard.uninstrument()
    table = Table(f"{number} runs, {STUCK_SHARE:.0%} stuck", "without", "with", box=None)
    for name, of in (
        ("stuck to the step limit", lambda it: f"{it.to_the_limit:.2%}"),
        ("model calls", lambda it: f"{it.calls:,}"),
        ("tokens", lambda it: f"{it.tokens:,}"),
        ("p99 of a run", lambda it: f"{it.p99_s:.2f} s"),
    ):
        table.add_row(name, of(alone), of(guarded))
    Console().print(table)
    changed = sum(guarded.healthy()[name] != run for name, run in alone.healthy().items())
    show(figures, "runs that are stuck to the limit, without", 100 * alone.to_the_limit, "%", None)
    show(figures, "runs that are stuck to the limit, with", 100 * guarded.to_the_limit, "%", 0.3)
    show(figures, "healthy runs that differ by a byte", changed, "runs", 0)
    _over(figures, "model calls", guarded.calls / alone.calls)
    _over(figures, "tokens", guarded.tokens / alone.tokens)
    _over(figures, "p99 wall time", guarded.p99_s / alone.p99_s)


def _over(figures: Figures, name: str, ratio: float) -> None:
    show(figures, f"{name} with the guard over without", ratio, "x", 1.0)


def main() -> int:
    logging.disable(logging.WARNING)
    with Figures("breaking") as figures:
        oscillations(figures)
        load(figures, int(sys.argv[1]) if len(sys.argv) > 1 else RUNS)
    return 0 if figures.all_hold else 1


if __name__ == "__main__":
    sys.exit(main())
