"""How good the verdicts are, on labelled cases: `make accuracy`.

    python -m tests.accuracy [--traces DIR] [--sensitivity] [--raise-floor] [-v] [FILE ...]

Without files: the committed cases, and the recorded runs of `--traces` if there are any. Figures
go to build/accuracy.json; the exit code is 1 if a suite is worse than the committed floor.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.accuracy import floor, sensitivity
from tests.accuracy.report import Report
from tests.accuracy.suites import committed, load
from tests.figures import Figures

if TYPE_CHECKING:
    from collections.abc import Sequence

TRACES = Path(__file__).resolve().parents[3] / "shared" / "traces"


def main(argv: Sequence[str] | None = None) -> int:
    """Print what was caught and what was not; 0 if that is as good as it has to be."""
    options = _options(argv)
    suites = load(options.files) if options.files else committed()
    if not options.files and options.traces.is_dir():
        suites += load(sorted(options.traces.glob("*.jsonl")))
    if options.sensitivity:
        return sensitivity.main(suites)
    report = Report(suites)
    report.show(verbose=options.verbose)
    if options.files:
        return 0
    if options.raise_floor:
        floor.write({**floor.read(), **floor.measured(report)})
    with Figures("accuracy") as figures:
        below = list(floor.compare(report, floor.read(), figures))
    for each in below:
        print(f"BELOW THE FLOOR: {each}")
    return 1 if below else 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.accuracy", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="files of labelled cases")
    parser.add_argument("--traces", type=Path, default=TRACES, help="a folder of recorded runs")
    parser.add_argument("--sensitivity", action="store_true", help="move every threshold")
    parser.add_argument("--raise-floor", action="store_true", help="ask for this much from now on")
    parser.add_argument("-v", "--verbose", action="store_true", help="name what went wrong")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
