"""One instruction with another thing in it each time is a list that is worked through."""

from __future__ import annotations

import pytest

from otel_loopguard.core import series
from otel_loopguard.core.fingerprint import Fingerprinter
from otel_loopguard.core.model import Kind, Sighting
from otel_loopguard.core.series import Series
from tests.core.steps import utterances

THINGS = (
    "harbour",
    "quota",
    "ledger",
    "beacon",
    "tariff",
    "clinic",
    "shelves",
    "turbine",
    "roster",
)
WRITE = "Write the section about the {} and use a neutral tone in at most three paragraphs."


def hand(text: str, caller: str = "boss", target: str = "worker") -> Sighting:
    return Sighting(Kind.HANDOFF, target, args=text, agent=caller)


def listed(*texts: str) -> list[bool]:
    found = Series()
    return [found.another(Fingerprinter(b"k").of_subject(text)) for text in texts]


def test_it_takes_two_to_know_a_series() -> None:
    assert listed(*map(WRITE.format, THINGS)) == [False, False, *[True] * 7]


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param([WRITE.format("harbour")] * 5, id="the same"),
        pytest.param(map(WRITE.format, ("harbour", "quota") * 3), id="two in turns"),
        pytest.param(
            [
                "Please write the section about the harbour in a neutral tone.",
                "Write now the section about the harbour in a neutral tone.",
                "Write the section about the harbour in a fully neutral tone, please.",
                "Write the whole section about the harbour in a neutral tone.",
            ],
            id="other words in other places",
        ),
        pytest.param(["Write it.", "Now read it.", "Go on.", ""], id="of next to no words"),
        pytest.param(
            [WRITE.format(" ".join(f"{each}{n}" for n in range(5))) for each in THINGS],
            id="so many words are more than a thing",
        ),
    ],
)
def test_what_is_no_series(texts: list[str]) -> None:
    assert not any(listed(*texts))


def test_a_series_may_be_broken_off_and_begun_again() -> None:
    texts = [WRITE.format(each) for each in THINGS]
    assert listed(*texts[:3], "", *texts[3:6]) == [*[False] * 2, True, *[False] * 3, True]


def test_what_is_remembered_is_bounded() -> None:
    found = Series()
    for n in range(400):
        found.another(
            Fingerprinter(b"k").of_subject(
                f"Write about the thing called {chr(97 + n % 26) * 4}{n:x}"
            )
        )
    assert len(found._known) < 2 * series.MAX_KNOWN  # pyright: ignore[reportPrivateUsage]


def delegates(texts: list[str], answer: str) -> list[Sighting]:
    """Each text is handed over, a short answer comes, and it is handed back."""
    steps: list[Sighting] = []
    for n, text in enumerate(texts):
        says = " ".join(f"{each}{chr(97 + n)}" for each in THINGS[:6])
        steps += [
            hand(text),
            Sighting(Kind.MODEL, "model", result=says, agent="worker"),
            hand(answer.format(THINGS[n % 9]), "worker", "boss"),
        ]
    return steps


@pytest.mark.parametrize("answer", ["done", "The section about the {} is there."])
def test_a_boss_who_gives_out_one_thing_after_the_other_is_left_alone(answer: str) -> None:
    assert utterances(delegates([WRITE.format(each) for each in THINGS], answer)) == []
    assert utterances([hand(WRITE.format(each)) for each in THINGS]) == []


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param([WRITE.format("harbour")] * 9, id="the same thing"),
        pytest.param([WRITE.format(each) for each in ("harbour", "quota") * 5], id="two in turns"),
    ],
)
def test_a_boss_who_gives_out_the_same_is_not(texts: list[str]) -> None:
    told = utterances(delegates(texts, "done"))
    assert {pattern for _, pattern, _ in told} == {"delegation_loop"}
