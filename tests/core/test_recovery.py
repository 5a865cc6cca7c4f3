"""Ladders and notes: what is done about each deadlock, and what the model is told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard.core.model import Finding, Pattern, Severity
from otel_loopguard.core.notes import LANGUAGES, note
from otel_loopguard.core.recovery import LADDERS, Climb, Level, Remedy, Rung, climb, taken

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
    st.booleans(),
)
def test_a_climb_takes_what_can_be_done_in_order_and_names_what_cannot(
    pattern: Pattern, tried: int, can: frozenset[Remedy], asks: bool
) -> None:
    rungs = [
        rung
        for rung in LADDERS[pattern][:-1]
        if asks or rung.remedy is not Remedy.ESCALATE_TO_HUMAN
    ]
    possible = [rung for rung in rungs if rung.remedy in can]
    end = LADDERS[pattern][-1]
    taken = possible[tried] if tried < len(possible) else end
    before = rungs[: rungs.index(taken)] if taken in rungs else rungs
    skipped = tuple(rung.remedy for rung in before if rung.remedy not in can)
    assert climb(pattern, tried, can, asks=asks) == Climb(taken, skipped)


def test_only_what_cannot_be_undone_asks_a_human() -> None:
    assert climb(Pattern.HARD_LOOP, 2, ALL).rung.remedy is Remedy.END_RUN
    assert climb(Pattern.HARD_LOOP, 2, ALL, asks=True).rung.remedy is Remedy.ESCALATE_TO_HUMAN


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
    ("pattern", "level", "remedy", "skipped"),
    [
        (Pattern.HARD_LOOP, 1, Remedy.INJECT_CORRECTION, []),
        (Pattern.RETRY_STORM, 1, Remedy.ACTIVATE_CIRCUIT_BREAKER, []),
        (
            Pattern.TRUNCATION_LOOP,
            1,
            Remedy.INJECT_CORRECTION,
            [Remedy.CHUNK_RESULT, Remedy.SUMMARISE_CONTEXT],
        ),
        (Pattern.GUARDRAIL_LOOP, 1, Remedy.INJECT_CORRECTION, []),
    ],
)
def test_what_a_note_is_on_the_ladder(
    pattern: Pattern, level: int, remedy: Remedy, skipped: list[Remedy]
) -> None:
    climbed = taken(pattern, halts=False)
    assert (climbed.rung.level, climbed.rung.remedy) == (level, remedy)
    assert list(climbed.skipped) == skipped


def test_what_a_stop_is_on_the_ladder() -> None:
    climbed = taken(Pattern.HARD_LOOP, halts=True)
    assert climbed.rung == (Level.STOP, Remedy.END_RUN)
    assert climbed.skipped == (Remedy.FORCE_FINAL_ANSWER,)
    asked = taken(Pattern.GUARDRAIL_LOOP, halts=True, asks=True)
    assert asked.skipped == (Remedy.ESCALATE_TO_HUMAN,)
