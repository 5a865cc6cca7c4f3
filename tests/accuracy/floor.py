"""The floor: how good the verdicts have to be, suite by suite. A change may not go below it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tests.accuracy.report import CRITICAL, WARNING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.accuracy.report import Report
    from tests.figures import Figures

FILE = Path(__file__).with_name("floor.json")

Floor = dict[str, dict[str, int]]
"""For each suite how much may go wrong at most, by what it is."""


def read() -> Floor:
    """The committed floor."""
    return json.loads(FILE.read_text("utf-8"))


def write(floor: Floor) -> None:
    """Commit to a floor."""
    FILE.write_text(json.dumps(floor, indent=2, sort_keys=True) + "\n", "utf-8")


def measured(report: Report) -> Floor:
    """How much went wrong."""
    found: Floor = {}
    for suite in report.judged:
        ours, critical = report.tally(suite, WARNING), report.tally(suite, CRITICAL)
        found[suite] = {
            "loops not caught in time": ours.loops - ours.caught,
            "false alarms": ours.alarms,
            "false alarms at critical": critical.alarms,
            "alarms on unlabelled cases": ours.unlabelled_alarms,
        }
    return found


def compare(report: Report, floor: Floor, figures: Figures) -> Iterator[str]:
    """Keep what was measured beside the floor; yields what is below it."""
    for suite, counts in measured(report).items():
        limits = floor.get(suite, {})
        for what, count in counts.items():
            limit = limits.get(what)
            if not figures.add(f"{suite}: {what}", count, "cases", limit):
                yield f"{suite}: {count} {what}, at most {limit} allowed"
        figures.add(f"{suite}: precision", report.tally(suite).precision, "share")
        figures.add(f"{suite}: recall", report.tally(suite).recall, "share")
