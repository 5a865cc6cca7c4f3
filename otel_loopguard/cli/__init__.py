"""The command line: `otel-loopguard scan FILE` finds the loops in recorded runs."""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from otel_loopguard.cli import doctor
from otel_loopguard.cli.finding import CannotRunError

if TYPE_CHECKING:
    from collections.abc import Sequence

_FORMS: Final = ("steps", "otlp", "jaeger", "sdk")
_FILES: Final = "step files, OTLP JSON, Jaeger JSON, plain or gzip; - for stdin"


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Returns:
        0 if no deadlock is found, 1 if there is one, 2 if some of the input cannot be read or the
        extra `cli` is not installed.
    """
    options = _parser().parse_args(argv)
    if options.command == "doctor":
        try:
            return doctor.diagnose(options)
        except CannotRunError as reason:
            return _refuse(str(reason))
    try:
        command: Any = import_module(f"otel_loopguard.cli.{options.command}_command")
    except ModuleNotFoundError as missing:
        return _refuse(f'{missing.name} is missing: pip install "otel-loopguard[cli]"')
    try:
        return command.run(options)
    except BrokenPipeError:  # who reads the output has seen enough; nothing is left to flush
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="otel-loopguard", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    scan = commands.add_parser("scan", help="find the loops in recorded runs")
    scan.add_argument("files", nargs="+", metavar="FILE", help=_FILES)
    _reading(scan)
    scan.add_argument("--json", action="store_true", help="print one JSON object a case or run")
    scan.add_argument("--exit-zero", action="store_true", help="findings are no failure")
    scan.add_argument(
        "--jobs", type=_positive, default=1, metavar="N", help="processes that share the work"
    )
    scan.add_argument("--width", type=_positive, help="columns; those of the terminal by default")
    explain = commands.add_parser("explain", help="say step by step why the guard spoke, or not")
    explain.add_argument("files", nargs="+", metavar="FILE", help=_FILES)
    _reading(explain)
    explain.add_argument("--run", required=True, metavar="ID", help="which case or run")
    explain.add_argument("--width", type=_positive, help="columns")
    tree = commands.add_parser("tree", help="show a trace as a tree, with its loops marked")
    tree.add_argument("file", help="OTLP JSON lines, as a file exporter writes them; - for stdin")
    tree.add_argument("--width", type=_positive, help="columns; those of the terminal by default")
    tree.add_argument("--svg", metavar="FILE", help="also draw the tree into this file")
    doctor.add_parser(commands)
    return parser


def _reading(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--format", choices=_FORMS, help="what the files hold; by content if not said"
    )
    command.add_argument("--strict", action="store_true", help="stop at what cannot be read")


def _refuse(reason: str) -> int:
    print(f"otel-loopguard: {reason}", file=sys.stderr)
    return 2


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("it has to be at least 1")
    return number
