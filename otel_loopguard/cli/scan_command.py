"""`otel-loopguard scan`: reads, shows, and says with its exit code what was found."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from otel_loopguard.cli.output import JsonLines, Table
from otel_loopguard.cli.progress import Progress
from otel_loopguard.cli.scan import Report, Scan, Totals
from otel_loopguard.cli.shares import in_shares
from otel_loopguard.cli.sources import STDIN, Broken, Source
from otel_loopguard.settings import from_env

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from otel_loopguard.cli.scan import Item


def run(options: argparse.Namespace) -> int:
    """Scan the files; see `otel_loopguard.cli.main` for what is returned."""
    found = broken = 0
    with Progress(options.files) as progress:
        output = JsonLines() if options.json else Table(options.width)
        for item in _items(options, progress):
            if isinstance(item, Report):
                found += bool(item.findings)
                with progress.aside():
                    output.show(item)
            elif isinstance(item, Broken):
                broken += 1
                progress.say(f"otel-loopguard: {item}")
                if options.strict:
                    break
            elif (note := _unread(item)) is not None:
                progress.say(f"otel-loopguard: {note}")
        with progress.aside():
            output.close()
    if broken > 1:
        print(f"otel-loopguard: {broken} places could not be read", file=sys.stderr)
    return 2 if broken else int(found > 0 and not options.exit_zero)


def _items(options: argparse.Namespace, progress: Progress) -> Iterator[Item]:
    settings = from_env()
    if options.jobs > 1 and STDIN not in options.files:
        return in_shares(options.files, options.format, options.jobs, settings, progress.advance)
    sources = [Source(name, options.format, tick=progress.advance) for name in options.files]
    return Scan(settings).read(sources)


def _unread(totals: Totals) -> str | None:
    """What to say where there were spans, and none of them told of anything."""
    if totals.told or not totals.scopes:
        return None
    scopes = ", ".join(sorted(filter(None, totals.scopes))[:5]) or "not named"
    spans = sum(totals.scopes.values())
    return f"{spans} spans, and no step of an agent in a convention known here (scopes: {scopes})"
