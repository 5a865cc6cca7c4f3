"""`otel-loopguard tree`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from otel_loopguard.cli.tree import show
from otel_loopguard.dialects.otlp import BadLineError, spans

if TYPE_CHECKING:
    import argparse

    from otel_loopguard.dialects.view import SpanView


def run(options: argparse.Namespace) -> int:
    """Show the traces of a file; see `otel_loopguard.cli.main` for what is returned."""
    try:
        found = _read(options.file)
    except (OSError, UnicodeDecodeError, BadLineError) as fault:
        print(f"otel-loopguard: {options.file}: {fault}", file=sys.stderr)
        return 2
    return 1 if show(found, options.width, options.svg) else 0


def _read(name: str) -> list[SpanView]:
    if name == "-":
        return list(spans(sys.stdin))
    with Path(name).open(encoding="utf-8") as lines:
        return list(spans(lines))
