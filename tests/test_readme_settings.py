"""The README's table of settings is the one that the code makes."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

BEGIN = "<!-- settings:begin -->\n"
END = "<!-- settings:end -->\n"


def test_the_readme_holds_the_table_of_settings(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_module("otel_loopguard.settings", run_name="__main__")
    table = capsys.readouterr().out
    readme = Path(__file__).parents[1].joinpath("README.md").read_text("utf-8")
    assert readme.count(BEGIN) == readme.count(END) == 1, "no place for the table in README.md"
    shown = readme.partition(BEGIN)[2].partition(END)[0]
    assert shown.strip() == table.strip(), "paste what `python -m otel_loopguard.settings` prints"
