"""What becomes of a call before it is made."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard.core.action import Action
from otel_loopguard.core.decision import GO, GRACE, DeadlockError, Verdict
from otel_loopguard.core.detectors import BUILTIN
from otel_loopguard.core.fingerprint import Fingerprinter
from otel_loopguard.core.guard import Guard
from otel_loopguard.core.model import Kind, Outcome, Pattern, Sighting
from otel_loopguard.core.recovery import Remedy
from tests.core.steps import PAGE, call

if TYPE_CHECKING:
    from collections.abc import Iterable

    from otel_loopguard.core.decision import Decision


def guard_that(action: Action, **more: object) -> Guard:
    detectors = [detector() for detector in BUILTIN.values()]
    return Guard(detectors, Fingerprinter(b"key"), action=action, **more)  # type: ignore[arg-type]


def asked(guard: Guard, sighting: Sighting, call_id: str | None = None) -> Decision:
    """What the guard says of a call that is about to be made."""
    args_key = guard.fingerprinter.of_args(sighting.args)
    return guard.decide("run", sighting.action, args_key, call_id)


def run(guard: Guard, sightings: Iterable[Sighting]) -> list[Verdict]:
    """Make the calls that the guard lets go; what it said of each."""
    said: list[Verdict] = []
    for each in sightings:
        decision = asked(guard, each)
        if decision.verdict is Verdict.GO or decision.shadow:
            guard.observe("run", each)
        said.append(decision.verdict)
    return said


def test_the_fourth_equal_call_is_held_back() -> None:
    said = run(guard_that(Action.NUDGE), [call()] * 8)
    assert said == [Verdict.GO] * 3 + [Verdict.NUDGE] * 5


def test_a_run_that_ignores_two_notes_is_stopped() -> None:
    said = run(guard_that(Action.BREAK), [call()] * 6)
    assert said == [Verdict.GO] * 3 + [Verdict.NUDGE] * GRACE + [Verdict.HALT]


def test_what_is_no_step_leaves_the_loop_that_stands() -> None:
    guard = guard_that(Action.NUDGE)
    run(guard, [call()] * 3)
    replayed = guard.observe("run", Sighting(Kind.RETRY, "model"))
    assert (replayed.counted, replayed.utterances) == (False, ())
    assert asked(guard, call()).verdict is Verdict.NUDGE


def test_observing_holds_nothing_back() -> None:
    guard = guard_that(Action.OBSERVE)
    assert run(guard, [call()] * 20) == [Verdict.GO] * 20
    assert not guard.decides


def test_a_shadow_says_what_would_be_done() -> None:
    guard = guard_that(Action.SHADOW)
    for _ in range(3):
        guard.observe("run", call())
    decision = asked(guard, call())
    assert decision.shadow
    assert decision.verdict is Verdict.NUDGE
    assert decision.finding is not None
    assert decision.finding.pattern is Pattern.HARD_LOOP
    assert decision.finding_id


def test_patterns_may_differ() -> None:
    guard = guard_that(Action.BREAK, actions={Pattern.HARD_LOOP: Action.OBSERVE})
    assert run(guard, [call()] * 10) == [Verdict.GO] * 10
    guard = guard_that(Action.OBSERVE, actions={Pattern.HARD_LOOP: Action.NUDGE})
    assert run(guard, [call()] * 4)[-1] is Verdict.NUDGE


@pytest.mark.parametrize(
    "other",
    [
        call("search", "other"),
        call("fetch", "x"),
        Sighting(Kind.TOOL, "search"),
    ],
    ids=["other arguments", "another tool", "arguments not captured"],
)
def test_other_calls_go_on(other: Sighting) -> None:
    guard = guard_that(Action.BREAK)
    run(guard, [call()] * 4)
    assert asked(guard, other) == GO


@pytest.mark.parametrize(
    "between",
    [
        Sighting(Kind.USER, "user", args="go on"),
        Sighting(Kind.EFFECT, "effect"),
        call("fetch", "y", "A page that nobody has seen before in this run. " * 9),
    ],
    ids=["user", "effect", "news"],
)
def test_what_changes_the_situation_lets_the_call_go_again(between: Sighting) -> None:
    guard = guard_that(Action.BREAK)
    run(guard, [call()] * 4)
    guard.observe("run", between)
    assert asked(guard, call()) == GO


def test_who_ends_the_run_by_himself_may_make_any_call() -> None:
    guard = guard_that(Action.BREAK)
    guard.relent("run")
    guard.observe("run", call("fetch", "y"))
    guard.relent("run")
    run(guard, [call()] * 6)
    assert asked(guard, call(), "call_1").verdict is Verdict.HALT
    guard.relent("run")
    assert asked(guard, call(), "call_1") == GO
    assert guard.advise("run", frozenset[Remedy]) == GO


def test_what_says_nothing_new_changes_nothing() -> None:
    guard = guard_that(Action.BREAK)
    run(guard, [call()] * 4)
    guard.observe("run", Sighting(Kind.MODEL, "gpt", result="I will search again."))
    assert asked(guard, call()).verdict is Verdict.NUDGE


def test_a_call_that_came_to_another_end_after_all_is_let_go() -> None:
    guard = guard_that(Action.BREAK)
    run(guard, [call()] * 4)
    guard.observe("run", call(result="Quite another page, with other words on it. " * 9))
    assert asked(guard, call()) == GO


def test_one_call_id_gets_one_answer_until_the_model_speaks_again() -> None:
    guard = guard_that(Action.BREAK)
    run(guard, [call()] * 3)
    first = asked(guard, call(), "call_1")
    assert asked(guard, call(), "call_1") == first
    assert asked(guard, call(), "call_2").nth == first.nth + 1
    guard.observe("run", Sighting(Kind.MODEL, "gpt", result="Once more."))
    assert asked(guard, call(), "call_1").verdict is Verdict.HALT


def test_each_call_of_a_cycle_is_held_back() -> None:
    guard = guard_that(Action.NUDGE)
    lap = [call("open", 1, "The door is open now. " * 20), call("close", 1, "It is shut. " * 30)]
    said = run(guard, lap * 5)
    assert Verdict.NUDGE in said
    assert set(said[said.index(Verdict.NUDGE) :]) == {Verdict.NUDGE}


def test_an_ignored_tool_is_never_held_back() -> None:
    guard = guard_that(Action.BREAK, ignored_tools=frozenset({"search"}))
    assert run(guard, [call()] * 10) == [Verdict.GO] * 10


@given(st.lists(st.sampled_from("abc"), max_size=40), st.sampled_from(list(Action)))
def test_only_a_call_that_was_made_before_is_ever_held_back(names: str, action: Action) -> None:
    guard = guard_that(action)
    made: set[str] = set()
    for name in names:
        decision = asked(guard, call(name))
        if decision.verdict is Verdict.GO or decision.shadow:
            guard.observe("run", call(name, result=PAGE + name))
            made.add(name)
        else:
            assert name in made
            assert action in (Action.NUDGE, Action.BREAK)


def failing(end_s: float) -> Sighting:
    now = int(end_s * 1e9)
    return call(result="connection refused", error="OSError", start_ns=now, end_ns=now)


def test_a_tool_that_fails_is_left_alone_for_a_while() -> None:
    guard = guard_that(Action.NUDGE)
    second = 0
    while asked(guard, call()) == GO:
        second += 1
        guard.observe("run", failing(second))
        assert second < 20
    key = guard.fingerprinter.of_args(call().args)
    at = [guard.decide("run", "search", key, None, (second + s) * 10**9) for s in (1, 29, 31)]
    assert [each.verdict for each in at] == [Verdict.NUDGE, Verdict.NUDGE, Verdict.GO]
    guard.observe("run", failing(second + 31))
    again = guard.decide("run", "search", key, None, (second + 32) * 10**9)
    assert again.verdict is Verdict.NUDGE


def test_results_that_are_equal_but_for_a_clock_hold_nothing_back_at_first() -> None:
    guard = guard_that(Action.NUDGE)
    pages = [call(result=f"[{n}s] " + PAGE) for n in range(12)]
    said = run(guard, pages)
    spoke = Guard([each() for each in BUILTIN.values()], Fingerprinter(b"key"))
    first = next(n for n, each in enumerate(pages) if spoke.observe("run", each).utterances)
    assert said.index(Verdict.NUDGE) > first + 1


def test_an_error_that_stops_a_run_can_be_passed_on() -> None:
    guard = guard_that(Action.BREAK)
    run(guard, [call()] * 3)
    decision = asked(guard, call())
    assert decision.finding is not None
    error = DeadlockError(decision.finding, decision.finding_id, "run")
    again = copy.copy(error)  # goes the way of a pickle
    assert (again.finding, again.finding_id, again.run_id) == (
        error.finding, error.finding_id, "run"
    )  # fmt: skip
    assert str(again) == str(error)
    assert "hard_loop" in str(error)


def invalid(args: str) -> Sighting:
    return call(args=args, result="field q is missing", outcome=Outcome.INVALID_ARGS)


def test_a_corrected_call_is_let_go() -> None:
    guard = guard_that(Action.BREAK)
    wrong = [invalid("a")] * 4
    assert Verdict.NUDGE in run(guard, wrong)
    assert asked(guard, call(args="b")) == GO


def test_beyond_the_budget_no_call_is_made() -> None:
    budget = replace(BUILTIN[Pattern.ITERATION_BUDGET](), limit=4)
    guard = Guard([budget], Fingerprinter(b"key"), action=Action.BREAK)
    said = run(guard, [call(args=n, result=f"{PAGE}{n}") for n in range(9)])
    assert said == [Verdict.GO] * 5 + [Verdict.NUDGE] * GRACE + [Verdict.HALT] * 2


def test_one_failure_of_many_kinds_of_call_is_no_reason_to_leave_a_tool_alone() -> None:
    guard = guard_that(Action.BREAK)
    failures = [call(args=n, result="connection refused", error="OSError") for n in range(6)]
    assert set(run(guard, failures)) == {Verdict.GO}
