"""Figures that a test or a benchmark measured, as build/NAME.json: a list for scripts to read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

BUILD = Path(__file__).resolve().parents[1] / "build"


class Figures:
    """Collects figures and writes them when the block is left.

    Each is {name, value, unit, limit, holds}; `limit` is None for a figure that is only told.
    """

    def __init__(self, name: str) -> None:
        self._file = BUILD / f"{name}.json"
        self._rows: list[dict[str, Any]] = []

    def __enter__(self) -> Figures:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.parent.mkdir(exist_ok=True)
        self._file.write_text(json.dumps(self._rows, indent=1) + "\n", encoding="utf-8")

    def add(self, name: str, value: float, unit: str, limit: float | None = None) -> bool:
        """Keep a figure; says whether it is within its limit."""
        holds = limit is None or value <= limit
        self._rows.append(
            {"name": name, "value": value, "unit": unit, "limit": limit, "holds": holds}
        )
        return holds

    @property
    def all_hold(self) -> bool:
        """Whether every figure is within its limit."""
        return all(row["holds"] for row in self._rows)
