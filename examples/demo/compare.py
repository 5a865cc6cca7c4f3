"""Two traces of one agent side by side, and what the second has saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from otel_loopguard.cli.tree import trees
from otel_loopguard.dialects.otlp import spans

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from otel_loopguard.dialects.view import SpanView

NARROW = 110
"""Columns below which the trees are printed one under the other."""


class Spent(NamedTuple):
    """What a run took, by its trace."""

    tool_calls: int
    model_calls: int
    tokens: int
    seconds: float

    def __str__(self) -> str:
        calls = f"{self.tool_calls} tool calls, {self.model_calls} model calls"
        return f"{calls}, {self.tokens:,} tokens, {self.seconds:.1f} s"


def spent(trace: Sequence[SpanView]) -> Spent:
    """Count what a trace shows; a tool call that was held back was not made."""
    tool_calls = model_calls = tokens = 0
    for said in (span.attributes for span in trace):
        kind = said.get("gen_ai.operation.name")
        tool_calls += kind == "execute_tool" and "loopguard.intervention" not in said
        if kind == "chat":
            model_calls += 1
            tokens += said.get("gen_ai.usage.input_tokens", 0)
            tokens += said.get("gen_ai.usage.output_tokens", 0)
    took_ns = max(span.end_ns for span in trace) - min(span.start_ns for span in trace)
    return Spent(tool_calls, model_calls, tokens, took_ns / 1e9)


def comparison(files: Mapping[str, Path]) -> None:
    """Print the traces of two files, each below its name, and what the second run has saved."""
    console = Console(highlight=False)
    shown = Table.grid(padding=(0, 3), expand=True)
    cells, sums = [], []
    for name, file in files.items():
        with file.open(encoding="utf-8") as lines:
            trace = list(spans(lines))
        sums.append(spent(trace))
        cells.append(Group(Text(f"{name}: {sums[-1]}", style="bold"), *trees(trace)))
    if console.width < NARROW:
        for cell in cells:
            shown.add_row(cell)
    else:
        for _ in cells:
            shown.add_column(ratio=1)
        shown.add_row(*cells)
    console.print(shown)
    before, after = sums
    saved = Spent(*(one - other for one, other in zip(before, after, strict=True)))
    console.print(Text(f"{' -> '.join(files)} saved {saved}", style="bold green"))
