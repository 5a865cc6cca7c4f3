"""A retry that waits longer each time backs off; one that comes at a constant pace is a storm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from otel_loopguard.core.model import Kind
from tests.core.steps import SECOND, START, call, failure, seen, utterances

if TYPE_CHECKING:
    from collections.abc import Sequence

    from otel_loopguard.core.model import Sighting


def tries(*pauses: float, text: str = "503", **more: object) -> list[Sighting]:
    """Failures of one call, each so many seconds after the one before."""
    now = START
    steps: list[Sighting] = []
    for pause in (0, *pauses):
        now += int(pause * SECOND)
        steps.append(failure(text=text, start_ns=now, end_ns=now + SECOND // 10, **more))
        now = steps[-1].end_ns
    return steps


def first(steps: Sequence[Sighting]) -> tuple[int, str] | None:
    """When a guard first speaks, and how loud."""
    told = utterances(steps)
    return (told[0][0], told[0][2]) if told else None


@pytest.mark.parametrize(
    "pauses",
    [
        pytest.param((1, 2, 4, 8), id="doubled"),
        pytest.param((4, 9), id="squares"),
        pytest.param((2, 4, 6, 8), id="by two seconds more"),
        pytest.param((1, 2, 4, 8, 16), id="until they are waits"),
        pytest.param((0.5, 1, 2, 4), id="from half a second on"),
    ],
)
def test_who_backs_off_has_twice_as_long(pauses: tuple[float, ...]) -> None:
    assert first(tries(*pauses)) is None
    assert first(tries(*pauses, call_id="1")) is None
    assert first([*tries(*pauses), call("fetch")]) is None


def test_who_backs_off_for_ever_is_spoken_of_in_the_end() -> None:
    assert first(tries(1, 1.5, 2.25, 3.4, 5.1, 7.6, 11.5)) == (6, "warning")


@pytest.mark.parametrize(
    ("pauses", "at"),
    [
        pytest.param((2, 2, 2), 3, id="constant"),
        pytest.param((0, 0, 0), 3, id="none"),
        pytest.param((2, 2.2, 1.9, 2.1), 3, id="constant, but for a jitter"),
        pytest.param((8, 4, 2), 3, id="shorter each time"),
        pytest.param((0.01, 0.02, 0.04), 3, id="too short to be a pause"),
        pytest.param((1, 2, 4, 4, 4, 4), 5, id="as long as it gets"),
        pytest.param((1, 4, 1, 4), 4, id="no longer than before"),
    ],
)
def test_who_hammers_on(pauses: tuple[float, ...], at: int) -> None:
    assert first(tries(*pauses)) == (at, "warning")


def test_times_that_are_not_known_say_nothing() -> None:
    assert first([failure(), failure(), failure()]) == (3, "warning")


def test_what_a_model_works_for_is_no_pause() -> None:
    steps: list[Sighting] = []
    for n, each in enumerate(tries(2, 6, 14)):
        think = seen(Kind.MODEL, acts=True, start_ns=each.start_ns - n * SECOND * 2)
        steps += [think._replace(end_ns=each.start_ns), each]
    assert first(steps) == (6, "warning")


def test_other_arguments_are_no_retry() -> None:
    steps = [each._replace(args={"q": n}) for n, each in enumerate(tries(1, 2, 4, 8))]
    assert first(steps) == (4, "warning")


@pytest.mark.parametrize("wait", [call("sleep", 10, ""), call("wait_for_it", 9, "still not there")])
def test_a_tool_may_do_the_waiting(wait: Sighting) -> None:
    tried = [step for _ in range(9) for step in (failure("ssh"), wait)]
    assert first(tried) is None
    assert first([*tried, *tried]) == (20, "warning")


@pytest.mark.parametrize(
    ("steps", "at"),
    [
        pytest.param([failure("wait_for_it")] * 9, 3, id="the wait itself fails"),
        pytest.param([failure("ssh"), call("look", 10, "")] * 9, 7, id="nobody waits"),
        pytest.param([call("sleep", 9, ""), *[failure("ssh")] * 9], 4, id="one wait before"),
    ],
)
def test_failures_without_waits_between(steps: list[Sighting], at: int) -> None:
    told = [each for each in utterances(steps) if each[1] == "retry_storm"]
    assert told[0][0] == at
