"""`otel-loopguard explain`: step by step, why the guard spoke, or kept silent."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.text import Text

from otel_loopguard.cli.output import COLOURS
from otel_loopguard.cli.scan import Report, Scan
from otel_loopguard.cli.sources import Broken, Source
from otel_loopguard.cli.watching import Watched
from otel_loopguard.core.model import Kind
from otel_loopguard.settings import from_env

if TYPE_CHECKING:
    import argparse

    from otel_loopguard.cli.watching import Graded, Note
    from otel_loopguard.core.detectors.base import Detector
    from otel_loopguard.core.model import Observation

SHOWN: Final = 5
_CALLS: Final = (Kind.TOOL, Kind.AGENT)


def run(options: argparse.Namespace) -> int:
    """Explain one run; see `otel_loopguard.cli.main` for what is returned."""
    explaining = Explaining(options.run, Console(width=options.width, highlight=False))
    scan = Scan(from_env(), listen=explaining.hear, wrap=explaining.watch)
    others: list[str] = []
    found = broken = 0
    for item in scan.read(Source(name, options.format) for name in options.files):
        if isinstance(item, Report):
            if str(item.id) == options.run:
                found += 1
                explaining.sum_up(item)
            elif len(others) < SHOWN:
                others.append(str(item.id))
        elif isinstance(item, Broken):
            broken += 1
            print(f"otel-loopguard: {item}", file=sys.stderr)
            if options.strict:
                break
    if not found:
        known = f"; there are {', '.join(others)}" if others else ""
        print(f"otel-loopguard: no case or run {options.run}{known}", file=sys.stderr)
    return 2 if broken or not found else 0


class Explaining:
    """Prints each step of one case or run with what the detectors made of it.

    Args:
        name: the case or run.
        console: where to.
    """

    def __init__(self, name: str, console: Console) -> None:
        self._name = name
        self._console = console
        self._notes: list[Note] = []

    def watch(self, detector: Detector) -> Detector:
        """Look at a detector from now on."""
        return Watched(detector, self._notes)

    def hear(self, name: object, number: int, seen: Observation) -> None:
        """Print a step, if it belongs to the run."""
        notes = tuple(self._notes)
        self._notes.clear()
        if str(name) != self._name:
            return
        self._console.print(_headline(number, seen))
        lines = [line for note in notes if (line := _line(note, seen)) is not None]
        for line in lines:
            self._console.print(line)
        if not lines:
            self._console.print(Text(f"    silent: {_silence(seen, notes)}", "dim"))

    def sum_up(self, report: Report) -> None:
        """Print what the whole run came to."""
        self._console.print(f"{report.id}: {report.steps} steps, {len(report.findings)} findings")
        if report.not_judged:
            patterns = ", ".join(report.not_judged)
            self._console.print(f"not judged, since what they need was not captured: {patterns}")


def _headline(number: int, seen: Observation) -> Text:
    """What the step was, in digests and counts."""
    step = seen.step
    line = Text(f"step {number}  {step.kind.value} {step.action}  {step.outcome.value}", "bold")
    facts = [f"iteration {seen.iteration}"]
    if step.kind in _CALLS:
        facts.append(f"arguments {step.args_key or 'not captured'}")
        facts.append(f"result {step.result_key or 'not captured'}")
        facts.append(f"{seen.repeat_count} times with this result")
        facts.append(f"{seen.consecutive_same_tool} in a row")
    facts.append(seen.status.value)
    if not seen.counted:
        facts.append("no step of its own: shown before, or another attempt")
    return line.append("  " + ", ".join(facts), "not bold")


def _line(note: Note, seen: Observation) -> Text | None:
    """What a detector made of the step; None if it had nothing to weigh."""
    if note.finding is None:
        near = max(note.graded, key=_nearness, default=None)
        return None if near is None else Text(f"    {note.detector}: {_weighed(near)}; silent")
    finding = note.finding
    severity = finding.severity.label
    spoken = any(each.finding is finding for each in seen.utterances)
    said = "speaks" if spoken else "holds, was said already or is muted"
    weighed = "".join(f" ({_weighed(each)})" for each in note.graded if each.severity is not None)
    return Text(
        f"    {note.detector}: {severity}, {said}{weighed}: {finding.evidence}",
        COLOURS.get(severity, "") if spoken else "",
    )


def _weighed(graded: Graded) -> str:
    warning, critical = graded.limits
    return f"weighs {graded.weight:g}, warning from {warning:g}, critical from {critical:g}"


def _nearness(graded: Graded) -> float:
    return graded.weight / max(graded.limits[0], 1)


def _silence(seen: Observation, notes: tuple[Note, ...]) -> str:
    if not seen.counted:
        return "it is no step of its own"
    return "nothing that they look for" if notes else "nothing repeats"
