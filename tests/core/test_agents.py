"""Several agents in one run: none hides the repeats of another, and none makes false ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard.core.agents import MAX_AGENTS
from otel_loopguard.core.model import Kind, Outcome
from tests.core.steps import PAGE, SECOND, START, call, make_guard, observe, seen, utterances

if TYPE_CHECKING:
    from random import Random

    from otel_loopguard.core.model import Sighting

Facts = tuple[int, bool, int, str]


def facts(sightings: list[Sighting], agent: str | None = None) -> list[Facts]:
    """What is observed of one agent's steps."""
    return [
        (each.consecutive_same_tool, each.same_args_seen, each.repeat_count, each.status.value)
        for each in observe(sightings)
        if agent in (None, each.step.agent)
    ]


def read(agent: str | None, args: object = "config", result: object = PAGE) -> Sighting:
    return call("read", args, result, agent=agent)


def test_each_of_several_agents_may_look_at_the_same_thing() -> None:
    assert utterances([read(f"sub-{number}") for number in range(6)]) == []
    assert utterances([read("sub") for _ in range(3)]) == [(3, "hard_loop", "warning")]


def test_what_another_agent_reads_does_not_hide_a_loop() -> None:
    loop: list[Sighting] = []
    for number in range(3):
        loop += [read("a"), read("b", f"file {number}", f"{PAGE}{number}")]
    assert utterances(loop) == [(5, "hard_loop", "warning")]


def test_what_another_agent_changed_is_worth_another_look() -> None:
    work: list[Sighting] = []
    for number in range(5):
        work += [
            call("test", "all", "1 failed, 40 passed in all modules of the suite", agent="tester"),
            call("edit", f"change {number}", "ok", agent="coder"),
        ]
    assert utterances(work) == []
    only_read = [
        each._replace(action="read", result=f"{PAGE}{number}") if each.action == "edit" else each
        for number, each in enumerate(work)
    ]
    assert utterances(only_read)[0][:2] == (5, "hard_loop")


def test_a_tour_of_an_agent_begins_anew_when_another_one_changes_something() -> None:
    failed = "1 failed, 40 passed in all modules of the suite"
    work: list[Sighting] = []
    for number in range(6):
        work += [call("edit", f"change {number}", "ok", agent="coder")]
        work += [call("build", "all", f"{PAGE} built", agent="tester")]
        work += [call("test", "all", failed, agent="tester")]
    assert utterances(work) == []
    assert utterances([each for each in work if each.agent == "tester"])[0][:2] == (
        6,
        "tool_oscillation",
    )


def test_a_change_from_outside_is_one_for_all_agents() -> None:
    steps = [read("a"), read("b"), read("a"), read("b"), seen(Kind.EFFECT), read("a"), read("b")]
    assert utterances(steps) == []
    without = [each for each in steps if each.kind is Kind.TOOL]
    assert [at for at, _, _ in utterances(without)] == [5, 6]


def test_rounds_that_overlap_in_time_are_those_of_one_agent() -> None:
    """Two agents that are never idle at once would be one endless round otherwise."""
    steps = [
        read("ab"[number % 2])._replace(
            start_ns=START + number * SECOND, end_ns=START + (2 * number + 3) * SECOND // 2
        )
        for number in range(6)
    ]
    assert [at for at, _, _ in utterances(steps)] == [5, 6]


def test_an_agent_waits_however_much_others_do() -> None:
    steps: list[Sighting] = []
    for number in range(5):
        steps.append(call("status", "job", '{"status": "running"}', agent="a"))
        steps += [read("b", f"{number}/{part}", f"{number}/{part}{PAGE}") for part in range(3)]
    assert utterances(steps) == []


def test_an_unnamed_step_is_that_of_the_agent_before() -> None:
    assert utterances([read(None), read("a"), read(None)]) == [(3, "hard_loop", "warning")]
    assert utterances([read("a"), read("b"), read(None), read("a")]) == []


def test_the_user_starts_all_agents_over() -> None:
    before = [read("a"), read("b"), read("a"), read("b")]
    assert utterances([*before, seen(Kind.USER), read("a"), read("b")]) == []


def test_a_changing_result_is_compared_with_what_the_same_agent_got() -> None:
    stamped = [
        call("read", "log", f"2026-01-02T03:04:0{number}Z {PAGE}", agent="ab"[number % 2])
        for number in range(6)
    ]
    masked = [each.step.masked_key is not None for each in observe(stamped)]
    assert masked == [False, False, True, True, True, True]


def test_beyond_the_limit_the_agent_that_was_silent_longest_is_new() -> None:
    guard = make_guard()
    many = [read(f"agent {number}") for number in range(MAX_AGENTS + 2)]
    seen_before = [
        each.same_args_seen for each in observe([*many, read("agent 1"), read("agent 0")], guard)
    ]
    assert seen_before[-2:] == [True, False]


Step = tuple[str, str, str]
STEPS = st.lists(
    st.tuples(st.sampled_from(["read", "find"]), st.sampled_from("ab"), st.sampled_from("xyz")),
    max_size=12,
)


@given(STEPS, STEPS, st.randoms(use_true_random=False))
def test_agents_that_change_nothing_are_judged_as_if_each_were_alone(
    one: list[Step], two: list[Step], chance: Random
) -> None:
    mine, others = (
        [call(name, args, PAGE + said, agent=agent) for name, args, said in steps]
        for agent, steps in (("one", one), ("two", two))
    )
    order = ["one"] * len(mine) + ["two"] * len(others)
    chance.shuffle(order)
    left = {"one": iter(mine), "two": iter(others)}
    together = [next(left[agent]) for agent in order]
    counts = [each[:3] for each in facts(together, "one")]
    assert counts == [each[:3] for each in facts(mine)]


@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.PENDING])
def test_the_iteration_counts_the_rounds_of_all_agents(outcome: Outcome) -> None:
    steps = [read("ab"[number % 2])._replace(outcome=outcome) for number in range(4)]
    assert [each.iteration for each in observe(steps)] == [1, 2, 3, 4]
