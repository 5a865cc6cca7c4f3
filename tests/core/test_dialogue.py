"""reflection_paralysis among agents: a dialogue that comes back to what was said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from otel_loopguard.core.dialogue import MAX_SPEAKERS, MAX_TEXTS, Dialogue
from otel_loopguard.core.model import Kind, Sighting
from otel_loopguard.core.records import Moment
from otel_loopguard.core.sketch import sketch
from tests.core.steps import PAGE, call, make_guard, observe, utterances

if TYPE_CHECKING:
    from collections.abc import Sequence

ASKS = (
    "To change the booking I need your customer number. Please provide it when you have it.",
    "Sure, for that I need your customer number. Please provide it when you have it.",
    "I need your customer number before I can go on. Please provide it when you can.",
    "I see, but to change the booking I need your customer number, so please look it up.",
    "You are welcome! I need your customer number. Please provide it when you have it.",
)
ANSWERS = (
    "The train to Leipzig leaves at nine from platform four.",
    "Seats by the window cost two euros more on that line.",
    "Dogs travel at half the price if they wear a muzzle.",
    "A ticket can be given back until one day before departure.",
    "Bicycles have to be booked at the counter in the hall.",
    "The dining car closes half an hour before the last stop.",
)
EXCUSES = ("I have lost it.", "Is there no other way?", "Maybe later.", "Not at hand.", "Hm.")


def talk(said: Sequence[str], kind: Kind = Kind.HANDOFF) -> list[Sighting]:
    steps: list[Sighting] = []
    for text, excuse in zip(said, EXCUSES * 2, strict=False):
        steps += [
            Sighting(kind, "clerk", args=excuse, agent="guest"),
            Sighting(Kind.MODEL, "model", result=text, agent="clerk"),
        ]
    return steps


def test_one_asks_for_the_same_in_other_words_and_nobody_acts() -> None:
    assert utterances(talk(ASKS)) == [(10, "reflection_paralysis", "warning")]


def test_answers_to_different_questions() -> None:
    assert utterances(talk(ANSWERS)) == []


def test_something_is_done_between() -> None:
    steps = talk(ASKS)
    done = call("look_up", "booking", f"{PAGE}1", agent="clerk")
    assert utterances([*steps[:6], done, *steps[6:]]) == []


def test_what_the_user_says_starts_over() -> None:
    assert utterances(talk(ASKS, Kind.USER)) == []


def test_it_is_bounded() -> None:
    dialogue, now = Dialogue(), Moment(None, 0, 0, 0, 0)
    for number in range(99):
        text = sketch(f"{number} is what agent {number} says of {number} and {number + 1} now")
        assert text is not None
        dialogue.hear(f"agent {number % 50}", text, now)
        dialogue.hear("one", text, now)
    assert len(dialogue._speakers) == MAX_SPEAKERS
    assert len(dialogue._speakers["one"].texts) == MAX_TEXTS


def test_a_run_without_hand_overs_keeps_none() -> None:
    guard = make_guard()
    observe([each for each in talk(ASKS) if each.kind is Kind.MODEL], guard)
    run = guard._runs.get("run")
    assert run is not None
    assert run.talk is not None
    assert run.talk.dialogue is None
    observe(talk(ASKS[:1]), guard)
    assert run.talk.dialogue is not None
    run.condense()
    assert run.talk.dialogue is None
