"""Texts that bring a model back, results cut to size, results kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard.breaking import (
    ChunkedResult,
    ConstraintReminder,
    ObjectiveAnchor,
    RepeatCache,
    SummariseTrigger,
    tool_schema_reminder,
)

TOOLS = {"search_flights": ("origin", "day"), "book_flight": ("id",), "get_weather": ()}


def test_an_anchor_names_objective_criteria_and_tools() -> None:
    text = ObjectiveAnchor("Book a flight", ["a booking id is known"], ["book_flight"]).text()
    assert text.splitlines() == [
        "Your objective: Book a flight",
        "It is done when:",
        "- a booking id is known",
        "Tools you may use: book_flight",
    ]
    assert ObjectiveAnchor("Book a flight").text() == "Your objective: Book a flight"


def test_constraints_are_said_every_fifth_iteration() -> None:
    reminder = ConstraintReminder(["no refunds"])
    assert [n for n in range(21) if reminder.due(n)] == [5, 10, 15, 20]
    assert "no refunds" in str(reminder.due(5))
    assert ConstraintReminder([]).due(5) is None
    with pytest.raises(ValueError, match="at least 1"):
        ConstraintReminder(["x"], every=0)


def test_a_summary_is_due_from_six_thousand_tokens_on() -> None:
    trigger = SummariseTrigger()
    assert not trigger.due(5_999)
    assert trigger.due(6_000)


def test_a_summary_says_how_the_newest_messages_begin() -> None:
    texts = ["the first", "second " * 99, "", "third\n\nline", "third line", "the last one"]
    lines = SummariseTrigger(keep=3).summary(texts).splitlines()
    assert lines[0].startswith("second second")
    assert lines[0].endswith("...")
    assert lines[1:] == ["third line", "the last one"]
    assert SummariseTrigger().summary([]) == ""
    whole = "x" * 799
    assert SummariseTrigger().summary([whole]) == whole


@given(
    st.lists(st.text(max_size=80), max_size=9),
    st.integers(0, 5),
    st.integers(0, 40),
)
def test_a_summary_is_never_longer_than_it_may_be(texts: list[str], keep: int, tokens: int) -> None:
    said = SummariseTrigger(keep=keep, summary_tokens=tokens).summary(texts)
    assert len(said.encode()) <= 4 * tokens
    assert len(said.splitlines()) <= keep or any(len(text.splitlines()) > 1 for text in texts)


def test_an_invented_tool_is_answered_with_the_nearest_that_exist() -> None:
    text = tool_schema_reminder("searchFlight", TOOLS)
    assert "search_flights(origin, day)" in text
    assert "get_weather" not in text


def test_a_tool_called_with_wrong_arguments_is_answered_with_its_own() -> None:
    assert "origin, day" in tool_schema_reminder("search_flights", TOOLS)
    assert "none" in tool_schema_reminder("get_weather", TOOLS)


def test_a_name_that_is_near_to_nothing_gets_all_that_exist() -> None:
    assert all(name in tool_schema_reminder("qqq", TOOLS) for name in TOOLS)
    assert "no other" in tool_schema_reminder("qqq", {})


@given(st.text(alphabet="ab\n", max_size=300), st.integers(1, 50))
def test_the_parts_of_a_result_are_the_result(text: str, size: int) -> None:
    chunks = ChunkedResult(text, size=size)
    parts = [chunks.part(number) for number in range(1, len(chunks) + 1)]
    assert "".join(each.text for each in parts) == text
    assert all(len(each.text) <= size for each in parts)
    assert {each.of for each in parts} == {len(parts)}


def test_a_part_says_which_it_is_and_ends_at_a_line() -> None:
    chunks = ChunkedResult("12345\n789\nabc", size=8)
    assert chunks.part(1).labelled() == "12345\n\n[part 1 of 2]"
    for number in (0, 3):
        with pytest.raises(IndexError, match="parts 1 to 2"):
            chunks.part(number)
    with pytest.raises(ValueError, match="at least 1"):
        ChunkedResult("x", size=0)


def test_the_cache_gives_what_it_has_and_forgets_what_was_not_used_longest() -> None:
    cache = RepeatCache[str | None](max_entries=2)
    cache.put("read", "a", "A")
    cache.put("read", "b", None)
    assert cache.get("read", "a", "-") == "A"
    cache.put("read", "c", "C")
    assert cache.get("read", "b", "-") == "-", "the one unused longest is gone"
    assert cache.get("read", "a", "-") == "A"
    assert cache.get("other", "a", "-") == "-"
    cache.clear()
    assert cache.get("read", "a", "-") == "-"
    with pytest.raises(ValueError, match="at least 1"):
        RepeatCache(max_entries=0)
