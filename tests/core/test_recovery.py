"""Ladders and notes: what is done about each deadlock, and what the model is told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard.core.model import Finding, Pattern, Severity
from otel_loopguard.core.notes import LANGUAGES, held_note, note, phrase
from otel_loopguard.core.recovery import (
    END,
    LADDERS,
    Level,
    Remedy,
    Rung,
    by_note,
    climb,
    suggested,
    taken,
)

ALL = frozenset(Remedy)


def finding(pattern: Pattern, action: str | None = "search") -> Finding:
    return Finding(pattern, Severity.WARNING, "identity", 1, 4, "evidence", "action", action=action)


@pytest.mark.parametrize("pattern", list(Pattern))
def test_each_ladder_goes_up_and_ends_with_the_end(pattern: Pattern) -> None:
    ladder = LADDERS[pattern]
    assert list(ladder) == sorted(ladder, key=lambda rung: rung.level)
    assert ladder[-1] == Rung(Level.STOP, Remedy.END_RUN)
    assert len(set(ladder)) == len(ladder)


@given(
    st.sampled_from(list(Pattern)),
    st.integers(0, 9),
    st.frozensets(st.sampled_from(list(Remedy))),
    st.frozensets(st.sampled_from(list(Remedy))),
    st.booleans(),
)
def test_a_climb_takes_what_can_be_done_in_order_and_names_what_was_never_done(
    pattern: Pattern, passed: int, can: frozenset[Remedy], tried: frozenset[Remedy], asks: bool
) -> None:
    ladder = LADDERS[pattern]
    taken = climb(pattern, passed, can, tried=tried, asks=asks)
    place = ladder.index(taken.rung)
    asked = [rung.remedy for rung in ladder if asks or rung.remedy is not Remedy.ESCALATE_TO_HUMAN]
    assert taken.passed == place + 1
    assert taken.rung.remedy in can & {*asked} or taken.rung == END
    between = {rung.remedy for rung in ladder[passed:place]}
    assert not between & can & {*asked}
    below = [rung.remedy for rung in ladder[:place]]
    assert list(taken.skipped) == [each for each in below if each in asked and each not in tried]


def test_only_what_cannot_be_undone_asks_a_human() -> None:
    assert climb(Pattern.HARD_LOOP, 2, ALL).rung.remedy is Remedy.END_RUN
    assert climb(Pattern.HARD_LOOP, 2, ALL, asks=True).rung.remedy is Remedy.ESCALATE_TO_HUMAN


SUGGESTED = {
    Pattern.HARD_LOOP: "inject_correction",
    Pattern.TOOL_OSCILLATION: "apply_state_latch",
    Pattern.RESULT_STAGNATION: "inject_correction",
    Pattern.RETRY_STORM: "activate_circuit_breaker",
    Pattern.TOOL_HALLUCINATION: "inject_tool_schema",
    Pattern.GUARDRAIL_LOOP: "escalate_to_human",
    Pattern.REFLECTION_PARALYSIS: "force_action_prompt",
    Pattern.CONTEXT_ROT: "inject_objective_anchor",
    Pattern.TRUNCATION_LOOP: "chunk_result",
    Pattern.CONSTRAINT_DRIFT: "inject_objective_anchor",
    Pattern.DELEGATION_LOOP: "stop_delegation",
    Pattern.ITERATION_BUDGET: "force_final_answer",
}
"""What alert rules and dashboards may look for: a contract."""


def test_what_a_finding_suggests_is_a_contract() -> None:
    assert {pattern: suggested(pattern) for pattern in Pattern} == SUGGESTED
    others = {p for p in Pattern if SUGGESTED[p] != LADDERS[p][0].remedy.value}
    assert others == {Pattern.CONSTRAINT_DRIFT, Pattern.DELEGATION_LOOP}
    assert suggested(Pattern.HARD_LOOP, waits=True) == "wait_longer"


@pytest.mark.parametrize("pattern", list(Pattern))
@pytest.mark.parametrize("language", [*LANGUAGES, "tlh"])
def test_a_note_says_how_often_whatever_the_pattern(pattern: Pattern, language: str) -> None:
    said = note(finding(pattern), language=language)
    assert "4" in said
    assert "{" not in said


def test_a_note_of_ones_own_comes_first() -> None:
    own = {Pattern.HARD_LOOP: "{tool} again? That is {count} times."}
    assert note(finding(Pattern.HARD_LOOP), templates=own) == "search again? That is 4 times."
    assert "search" in note(finding(Pattern.RETRY_STORM), templates=own)


@pytest.mark.parametrize("odd", ["{price}", "{", "{0}", "{tool.name}", "{count[0]}", "{}"])
def test_other_braces_stay_as_they_are(odd: str) -> None:
    assert note(finding(Pattern.HARD_LOOP), templates={Pattern.HARD_LOOP: odd}) == odd


def test_a_loop_without_a_tool_still_has_a_note() -> None:
    assert "None" not in note(finding(Pattern.HARD_LOOP, action=None))


@pytest.mark.parametrize(
    ("pattern", "remedy", "skipped"),
    [
        (Pattern.HARD_LOOP, Remedy.INJECT_CORRECTION, []),
        (Pattern.RETRY_STORM, Remedy.ACTIVATE_CIRCUIT_BREAKER, []),
        (Pattern.TOOL_HALLUCINATION, Remedy.INJECT_CORRECTION, [Remedy.INJECT_TOOL_SCHEMA]),
        (Pattern.GUARDRAIL_LOOP, Remedy.INJECT_CORRECTION, []),
    ],
)
def test_what_a_note_in_place_of_a_call_is_on_the_ladder(
    pattern: Pattern, remedy: Remedy, skipped: list[Remedy]
) -> None:
    climbed = by_note(pattern)
    assert climbed.rung == Rung(Level.STEER, remedy)
    assert list(climbed.skipped) == skipped
    assert by_note(pattern, [Remedy.INJECT_TOOL_SCHEMA]).skipped == ()


def test_what_it_is_to_hold_a_call_back_where_nothing_else_was_done() -> None:
    assert taken(Pattern.RETRY_STORM, halts=False) == by_note(Pattern.RETRY_STORM)
    halted = taken(Pattern.RETRY_STORM, halts=True)
    assert halted.rung == END
    assert list(halted.skipped) == [
        Remedy.ACTIVATE_CIRCUIT_BREAKER,
        Remedy.FORCE_FINAL_ANSWER,
    ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_call_that_was_not_made_is_said_to_be(language: str) -> None:
    said, held = (form(finding(Pattern.HARD_LOOP), language=language) for form in (note, held_note))
    assert held.endswith(said)
    assert len(held) > len(said)
    own = {Pattern.HARD_LOOP: "{tool}!"}
    assert held_note(finding(Pattern.HARD_LOOP), templates=own) == "search!"


@pytest.mark.parametrize("language", [*LANGUAGES, "tlh"])
def test_a_note_holds_what_it_is_given(language: str) -> None:
    odd = "{count} {tool} {objective} {"
    said = note(finding(Pattern.CONTEXT_ROT), language=language, objective=odd)
    assert odd in said
    assert odd in phrase("left_out", language, count=odd)


@pytest.mark.parametrize("pattern", list(Pattern))
@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_has_a_note_for_each_pattern(pattern: Pattern, language: str) -> None:
    assert LANGUAGES[language][pattern]
    said = note(finding(pattern), language=language)
    assert not said[0].islower() or said.startswith("search")
