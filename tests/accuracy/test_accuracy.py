"""The verdicts on the labelled cases stay as good as they are, and are counted right."""

from __future__ import annotations

import json
import multiprocessing
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from otel_loopguard.core.model import Pattern
from tests.accuracy import floor
from tests.accuracy.counting import Tally, judge
from tests.accuracy.numbers import Field, Literal, moves
from tests.accuracy.report import Report
from tests.accuracy.rules import RULES
from tests.accuracy.suites import Suite, committed, hits_of
from tests.figures import Figures

if TYPE_CHECKING:
    from pathlib import Path

LOOP = {"suite": "reports", "expect": True, "loop_start": 5, "expect_by": 9}
SAME_CALL, MASKED = RULES


def calls(*results: str) -> Suite:
    """A case of one call again and again, with these results."""
    step = {"kind": "tool", "tool": "search", "args": {"q": "x"}}
    steps = [{**step, "result": f"{result} {'of the search ' * 40}"} for result in results]
    return Suite("made", (json.dumps({"id": "a", "expect": True, "steps": steps}),))


def test_no_suite_is_below_the_floor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.figures.BUILD", tmp_path)
    with Figures("accuracy") as figures:
        assert not list(floor.compare(Report(committed()), floor.read(), figures))


def test_every_case_has_a_name_of_its_own_and_a_label() -> None:
    cases = [case for suite in committed() for case in suite.cases]
    assert max(Counter(case["id"] for case in cases).values()) == 1
    assert all(isinstance(case["expect"], bool) and case["pattern"] for case in cases)
    assert len(cases) > 350


@pytest.mark.parametrize(
    ("case", "hits", "counted"),
    [
        (LOOP, [5], Tally(loops=1, caught=1)),
        (LOOP, [9, 20], Tally(loops=1, caught=1)),
        (LOOP, [10], Tally(loops=1, late=1)),
        (LOOP, [], Tally(loops=1, missed=1)),
        (LOOP, [4], Tally(loops=1, missed=1, early=1)),
        (LOOP, [4, 6], Tally(loops=1, caught=1, early=1)),
        ({**LOOP, "suite": "magentic_one"}, [4], Tally(loops=1, caught=1)),
        ({"expect": True}, [1], Tally(loops=1, caught=1)),
        ({"expect": False}, [1, 2], Tally(quiet=1, false=1)),
        ({"expect": False}, [], Tally(quiet=1)),
        ({}, [3], Tally(unlabelled=1, unlabelled_alarms=1)),
    ],
)
def test_what_speaking_counts_as(case: dict[str, object], hits: list[int], counted: Tally) -> None:
    assert judge(case, hits) == counted


def test_precision_and_recall() -> None:
    tally = Tally(loops=10, caught=6, late=1, missed=3, quiet=5, false=1, early=1)
    assert (tally.recall, tally.precision) == (0.6, 0.75)
    assert (Tally().recall, Tally().precision) == (1.0, 1.0)


def test_only_what_is_bad_enough_is_a_hit() -> None:
    found = [{"step": 7, "severity": "critical"}, {"step": 3, "severity": "info"}]
    assert hits_of(found, ["warning", "critical"]) == [7]


def test_the_simple_rules_count_equal_calls_in_a_window() -> None:
    (case,) = calls(*"abcde").cases
    assert SAME_CALL.hits(case) == [5]
    assert not MASKED.hits(case)
    (case,) = calls(*(f"took {n} ms, nothing" for n in range(5))).cases
    assert MASKED.hits(case) == [5]
    step = case["steps"][0]
    between = [{**step, "args": {"q": n}} for n in range(20)]
    assert not SAME_CALL.hits({"steps": [step, step, step, step, *between, step]})


def test_a_floor_that_is_broken_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.figures.BUILD", tmp_path)
    report = Report([calls("a", "b", "c")])
    allowed = floor.measured(report)
    assert allowed["made"]["loops not caught in time"] == 1
    with Figures("accuracy") as figures:
        assert not list(floor.compare(report, allowed, figures))
        strict = {"made": {"loops not caught in time": 0}}
        assert "1 loops not caught" in "".join(floor.compare(report, strict, figures))


def test_all_kinds_of_numbers_are_moved_down_and_up() -> None:
    found = [str(each) for each in moves()]
    assert {"hard_loop.warning 3 -> 2", "hard_loop.warning 3 -> 4"} <= set(found)
    for constant in ("MASKED_WEIGHT", "WAIT_NS"):
        down, up = (each for each in moves() if each.name == constant)
        assert down.after < down.before == up.before < up.after
    assert not [each for each in found if "Severity" in each]


def findings_with(move: Field | Literal, suite: Suite) -> list[int]:
    """When the guard speaks with a number moved. Loads the package anew: for another process."""
    return hits_of(suite.findings(move.apply())[0], ["warning", "critical"])


def test_a_moved_number_is_in_force_and_the_others_are_not() -> None:
    same, masked = calls("a", "a", "a", "a"), calls(*(f"took {n} ms, nothing" for n in range(9)))
    less = next(each for each in moves() if each.name == "LONG_WEIGHT")
    with multiprocessing.get_context("spawn").Pool(1) as worker:
        at = [
            worker.apply(findings_with, (move, suite))[0]
            for move, suite in (
                (Field(Pattern.HARD_LOOP, "warning", 3, 4), same),
                (Field(Pattern.HARD_LOOP, "critical", 5, 6), same),
                (Field(Pattern.HARD_LOOP, "critical", 5, 6), masked),
                (less, masked),
            )
        ]
    assert at[:2] == [4, 3]
    assert at[3] > at[2]


def test_a_run_that_was_silent_for_long_is_over_in_a_file_too() -> None:
    step = {"kind": "tool", "tool": "search", "args": {"q": "x"}, "result": "a page " * 50}
    for gap, spoken in ((899, True), (901, False)):
        steps = [{**step, "dt_s": gap, "duration_s": 1} for _ in range(20)]
        suite = Suite("made", (json.dumps({"id": "a", "steps": steps}),))
        assert bool(suite.findings()[0]) == spoken
