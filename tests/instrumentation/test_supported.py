"""Which versions of a framework can be hooked: the code and the README say the same."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from otel_loopguard.instrumentation import FRAMEWORKS, LoopGuardInstrumentor

README = (Path(__file__).parent.parent.parent / "README.md").read_text()


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_the_readme_says_the_same(name: str) -> None:
    supported = import_module(f"otel_loopguard.instrumentation.{name}").SUPPORTED
    package, least, below = re.fullmatch(r"(\S+) >= ([\d.]+), < (\d+)", supported).groups()
    (row,) = re.findall(rf"^\| {package}\b[^|]*\| ([^|]*?) \|", README, re.MULTILINE)
    said_least, said_most = re.match(r"([\d.]+) to (\d+)\.x", row).groups()
    assert least.startswith(said_least)
    assert int(said_most) == int(below) - 1


def test_hooks_are_counted() -> None:
    pytest.importorskip("openai")
    ours = LoopGuardInstrumentor()
    ours.instrument()
    try:
        assert ours.hooked("openai") >= 2
    finally:
        ours.uninstrument()
    assert ours.hooked("openai") == 0
