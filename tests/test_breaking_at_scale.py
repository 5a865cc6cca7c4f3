"""Many loops at once: what is broken, and that healthy work beside them is not touched."""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.bench.mixed import LIMIT, is_stuck, loaded, obeys
from tests.bench.oscillating import KINDS, OBEDIENCE, played, variants
from tests.signals import Signals

if TYPE_CHECKING:
    from collections.abc import Iterator

NUMBER = 200
RUNS = 134
ENDS = {1: {"answer"}, 2: {"answer", "deadlock"}, LIMIT: {"deadlock"}}
"""How a stuck run may end, by how many notes its model needs."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """A line for each loop says nothing here."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def test_nine_of_ten_oscillations_end_without_anybody() -> None:
    outcomes = []
    for action in ("nudge", "break"):
        with Signals().instrumented(action=action):
            outcomes += [played(each) for each in variants(NUMBER) if each.action == action]
    assert len(outcomes) == NUMBER
    share = sum(outcome.ended for outcome in outcomes) / NUMBER
    print(f"{share:.1%} of {NUMBER} oscillations ended: {Counter(each.end for each in outcomes)}")
    assert share >= 0.9
    for kind in KINDS:  # and none of them is left to the others
        of_kind = [each.ended for each in outcomes if each.variant.kind == kind]
        assert sum(of_kind) / len(of_kind) >= 0.85
    stopped = {each.variant.obeys for each in outcomes if each.end == "deadlock"}
    assert "never" in stopped
    ended = {each.variant.obeys for each in outcomes if each.end == "answer"}
    assert ended == set(OBEDIENCE) - {"never"}


def test_observed_oscillations_do_not_end() -> None:
    """So that the test above can fail."""
    with Signals().instrumented():
        assert {played(each).end for each in variants(20)} == {"limit"}


def test_of_a_mixed_load_only_the_stuck_runs_are_touched() -> None:
    alone = loaded(RUNS)
    with Signals().instrumented(action="break"):
        guarded = loaded(RUNS)
    stuck = sum(map(is_stuck, range(RUNS)))
    assert stuck == round(0.03 * RUNS)
    assert alone.to_the_limit == stuck / RUNS
    assert guarded.to_the_limit < 0.003
    assert guarded.healthy() == alone.healthy()  # to the byte of each request
    assert len(guarded.healthy()) == RUNS - stuck
    for run in guarded.runs:
        if run.is_stuck:
            needs = obeys(int(run.name.partition("-")[2]))
            assert run.end in ENDS[needs], run
    assert guarded.tokens < 0.5 * alone.tokens
    assert max(run.calls for run in guarded.runs) < LIMIT / 4
