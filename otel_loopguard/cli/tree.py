"""A trace as a tree in the terminal, each deadlock where it happened."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from otel_loopguard.dialects.view import SpanView

EVENT: Final = "loopguard.deadlock"
_COLOURS: Final = {"critical": "bold red", "warning": "yellow"}
_STATUSES: Final = {"deadlocked": "red", "stagnant": "yellow", "repeating": "yellow"}


_DRAWING: Final = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font: {char_height}px/{line_height}px monospace; }}
.{unique_id}-title {{ font: bold 18px sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""
"""How an SVG of the tree is laid out: as rich lays it out, without fonts from elsewhere."""


def trees(found: Sequence[SpanView]) -> list[Tree]:
    """Each trace as a tree, in the order of their first spans.

    Args:
        found: the spans, of any number of traces.
    """
    by_trace: defaultdict[str, list[SpanView]] = defaultdict(list)
    for span in found:
        by_trace[span.trace_id].append(span)
    return [_trace(trace_id, spans) for trace_id, spans in by_trace.items()]


def show(found: Sequence[SpanView], width: int | None = None, svg: str | None = None) -> int:
    """Print each trace as a tree; returns how many deadlock events there are.

    Args:
        found: the spans, of any number of traces.
        width: columns; those of the terminal if None.
        svg: a file that the same is drawn into.
    """
    console = Console(width=width, highlight=False, record=svg is not None)
    drawn = trees(found)
    for tree in drawn:
        console.print(tree)
    deadlocks = sum(name == EVENT for span in found for name, _ in span.events)
    console.print(f"traces: {len(drawn)}, spans: {len(found)}, deadlock events: {deadlocks}")
    if svg is not None:
        console.save_svg(svg, title="otel-loopguard tree", code_format=_DRAWING)
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
    intervention = span.attributes.get("loopguard.intervention")
    if isinstance(intervention, str):
        line.append(f"  NOT MADE: {intervention}", style="bold cyan")
    elif span.attributes.get("loopguard.would_intervene") is True:
        line.append("  would not be made", style="cyan")
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
