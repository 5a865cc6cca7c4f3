"""The labelled cases, and what the product says of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from otel_loopguard.settings import Settings

CASES = Path(__file__).resolve().parents[1] / "cases"
Case = dict[str, Any]
Hits = list[int]
"""The steps at which something spoke, ascending."""


@dataclass(frozen=True)
class Suite:
    """A file of labelled cases."""

    name: str
    lines: tuple[str, ...]

    @cached_property
    def cases(self) -> list[Case]:
        """The cases with their labels."""
        return [json.loads(line) for line in self.lines]

    def findings(self, settings: Settings | None = None) -> list[list[dict[str, Any]]]:
        """What `otel-loopguard scan` finds in each case; by default with the default settings."""
        # Looked up each time: the package may have been loaded anew.
        scan = import_module("otel_loopguard.cli.scan").scan
        return [found["findings"] for found in scan(self.lines, settings or defaults())]


def defaults() -> Settings:
    """Settings that the environment has no say in."""
    return import_module("otel_loopguard.settings").from_env({})


def hits_of(findings: Iterable[dict[str, Any]], severities: Iterable[str]) -> Hits:
    """When findings spoke that were as bad as that."""
    return sorted(each["step"] for each in findings if each["severity"] in severities)


def load(files: Iterable[Path]) -> list[Suite]:
    """Files of labelled cases, one suite each; empty ones are left out."""
    found = [Suite(file.stem, tuple(file.read_text("utf-8").splitlines())) for file in files]
    return [suite for suite in found if suite.lines]


def committed() -> list[Suite]:
    """The suites that every checkout has."""
    return load(sorted(CASES.glob("*.jsonl")))
