"""Tasks: the same again, in other words; and the next item, in almost the same words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard.core.tasks import MAX_CHARS, task_of

ALIKE = 0.5

SAME = {
    "reworded": (
        "Please unzip the archive /data/report_2020.zip and list what is inside of it.",
        "Please unzip the archive /data/report_2020.zip, then list what is inside.",
    ),
    "a common word in capitals more": (
        "Scan through the video at https://example.org/v/7 and note the timestamps with birds.",
        "Scan through the video at the URL https://example.org/v/7, note timestamps with birds.",
    ),
    "German": (
        "Bitte prüfe, ob die Rechnung 4711 im Archiv vollständig abgelegt wurde.",
        "Prüfe bitte, ob die Rechnung 4711 vollständig im Archiv abgelegt wurde.",
    ),
    "Chinese": (
        "请检查编号为 4711 的发票是否已经完整归档。",
        "请检查编号为 4711 的发票是否已完整归档。",
    ),
    "quotes of another make": (
        "Verify whether 'yeti crab' is classified among the crustaceans.",
        "Verify whether \u201cyeti crab\u201d is classified among the crustaceans.",
    ),
}
OTHER = {
    "a shrinking list of names": (
        "Check whether Alice Meyer, Bob Stone and Carol Finch have signed the contract.",
        "Check whether Bob Stone and Carol Finch have signed the contract.",
    ),
    "a growing list of quoted items": (
        "Verify if 'crayfish' is classified among the crustaceans.",
        "Verify if 'crayfish' and 'isopod' are classified among the crustaceans.",
    ),
    "the next number": (
        "Translate chapter 3 of the book to French.",
        "Translate chapter 4 of the book to French.",
    ),
    "the next file": (
        "Review the module src/parser.py for bugs and report them.",
        "Review the module src/writer.py for bugs and report them.",
    ),
    "another question about the same": (
        "Find the opening hours of the museum in Leipzig.",
        "Find a hotel for two nights close to the museum in Leipzig.",
    ),
    "too few words to tell": ("Go on.", "Go on!"),
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_task(name: str) -> None:
    one, two = map(task_of, SAME[name])
    assert one is not None
    assert two is not None
    assert one.same(two, ALIKE)
    assert two.same(one, ALIKE)


@pytest.mark.parametrize("name", OTHER)
def test_another_task(name: str) -> None:
    one, two = map(task_of, OTHER[name])
    assert one is not None
    assert two is not None
    assert not one.same(two, ALIKE)


LONG = (
    "Look through all notes of yesterday, collect what concerns customers in southern regions, "
    "then write a summary that everybody can understand."
)


def test_it_is_specific_if_it_names_something_or_is_long() -> None:
    phrase, item = "Please go on with the next item on your list.", "Please go on with item 7."
    found = [task_of(text) for text in (phrase, item, LONG)]
    assert [each is not None and each.is_specific for each in found] == [False, True, True]


def test_the_texts_of_arguments_are_a_task() -> None:
    task = "Write a poem about programmers and their machines"
    assert task_of({"message": task, "reset": True}) == task_of(task)
    assert [task_of(each) for each in ("", {}, {"n": 7}, None, 7, ["text"])] == [None] * 6


@given(st.text(max_size=300))
def test_any_text_is_the_same_as_itself_if_it_says_enough(text: str) -> None:
    task = task_of(text)
    assert (task is None) == (not text)
    if task is not None:
        assert task.same(task, 1.0) == (len(task.words) >= 4)


def test_only_the_start_of_a_long_text_is_looked_at() -> None:
    start = "word " * (MAX_CHARS // 5)
    assert task_of(start + "number 7") == task_of(start)
