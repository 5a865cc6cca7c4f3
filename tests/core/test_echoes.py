"""result_stagnation in turns: results that follow each other, and their neighbours."""

from __future__ import annotations

import random
from itertools import count
from typing import TYPE_CHECKING

import pytest

from otel_loopguard.core.action import Action
from otel_loopguard.core.decision import Verdict
from otel_loopguard.core.echoes import MOST
from otel_loopguard.core.model import Kind, Outcome
from tests.core.steps import (
    SECOND,
    START,
    Spoken,
    call,
    failure,
    make_guard,
    observe,
    seen,
    utterances,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from otel_loopguard.core.model import Sighting

STAGNATION = "result_stagnation"
WARNED = (24, STAGNATION, "warning")
DRAFT = "The draft names the branch in Ulm and its opening hours; it is ready for a review of {}."
ADVICE = "The review asks for another draft, since the branch in Ulm is not named as in {}."


def spoken(*steps: Sighting) -> list[Spoken]:
    return [each for each in utterances(steps) if each[1] == STAGNATION]


def laps(number: int, *, fresh: bool = True, wait: int = 0) -> Iterator[Sighting]:
    """Two agents that hand each other two texts each, with other arguments each time."""
    attempts = count()
    for lap in range(number):
        for place, text in enumerate(("hours", "hours", "rent", "rent")):
            name, said = (("draft", DRAFT), ("review", ADVICE))[place % 2]
            attempt = next(attempts) if fresh else lap % 2
            at = START + (4 * lap + place) * (wait or 1) * SECOND
            args = f"{text}, attempt {attempt}"
            yield call(name, args, said.format(text), start_ns=at, end_ns=at + 1)


def test_two_tools_that_hand_each_other_the_same_texts() -> None:
    assert spoken(*laps(8)) == [WARNED]


def test_what_is_learned_now_and_then_delays_it() -> None:
    steps = list(laps(14))
    steps.insert(
        10, call("list", "n", "One more branch was opened in Bonn, with hours of its own.")
    )
    ((at, *_),) = spoken(*steps)[:1]
    assert at > 24


def test_a_look_at_something_known_in_between_does_not_end_it() -> None:
    steps = list(laps(9))
    for at in (3, 14, 26):
        steps.insert(at, call("list", "n", "The branches are in Ulm and Bonn, and nowhere else."))
    assert len(spoken(*steps)) == 1


def test_the_calls_of_one_round_are_one() -> None:
    rounds = [step._replace(round=f"r{n // 2}") for n, step in enumerate(laps(9))]
    assert spoken(*rounds) == []


def test_both_tools_are_held_back_whatever_their_arguments() -> None:
    guard = make_guard(action=Action.NUDGE)
    observe(laps(6), guard)
    for name in ("draft", "review"):
        key = guard.fingerprinter.of_args({"q": "never asked"})
        assert guard.decide("run", name, key).verdict is Verdict.NUDGE
    key = guard.fingerprinter.of_args({"q": "hours"})
    assert guard.decide("run", "search", key).verdict is Verdict.GO


def sweep(tools: tuple[str, ...], number: int, seed: int) -> Iterator[Sighting]:
    """Many things looked at, each with one of a few answers."""
    chance = random.Random(seed)
    answers = [f"The {tool} of it is {each} in the main warehouse." for tool in tools
               for each in ("in order", "missing", "on its way")]  # fmt: skip
    for n in range(number):
        for tool in tools:
            fitting = [each for each in answers if tool in each]
            yield call(tool, f"item {n}", chance.choice(fitting))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("tools", [("stock",), ("stock", "price")])
def test_a_sweep_over_many_things_is_work(tools: tuple[str, ...], seed: int) -> None:
    assert spoken(*sweep(tools, 30, seed)) == []


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([*laps(5)], id="few laps"),
        pytest.param([s._replace(result="saved") for s in laps(9)], id="mere acknowledgements"),
        pytest.param([s._replace(outcome=Outcome.PENDING) for s in laps(9)], id="told to wait"),
        pytest.param([*laps(9, wait=60)], id="looked at once a minute"),
        pytest.param(
            [x for s in laps(9) for x in (s, failure("fetch", "n"))], id="failures in between"
        ),
        pytest.param(
            [x for n, s in enumerate(laps(9)) for x in (s, call("list", n, f"{n} {DRAFT}"))],
            id="news in between",
        ),
        pytest.param(
            [x for n, s in enumerate(laps(9)) for x in (s, call("put", n, "put"))],
            id="changes in between",
        ),
        pytest.param([x for s in laps(9) for x in (s, seen(Kind.USER))], id="a user who speaks"),
    ],
)
def test_neighbours_that_are_left_alone(steps: list[Sighting]) -> None:
    assert spoken(*steps) == []


def test_equal_calls_are_a_cycle_and_told_as_one() -> None:
    steps = [s._replace(args={"q": (s.action, (s.result or "")[-6:])}) for s in laps(9)]  # type: ignore[index]
    assert {each[1] for each in utterances(steps)} == {"tool_oscillation"}


def test_a_round_that_is_too_wide_is_not_told() -> None:
    places = MOST + 2
    steps = [
        call(f"tool {n % places % 2}", n, DRAFT.format(n % places)) for n in range(10 * places)
    ]
    assert spoken(*steps) == []
