"""truncation_loop and context_rot, and the neighbours that are left alone."""

from __future__ import annotations

import pytest

from otel_loopguard.core.model import MISSING, Kind, Sighting
from tests.core.steps import PAGE, Spoken, call, failure, observe, seen, utterances

LONG = (
    "Here is the whole of the page: <html><head><title>Opening hours</title></head><body>The shop "
    "is open from nine to five on all days but Sunday"
)
CUT, ROT = "truncation_loop", "context_rot"


def cut(text: object = LONG, finish: str = "length", **more: object) -> Sighting:
    """An answer that was cut off."""
    return seen(Kind.MODEL, result=text, finish=finish, **more)


def says(text: object = MISSING, **more: object) -> Sighting:
    return seen(Kind.MODEL, result=text, **more)


def broken() -> Sighting:
    """A call whose arguments are not whole."""
    return failure("write", text="missing 1 required positional argument: 'content'")


def compact(before: int, after: int) -> Sighting:
    return seen(Kind.COMPACT, tokens=before, output_tokens=after)


def spoken(pattern: str, *steps: Sighting) -> list[Spoken]:
    return [each for each in utterances(steps) if each[1] == pattern]


@pytest.mark.parametrize(
    "finish",
    ["length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_length"],
)
def test_the_same_answer_is_cut_off_again(finish: str) -> None:
    steps = [cut(LONG + " and" * n, finish) for n in range(5)]
    assert spoken(CUT, *steps) == [(2, CUT, "warning"), (4, CUT, "critical")]


def test_nothing_came_before_the_limit() -> None:
    assert spoken(CUT, *[cut("")] * 2) == [(2, CUT, "warning")]


def test_without_texts_the_word_of_the_provider_is_enough() -> None:
    assert spoken(CUT, *[cut(MISSING, output_tokens=4096)] * 2) == [(2, CUT, "warning")]


def test_answers_of_one_large_size_are_cut_off_whatever_the_provider_says() -> None:
    steps = [
        step for n in range(3) for step in (says(LONG + " and" * n, output_tokens=8192), broken())
    ]
    assert spoken(CUT, *steps)[0] == (3, CUT, "warning")


def test_each_says_something_new() -> None:
    parts = [
        "Chapter one tells of a sailor who left the harbour early and was not seen for a year.",
        "In the second chapter his sister takes up work as a clerk and saves for a boat.",
        "The third one is set on an island; nobody there knows the newcomers' language.",
        "Chapter four, the longest, has her cross the strait in winter against everybody's advice.",
        "At last, in chapter five, both are found by the ferry on a morning without any wind.",
    ]
    assert spoken(CUT, *map(cut, parts[:4])) == []
    assert spoken(CUT, *map(cut, parts)) == [(5, CUT, "warning")]


def test_who_lets_a_model_write_a_word_wants_no_more() -> None:
    label = seen(Kind.MODEL, result="positive", finish="length", output_tokens=1)
    assert spoken(CUT, *[label] * 9) == []
    thinks = seen(Kind.MODEL, result="positive", finish="length", output_tokens=900)
    assert spoken(CUT, *[thinks] * 2) == [(2, CUT, "warning")]


def test_new_answers_whose_calls_come_out_broken() -> None:
    parts = ["I write the parser first, all of it.", "Now the lexer, in one file with its tests."]
    steps = [step for part in parts for step in (cut(part), broken())]
    assert spoken(CUT, *steps) == [(4, CUT, "warning")]


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([cut()], id="once"),
        pytest.param([cut(), broken()], id="once, and a broken call"),
        pytest.param([step for _ in range(5) for step in (cut(), says("Done, all is written."))],
                     id="the next answer is whole"),
        pytest.param([step for n in range(5) for step in (cut(), call(args=n, result=f"row {n}"))],
                     id="the call succeeds"),
        pytest.param([step for _ in range(5) for step in (cut(), seen(Kind.USER))],
                     id="the user says to go on"),
        pytest.param([says(f"{LONG} {n}", output_tokens=2_000 + n) for n in range(2)],
                     id="long answers of other sizes"),
        pytest.param([says("Yes, it is.", output_tokens=12), says("No, not so.", output_tokens=12)],
                     id="short answers of one size"),
        pytest.param([cut(error="Timeout")] * 5, id="failed calls of the model"),
    ],
)  # fmt: skip
def test_what_is_no_truncation_loop(steps: list[Sighting]) -> None:
    assert spoken(CUT, *steps) == []


# -- context_rot ----------------------------------------------------------------------------------


def test_compactions_that_free_next_to_nothing() -> None:
    steps = [step for n in range(4) for step in (compact(100_000, 99_500 + n), says("Going on."))]
    assert spoken(ROT, *steps) == [(3, ROT, "warning"), (7, ROT, "critical")]


def files(*numbers: int) -> list[Sighting]:
    return [call("read", n, f"file {n}: {PAGE}") for n in numbers]


def test_the_same_is_fetched_again_after_each_compaction() -> None:
    lap = [*files(1, 2, 3), compact(90_000, 20_000)]
    found = spoken(ROT, *lap * 5)
    assert found == [(11, ROT, "warning"), (19, ROT, "critical")]


def test_its_evidence_names_what_it_counts() -> None:
    lap = [*files(1, 2, 3), compact(90_000, 20_000)]
    laps = [lap * 3, [compact(90_000, 89_900)] * 2]
    evidence = [
        each.finding.evidence.partition(" in a row")[0]
        for steps in laps
        for observation in observe(steps)
        for each in observation.utterances
        if each.finding.pattern.value == ROT
    ]
    assert evidence == ["after 2 compactions", "2 compactions"]


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([compact(100_000, 99_900)], id="once"),
        pytest.param([compact(100_000, 40_000)] * 9, id="each frees much"),
        pytest.param([compact(100_000, 99_900), compact(100_000, 10_000)] * 4, id="in turn"),
        pytest.param([compact(0, 0)] * 9, id="sizes not known"),
        pytest.param([*files(1, 2, 3), compact(90_000, 9_000), *files(1, 2, 3, 4, 5)],
                     id="read again once"),
        pytest.param([step for n in range(0, 60, 3) for step in
                      (*files(n, n + 1, n + 2), compact(90_000, 9_000))], id="other files each"),
        pytest.param([step for _ in range(5) for step in (*files(1, 2), compact(90_000, 9_000))],
                     id="two files each time"),
    ],
)  # fmt: skip
def test_what_is_no_context_rot(steps: list[Sighting]) -> None:
    assert spoken(ROT, *steps) == []


def test_after_a_compaction_a_turn_may_read_less() -> None:
    same = "I will now look for the file and report what it says."
    steps = [
        says(same, tokens=5_000, output_tokens=10),
        compact(6_000, 500),
        says(same, tokens=900, output_tokens=10),
        says(same, tokens=910, output_tokens=10),
    ]
    assert spoken("reflection_paralysis", *steps) == [(4, "reflection_paralysis", "warning")]


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ([4096, 8192, 12_288], []),  # given more room each time
        ([4096, 8192, 8192], [(3, CUT, "warning")]),  # and again no further
        ([4096, 5000], [(2, CUT, "warning")]),
    ],
)
def test_who_is_given_more_room_starts_anew(sizes: list[int], told: list[Spoken]) -> None:
    assert spoken(CUT, *[cut("", output_tokens=size) for size in sizes]) == told
