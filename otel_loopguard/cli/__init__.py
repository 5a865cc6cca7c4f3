"""The command line: `otel-loopguard tree FILE` shows a recorded trace with its loops marked."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from otel_loopguard.cli import doctor
from otel_loopguard.cli.finding import CannotRunError
from otel_loopguard.cli.scan import scan
from otel_loopguard.dialects.otlp import BadLineError, spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from otel_loopguard.dialects.view import SpanView


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Returns:
        0 if no deadlock is on the traces, 1 if there is one, 2 if the input cannot be read or the
        extra `cli` is not installed.
    """
    options = _parser().parse_args(argv)
    if options.command == "doctor":
        try:
            return doctor.diagnose(options)
        except CannotRunError as reason:
            return _refuse(str(reason))
    if options.command == "scan":
        with Path(options.file).open(encoding="utf-8") as lines:
            found_any = False
            for case in scan(lines):
                found_any = found_any or bool(case["findings"])
                print(json.dumps(case))
        return int(found_any)
    try:
        from otel_loopguard.cli.tree import show  # noqa: PLC0415 - needs the extra
    except ModuleNotFoundError as missing:
        return _refuse(f'{missing.name} is missing: pip install "otel-loopguard[cli]"')
    try:
        found = _read(options.file)
    except (OSError, UnicodeDecodeError, BadLineError) as fault:
        return _refuse(f"{options.file}: {fault}")
    return 1 if show(found, options.width, options.svg) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="otel-loopguard", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    tree = commands.add_parser("tree", help="show a trace as a tree, with its loops marked")
    tree.add_argument("file", help="OTLP JSON lines, as a file exporter writes them; - for stdin")
    tree.add_argument("--width", type=int, help="columns; those of the terminal by default")
    tree.add_argument("--svg", metavar="FILE", help="also draw the tree into this file")
    steps = commands.add_parser("scan", help="look for loops in a file of recorded steps")
    steps.add_argument("file")
    steps.add_argument("--format", choices=["steps"], default="steps")
    steps.add_argument("--json", action="store_true")
    doctor.add_parser(commands)
    return parser


def _read(name: str) -> list[SpanView]:
    if name == "-":
        return list(spans(sys.stdin))
    with Path(name).open(encoding="utf-8") as lines:
        return list(spans(lines))


def _refuse(reason: str) -> int:
    print(f"otel-loopguard: {reason}", file=sys.stderr)
    return 2
