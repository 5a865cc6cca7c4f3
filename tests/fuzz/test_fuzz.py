"""Nothing that comes in can raise, leave a finding half said, or make memory grow without end.

`make fuzz` does the same with far more.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from otel_loopguard.cli import main
from tests.fuzz import junk, steps
from tests.fuzz.spans import Spans

if TYPE_CHECKING:
    from pathlib import Path

COUNT = int(os.environ.get("FUZZ", "4000"))
RUN_BYTES = 2_000_000
"""More than this no run may hold, whatever it sees."""
pytestmark = pytest.mark.timeout(0 if COUNT > 10_000 else 120)


@pytest.mark.parametrize("seed", [1, 2])
def test_steps_that_went_wrong(seed: int) -> None:
    tally = steps.run(COUNT // 2, seed)
    assert tally.broken
    assert tally.spoken > 10
    assert max(tally.weights) < RUN_BYTES


@pytest.mark.parametrize("seed", [1, 2])
def test_spans_that_went_wrong(seed: int) -> None:
    spans = Spans(seed)
    weights: list[int] = []
    for _ in range(4):
        spans.run(COUNT // 8)
        weights.append(spans.weight())
    spans.close()
    assert spans.exporter.spoken
    assert not spans.exporter.broken
    assert max(weights) < RUN_BYTES * 5


def test_a_heavier_object_weighs_more() -> None:
    assert junk.weight({"a": ["x" * 1000]}) > 1000 + junk.weight({"a": []})


def test_a_file_with_broken_lines_is_scanned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "steps.jsonl"
    made = steps.cases(steps.Random(3))
    lines = [json.dumps({"id": str(at), "steps": next(made)}) for at in range(COUNT // 40)]
    lines[3:3] = ["", "{", '{"id": 1}', "[]", '{"id": "x", "steps": [{"kind": "none"}]}', "\x00"]
    file.write_text("\n".join(lines), "utf-8", errors="surrogatepass")
    assert main(["scan", "--format", "steps", "--json", str(file)]) in (0, 1, 2)
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    scanned = [json.loads(line) for line in out.splitlines()]
    assert len(scanned) > len(lines) // 2
    for finding in (each for case in scanned for each in case["findings"]):
        assert finding["step"] >= finding["first_step"] >= 1
        assert finding["evidence"]
        assert finding["pattern"]
