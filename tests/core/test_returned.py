"""Returned: which results of one call say nothing new, and which do."""

from __future__ import annotations

import pytest

from otel_loopguard.core.evidence import MAX_SKETCHES
from otel_loopguard.core.fingerprint import Fingerprinter
from otel_loopguard.core.returned import MANY, MAX_KNOWN, MAX_WORDS, Returned, loose_form, words_of
from tests.core.steps import PAGE, call, make_guard, page, utterances

PRINTER = Fingerprinter(b"key")
LONG = " ".join(f"word{chr(97 + at // 26)}{chr(97 + at % 26)}" for at in range(100))


def taken(*texts: str) -> list[int]:
    sketch = Returned()
    return [sketch.take(words_of(text)) for text in texts]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([f"sent to the team as om_{n}, thank you" for n in range(5)], [0, 0, 2, 1, 1]),
        ([f"fn main ends here (read {n}x so far)" for n in range(5)], [0, 0, 2, 1, 1]),
        ([f'{{"runId": "r{n}", "jobId": "j{n}", "ok": true}}' for n in range(4)], [0, 0, 2, 1]),
        ([f'{{"id": "q{n}", "room": {{"id": "r{n}"}}, "said": "hi"}}' for n in range(4)], [0] * 4),
        ([f"{n} errors are left in this file" for n in range(9, 4, -1)], [0] * 5),
        ([f"downloaded {n}MB of 100MB so far" for n in range(5)], [0] * 5),
        ([f"page {n} of this book is open" for n in range(5)], [0] * 5),
        ([f"job a{n}" for n in range(5)], [0] * 5),
        (["the queue is at a1 now", "the queue is at a2 soon", "the queue is at a3 now"], [0] * 3),
        (["the state is red now", "the state is green now", "the state is blue now"], [0] * 3),
        ([f"{LONG} seen {n}" for n in range(3)], [0, 1, 1]),
        ([LONG[: 9 * n] for n in range(8, 11)], [0, 0, 0]),
        ([" ".join(LONG.split()[:n]) for n in range(60, 100)], [0] * 40),
        ([" ".join(LONG.split()[:n]) for n in range(100, 90, -1)], [0, *[1] * 9]),
        ([page(n) for n in range(3)], [0, 0, 0]),
    ],
)
def test_what_says_nothing_new(texts: list[str], expected: list[int]) -> None:
    assert taken(*texts) == expected


def test_new_is_what_none_of_the_results_said() -> None:
    half, rest = LONG[: len(LONG) // 2], LONG[len(LONG) // 2 :]
    assert taken(LONG, half, rest, half) == [0, 1, 1, 1]
    assert taken(half, rest, half) == [0, 0, 1]
    assert len(words_of(half)) > MANY


def test_the_very_same_words_say_nothing_new() -> None:
    assert taken(LONG, LONG, LONG) == [0, 1, 1]


def test_a_sketch_is_bounded() -> None:
    sketch = Returned()
    for number in range(30):
        words = words_of(" ".join(_word(1_000 * number + each) for each in range(1_000)))
        assert len(words) == MAX_WORDS + 1
        sketch.take(words)
    assert MAX_KNOWN - MAX_WORDS <= len(sketch._known) <= MAX_KNOWN


def _word(number: int) -> str:
    """A word for each number, without a digit."""
    return "".join("abcdefghij"[int(digit)] for digit in str(number))


def test_few_calls_have_a_sketch() -> None:
    guard = make_guard()
    for number in range(3 * MAX_SKETCHES):
        for result in ("one", "two"):
            guard.observe("run", call("search", number, f"{result} {PAGE}"))
    episode = guard._runs.get("run")
    assert episode is not None
    calls = episode._deeds.evidence.calls
    assert sum(each.sketch is not None for each in calls.values()) == MAX_SKETCHES
    episode.condense()
    assert not any(each.sketch for each in episode._deeds.evidence.calls.values())


# -- nearly the same arguments --------------------------------------------------------------------


def test_order_and_case_of_words_do_not_matter_in_a_loose_form() -> None:
    assert loose_form('{"q":"Red fish, blue"}') == loose_form('{"q":"blue red FISH"}')
    assert loose_form("a/b.py") != loose_form("b/a.py")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"q": "a", "reason": "first"}, {"q": "a", "reason": "once more"}),
        ({"q": "a", "timeout": 30}, {"timeout": 31, "q": "a"}),
        ({"input": {"q": "a", "displayName": "x"}}, {"input": {"q": "a"}}),
        ({"q": "a"}, '{"q": "a", "nonce": "x7"}'),
        ({"path": "a", "start": 1, "end": 9}, {"path": "a", "start": 9, "end": 1}),
    ],
)
def test_arguments_that_are_nearly_the_same(one: object, other: object) -> None:
    assert PRINTER.of_loose(one) == PRINTER.of_loose(other)
    assert PRINTER.of_args(one) != PRINTER.of_args(other)


@pytest.mark.parametrize("name", ["page", "cursor", "offset", "id", "line", "date", "query"])
def test_arguments_that_are_not(name: str) -> None:
    assert PRINTER.of_loose({name: "1"}) != PRINTER.of_loose({name: "2"})
    steps = [call("read", {name: n}, "the same body of the same file") for n in range(5)]
    assert utterances(steps) == []


@pytest.mark.parametrize("value", [{"q": "long " * 500}, object(), {1, object()}])
def test_arguments_without_a_loose_form(value: object) -> None:
    assert PRINTER.of_loose(value) is None
