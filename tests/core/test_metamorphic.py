"""What must not change a verdict does not, and what must change it does: on the labelled cases."""

from __future__ import annotations

import json
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from otel_loopguard.core.masking import mask
from otel_loopguard.core.names import waits
from otel_loopguard.core.subject import sleeps
from otel_loopguard.core.tasks import names
from tests.core.relations import (
    Case,
    after_healthy_steps,
    moved,
    much_later,
    observe,
    translated,
    verdict,
    verdicts_interleaved,
    with_double_gaps,
    with_keys_in_any_order,
    with_neutral_names,
    with_other_agents,
    with_rounds_shuffled,
    with_user_turn,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.core.relations import Said

SUITES = ("issues", "own", "peers", "reports")  # the others were written blind: they only count
CASES: list[Case] = [
    json.loads(line)
    for suite in SUITES
    for line in (Path(__file__).parents[1] / f"cases/{suite}.jsonl").read_text("utf-8").splitlines()
]


@cache
def verdicts() -> dict[str, list[Said]]:
    """What the guard says of each case as it is."""
    return {case["id"]: verdict(case) for case in CASES}


def changed(change: Callable[[Case], Case], by: int = 0) -> dict[str, tuple[list[Said], ...]]:
    """The cases whose verdict is another one after a change that moved it by so many steps."""
    found = {case["id"]: verdict(change(case)) for case in CASES}
    return {
        name: (verdicts()[name], after)
        for name, after in found.items()
        if after != moved(verdicts()[name], by)
    }


def test_the_order_of_keys_does_not_matter() -> None:
    assert changed(lambda case: with_keys_in_any_order(case, 7)) == {}


def test_the_names_of_agents_do_not_matter() -> None:
    assert changed(with_other_agents) == {}


def test_the_time_of_day_does_not_matter() -> None:
    assert changed(lambda case: much_later(case, 1_700_000_000.0), by=1) == {}


def test_names_of_tools_only_tell_that_they_wait_or_whom_they_call() -> None:
    quiet_by_name = {
        case["id"]
        for case in CASES
        if not verdicts()[case["id"]]
        and any(waits(step.get("tool") or "") for step in case["steps"])
    }
    names_agents = {
        case["id"]
        for case in CASES
        if any(
            names(step.get("agent") or "nobody", other.get("tool") or "", ())
            for step in case["steps"]
            for other in case["steps"]
        )
    }
    differ = {
        name: both
        for name, both in changed(with_neutral_names).items()
        if bool(both[0]) != bool(both[1])
    }
    assert differ.keys() <= quiet_by_name | names_agents, differ


def test_what_the_user_said_first_does_not_matter() -> None:
    assert changed(lambda case: with_user_turn(case, 0), by=1) == {}


def test_a_user_turn_right_before_a_loop_does_not_hide_it() -> None:
    started = [case for case in CASES if case.get("loop_start") and verdicts()[case["id"]]]
    late = [
        case["id"]
        for case in started
        if not any(
            case["loop_start"] < each.at <= case["expect_by"] + 2  # it may cost a turn
            for each in verdict(with_user_turn(case, case["loop_start"] - 1))
        )
        and any(each.at <= case["expect_by"] for each in verdicts()[case["id"]])
    ]
    assert late == []


@pytest.mark.parametrize("count", [7, 60])
def test_healthy_steps_before_neither_change_nor_delay_a_verdict(count: int) -> None:
    assert changed(lambda case: after_healthy_steps(case, count), by=count) == {}


def test_runs_do_not_disturb_each_other() -> None:
    for one, other in pairwise(CASES):
        expected = [verdicts()[one["id"]], verdicts()[other["id"]]]
        assert verdicts_interleaved(one, other) == expected, (one["id"], other["id"])


def test_longer_waits_make_nothing_worse() -> None:
    worse = {
        name: both
        for name, both in changed(with_double_gaps).items()
        if both[1] and (not both[0] or both[1][0].at < both[0][0].at)
    }
    assert worse == {}


def test_texts_in_another_language_get_the_same_verdict() -> None:
    """Unless it is a word that told what came of a step, or where a volatile value is."""

    def told(case: Case) -> object:
        steps = [each.step for each in observe(case)]
        hidden = [mask(str(step.get("result"))).count("~") for step in case["steps"]]
        naps = [each.subject is not None and sleeps(each.subject) for each in steps]
        return [(each.outcome, each.masked_key is None) for each in steps], hidden, naps

    by_structure = [case for case in CASES if told(case) == told(translated(case))]
    differ = [
        (case["id"], verdicts()[case["id"]], after)
        for case in by_structure
        if (after := verdict(translated(case))) != verdicts()[case["id"]]
    ]
    assert differ == []
    assert len(by_structure) > 0.75 * len(CASES)


def test_with_all_words_lost_nearly_all_verdicts_stand() -> None:
    """A language of which no word is known: what came of a step is told by structure alone."""
    both = [(case, bool(verdicts()[case["id"]]), bool(verdict(translated(case)))) for case in CASES]
    spoken = [after for case, before, after in both if case["expect"] and before]
    silent = [after for case, before, after in both if not case["expect"] and not before]
    assert spoken.count(False) < 0.05 * len(spoken)
    assert silent.count(True) < 0.02 * len(silent)


def test_the_order_within_a_round_does_not_matter() -> None:
    differ = {
        name: both
        for name, both in changed(lambda case: with_rounds_shuffled(case, 3)).items()
        if [each[1:] for each in both[0]] != [each[1:] for each in both[1]]
    }
    assert differ == {}
