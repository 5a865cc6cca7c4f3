"""What a scan prints: a table of findings, or one JSON object a case or run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

if TYPE_CHECKING:
    from otel_loopguard.cli.scan import Report

PAGE: Final = 500
"""Rows that are kept before they are printed."""
COLOURS: Final = {"critical": "bold red", "warning": "yellow"}


class JsonLines:
    """One object a line."""

    def show(self, report: Report) -> None:
        """Print a report."""
        print(json.dumps(report.as_json()), flush=True)

    def close(self) -> None:
        """There is no more."""


class Table:
    """One row a finding, then how many there were.

    Args:
        width: columns; those of the terminal if None.
    """

    def __init__(self, width: int | None = None) -> None:
        self._console = Console(width=width, highlight=False)
        self._rows: list[tuple[Text, ...]] = []
        self._reports = self._found = 0
        self._not_judged: dict[str, int] = {}

    def show(self, report: Report) -> None:
        """Take a report, and print a page of them now and then."""
        self._reports += 1
        self._found += bool(report.findings)
        for pattern in report.not_judged:
            self._not_judged[pattern] = self._not_judged.get(pattern, 0) + 1
        self._rows += [_row(report, finding) for finding in report.findings]
        if len(self._rows) >= PAGE:
            self._print()

    def close(self) -> None:
        """Print what is left, and the sums."""
        self._print()
        self._console.print(f"runs: {self._reports}, with findings: {self._found}")
        for pattern, runs in sorted(self._not_judged.items()):
            self._console.print(
                f"{pattern} not judged in {runs} runs: its content was not captured"
            )

    def _print(self) -> None:
        if not self._rows:
            return
        grid = Grid("run", "step", "severity", "pattern", "what happened", "wasted", box=None)
        for row in self._rows:
            grid.add_row(*row)
        self._rows.clear()
        self._console.print(grid)


def _row(report: Report, finding: dict[str, object]) -> tuple[Text, ...]:
    severity = str(finding["severity"])
    first = finding["first_step"]
    evidence = str(finding["evidence"]) + (f" (since step {first})" if first else "")
    cells = [str(report.id), str(finding["step"]), severity, str(finding["pattern"]), evidence]
    wasted = f"{finding['wasted_calls']} calls, {finding['wasted_tokens']} tokens"
    style = COLOURS.get(severity, "")
    return tuple(Text(cell, style if cell == severity else "") for cell in [*cells, wasted])
