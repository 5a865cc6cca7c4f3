"""How a request is changed for each rung, and what an application says of a run beforehand."""

from __future__ import annotations

import pytest

from otel_loopguard.breaking.brief import Brief, brief
from otel_loopguard.breaking.counsel import KEEP, Scene, change_for, possible
from otel_loopguard.breaking.reminders import ConstraintReminder, ObjectiveAnchor
from otel_loopguard.core.model import Finding, Pattern, Severity
from otel_loopguard.core.recovery import LADDERS, Level, Remedy

FULL = Scene(
    objective="Find the order.",
    constraints="- Ask before you delete.",
    tools={"search": ("query", "page")},
    asked=("serch",),
    takes_words=True,
    takes_final=True,
    is_warm=True,
    is_whole=True,
)
WORDS = {"objective": "Find the order.", "constraints": "- Ask before", "schema": "search(query"}


def finding(pattern: Pattern) -> Finding:
    return Finding(pattern, Severity.WARNING, "identity", 1, 4, "evidence", "action", action="read")


def test_a_request_that_takes_no_words_allows_nothing() -> None:
    assert possible(FULL._replace(takes_words=False)) == frozenset()


def test_a_full_request_allows_all_but_what_no_request_does() -> None:
    assert frozenset(Remedy) - possible(FULL) == {Remedy.ESCALATE_TO_HUMAN, Remedy.END_RUN}


@pytest.mark.parametrize(
    ("lacks", "remedies"),
    [
        ({"objective": ""}, {Remedy.INJECT_OBJECTIVE_ANCHOR}),
        ({"constraints": ""}, {Remedy.REINJECT_CONSTRAINTS}),
        ({"tools": {}}, {Remedy.INJECT_TOOL_SCHEMA}),
        ({"takes_final": False}, {Remedy.FORCE_FINAL_ANSWER}),
        ({"is_warm": False}, {Remedy.LOWER_TEMPERATURE}),
        ({"is_whole": False}, {Remedy.SUMMARISE_CONTEXT, Remedy.RESET_CONTEXT}),
    ],
)
def test_what_a_request_lacks_cannot_be_used(
    lacks: dict[str, object], remedies: set[Remedy]
) -> None:
    less = FULL._replace(**lacks)  # type: ignore[arg-type]
    assert possible(FULL) - possible(less) == remedies


@pytest.mark.parametrize("language", ["en", "de", "tlh"])
@pytest.mark.parametrize("pattern", list(Pattern))
def test_each_rung_says_something_true(pattern: Pattern, language: str) -> None:
    for rung in LADDERS[pattern]:
        change = change_for(rung.remedy, finding(pattern), FULL, language=language)
        assert "4" in change.text
        assert "{" not in change.text
        assert "not made" not in change.text
        if rung.level is Level.STEER and rung.remedy is not Remedy.FORCE_FINAL_ANSWER:
            assert not change.final
            assert change.keep is None


@pytest.mark.parametrize(
    ("pattern", "held"),
    [
        (Pattern.CONTEXT_ROT, "objective"),
        (Pattern.CONSTRAINT_DRIFT, "constraints"),
        (Pattern.TOOL_HALLUCINATION, "schema"),
    ],
)
def test_a_note_holds_what_its_rung_is_about(pattern: Pattern, held: str) -> None:
    remedy = LADDERS[pattern][0].remedy
    assert WORDS[held] in change_for(remedy, finding(pattern), FULL).text


def test_what_goes_with_the_word() -> None:
    loop = finding(Pattern.HARD_LOOP)
    assert change_for(Remedy.FORCE_FINAL_ANSWER, loop, FULL).final
    assert change_for(Remedy.LOWER_TEMPERATURE, loop, FULL).cools
    assert change_for(Remedy.SUMMARISE_CONTEXT, loop, FULL).keep == KEEP
    assert change_for(Remedy.RESET_CONTEXT, loop, FULL).keep == 0
    assert change_for(Remedy.CHUNK_RESULT, loop, FULL).shortens


@pytest.mark.parametrize("remedy", [Remedy.SUMMARISE_CONTEXT, Remedy.RESET_CONTEXT])
@pytest.mark.parametrize("pattern", [Pattern.TOOL_OSCILLATION, Pattern.CONTEXT_ROT])
def test_a_shorter_history_ends_with_the_objective(pattern: Pattern, remedy: Remedy) -> None:
    said = change_for(remedy, finding(pattern), FULL).text
    assert said.count("Your objective: Find the order.") == 1
    nothing = change_for(remedy, finding(pattern), FULL._replace(objective=""))
    assert "Find the order" not in nothing.text


def test_a_human_can_be_asked_before_any_request_if_there_is_one() -> None:
    silent = FULL._replace(takes_words=False)
    assert possible(silent, asks=True) == {Remedy.ESCALATE_TO_HUMAN}
    assert possible(FULL, asks=True) - possible(FULL) == {Remedy.ESCALATE_TO_HUMAN}


def test_a_template_of_ones_own_may_use_it_too() -> None:
    own = {Pattern.HARD_LOOP: "{tool}: {objective} {constraints} {schema}"}
    said = change_for(
        Remedy.INJECT_CORRECTION, finding(Pattern.HARD_LOOP), FULL, templates=own
    ).text
    assert all(word in said for word in ("read: ", *WORDS.values()))


def test_a_call_that_does_not_fit_is_told_what_does() -> None:
    scene = FULL._replace(asked=("search",))
    said = change_for(Remedy.INJECT_TOOL_SCHEMA, finding(Pattern.TOOL_HALLUCINATION), scene).text
    assert "query, page" in said
    nothing = scene._replace(asked=(), tools={"other": ()})
    said = change_for(Remedy.INJECT_TOOL_SCHEMA, finding(Pattern.TOOL_HALLUCINATION), nothing).text
    assert "other(none)" in said


def test_what_is_said_beforehand() -> None:
    assert brief(None, (), None) is None
    said = brief("Find it.", ["Be kind."], str)
    assert said == Brief(ObjectiveAnchor("Find it."), ConstraintReminder(("Be kind.",)), str)
    anchor, reminder = ObjectiveAnchor("Find it.", ["found"], ["search"]), ConstraintReminder((), 2)
    assert brief(anchor, reminder, None) == Brief(anchor)
    with pytest.raises(ValueError, match="texts"):
        brief(None, "Be kind.", None)


@pytest.mark.parametrize("language", ["en", "de"])
def test_an_anchor_in_other_words(language: str) -> None:
    anchor = ObjectiveAnchor("Find it.", ["found"], ["search"])
    assert anchor.text(language).endswith(anchor.told(language))
    assert all(word in anchor.told(language) for word in ("Find it.", "- found", "search"))
    assert (ConstraintReminder(["Be kind."]).due(5, language) or "").endswith("- Be kind.")
