"""A trace as a tree in the terminal, each deadlock where it happened."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from otel_loopguard.core.model import SpanView

EVENT: Final = "loopguard.deadlock"
_COLOURS: Final = {"critical": "bold red", "warning": "yellow"}
_STATUSES: Final = {"deadlocked": "red", "stagnant": "yellow", "repeating": "yellow"}


def show(found: Sequence[SpanView], width: int | None = None) -> int:
    """Print each trace as a tree; returns how many deadlock events there are."""
    console = Console(width=width, highlight=False)
    by_trace: defaultdict[str, list[SpanView]] = defaultdict(list)
    for span in found:
        by_trace[span.trace_id].append(span)
    for trace_id, spans in by_trace.items():
        console.print(_trace(trace_id, spans))
    deadlocks = sum(name == EVENT for span in found for name, _ in span.events)
    console.print(f"{len(by_trace)} traces, {len(found)} spans, {deadlocks} deadlock events")
    return deadlocks


def _trace(trace_id: str, spans: Sequence[SpanView]) -> Tree:
    children: defaultdict[str | None, list[SpanView]] = defaultdict(list)
    known = {span.span_id for span in spans}
    for span in sorted(spans, key=lambda each: each.start_ns):
        children[span.parent_id if span.parent_id in known else None].append(span)
    tree = Tree(Text(f"trace {trace_id}", style="dim"))
    waiting = [(tree, span) for span in reversed(children[None])]
    while waiting:
        above, span = waiting.pop()
        branch = above.add(_line(span))
        for name, attributes in span.events:
            if name == EVENT:
                branch.add(_event(attributes))
        waiting += [(branch, child) for child in reversed(children[span.span_id])]
    return tree


def _line(span: SpanView) -> Text:
    line = Text(span.name, style="red" if span.is_error else "")
    line.append(f"  {(span.end_ns - span.start_ns) / 1e6:.1f} ms", style="dim")
    repeats, status = (
        span.attributes.get(f"loopguard.{key}") for key in ("repeat_count", "status")
    )
    if isinstance(repeats, int) and repeats > 1:
        line.append(f"  x{repeats}")
    if isinstance(status, str) and status in _STATUSES:
        line.append(f"  {status}", style=_STATUSES[status])
    return line


def _event(attributes: Mapping[str, object]) -> Text:
    said = {key.removeprefix("loopguard."): value for key, value in attributes.items()}
    style = _COLOURS.get(str(said.get("severity")), "yellow")
    line = Text(f"DEADLOCK {said.get('pattern')} ({said.get('severity')}): ", style=style)
    line.append(f"{said.get('evidence')}", style="default")
    line.append(
        f"\nwasted {said.get('wasted_calls')} calls, {said.get('wasted_tokens')} tokens, "
        f"{said.get('wasted_seconds', 0):.1f} s; try {said.get('suggested_action')}",
        style="dim",
    )
    return line
