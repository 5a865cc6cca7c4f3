"""Nothing that comes in can raise, leave a finding half said, or make memory grow without end.

`make fuzz` does the same with far more.
"""

from __future__ import annotations

import os

import pytest

from tests.fuzz import junk, steps
from tests.fuzz.spans import Spans

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
