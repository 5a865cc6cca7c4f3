"""Cycles: periods 1 to 8 in any rotation, rounds as sets, unknown parts equal to nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard.core.cycles import MAX_PERIOD, MAX_ROUND, Cycle, Cycles
from otel_loopguard.core.records import Moment


def moment(at: int) -> Moment:
    return Moment(f"span-{at}", at, at * 10, at * 100, 0)


def cycles_of(calls: str | list[str | None]) -> Cycles:
    """One round a letter; None is a round whose result is unknown."""
    cycles = Cycles()
    for at, letter in enumerate(calls, 1):
        cycles.add(letter or "?", "args", letter, moment(at), opens=True)
    return cycles


def run_lengths(rounds: list[str | None]) -> list[int]:
    """For each period: how many of the newest rounds equal the one a period before."""
    lengths: list[int] = []
    for period in range(1, MAX_PERIOD + 1):
        length = 0
        for at in range(len(rounds) - 1, period - 1, -1):
            if rounds[at] is None or rounds[at] != rounds[at - period]:
                break
            length += 1
        lengths.append(length)
    return lengths


@given(st.lists(st.sampled_from(["a", "b", "c", None]), max_size=60))
def test_the_counters_are_those_of_the_whole_history(rounds: list[str | None]) -> None:
    cycles = cycles_of(rounds)
    lengths = run_lengths(rounds)
    for period, length in enumerate(lengths, 1):
        assert cycles.laps(period) == (length // period + 1 if length >= period else 0)
    whole = [
        (length + period, -period) for period, length in enumerate(lengths, 1) if length >= period
    ]
    longest = cycles.longest(2)
    assert (-longest.period if longest else None) == (max(whole)[1] if whole else None)


@pytest.mark.parametrize("period", range(1, MAX_PERIOD + 1))
def test_each_period_in_each_rotation(period: int) -> None:
    letters = "abcdefgh"[:period]
    for shift in range(period):
        lap = letters[shift:] + letters[:shift]
        cycle = cycles_of("xyz" + lap * 3).longest(3)
        assert cycle is not None
        assert (cycle.period, cycle.laps, cycle.calls) == (period, 3, period)
        assert [round_[0][0] for round_ in cycle.lap] == list(lap)


def test_a_lap_that_is_not_whole_does_not_count() -> None:
    assert cycles_of("abcab").longest(2) is None
    assert cycles_of("abcabc").laps(3) == 2
    assert cycles_of("abcabca").laps(3) == 2


def test_a_period_over_eight_is_none() -> None:
    assert cycles_of("abcdefghi" * 4).longest(2) is None


@pytest.mark.parametrize(("rounds", "period"), [("aaaa", 1), ("abababab", 2), ("aabaabaa", 3)])
def test_the_cycle_that_reaches_back_furthest_is_the_real_one(rounds: str, period: int) -> None:
    cycle = cycles_of(rounds).longest(2)
    assert cycle is not None
    assert cycle.period == period


def test_what_is_unknown_equals_nothing() -> None:
    assert cycles_of([None] * 10).longest(2) is None
    assert cycles_of(["a", None, "a", None, "a", None]).longest(2) is None
    unknown_args = Cycles()
    for at in range(1, 6):
        unknown_args.add("a", None, "r", moment(at), opens=True)
    assert unknown_args.longest(2) is None


def test_the_waste_is_measured_from_the_first_lap() -> None:
    cycle = cycles_of("xyabcabc").longest(2)
    assert cycle is not None
    assert (cycle.first.span, cycle.first.iteration) == ("span-3", 3)
    assert (cycle.first.end_ns, cycle.first.tokens) == (50, 500)


def rounds_of(rounds: list[list[tuple[str, str]]]) -> Cycles:
    """One list a round: the calls and their results."""
    cycles = Cycles()
    at = 0
    for calls in rounds:
        for index, (call, result) in enumerate(calls):
            at += 1
            cycles.add(call, "args", result, moment(at), opens=index == 0)
    return cycles


def test_a_round_is_a_set() -> None:
    one, other = [("a", "1"), ("b", "2")], [("b", "2"), ("a", "1"), ("a", "1")]
    cycle = rounds_of([one, other, one]).longest(2)
    assert cycle is not None
    assert (cycle.period, cycle.laps, cycle.calls) == (1, 3, 2)
    assert cycle.first.span == "span-1"
    assert cycle.first.end_ns == 20


def test_a_round_that_grows_is_no_longer_equal_to_a_smaller_one() -> None:
    assert rounds_of([[("a", "1")], [("a", "1")]]).laps(1) == 2
    assert rounds_of([[("a", "1")], [("a", "1"), ("b", "2")]]).laps(1) == 0


def test_another_attempt_replaces_the_result() -> None:
    cycles = rounds_of([[("a", "1")], [("a", "failed"), ("a", "1")]])
    assert cycles.laps(1) == 2


def test_a_growing_round_ends_with_its_last_call() -> None:
    cycles = Cycles()
    cycles.add("a", "args", "1", moment(5), opens=True)
    cycles.add("b", "args", "2", moment(3), opens=False)
    cycles.add("a", "args", "1", moment(6), opens=True)
    cycles.add("b", "args", "2", moment(7), opens=False)
    cycle = cycles.longest(2)
    assert cycle is not None
    assert cycle.first.end_ns == 50


def test_a_round_that_is_too_large_equals_nothing() -> None:
    size = [(str(each), "1") for each in range(MAX_ROUND)]
    assert rounds_of([size, size]).laps(1) == 2
    size += [("one more", "1"), ("and more", "1")]
    assert rounds_of([size, size]).laps(1) == 0


def cycle_of(*vague: bool | None) -> Cycle:
    """Two laps of rounds of which each one's result is vague, exact, or says nothing (None)."""
    cycles = Cycles()
    for at in range(2 * len(vague)):
        place = at % len(vague)
        cycles.add(str(place), "args", "r", moment(at), opens=True, vague=vague[place])
    cycle = cycles.longest(2)
    assert cycle is not None
    return cycle


def test_a_cycle_is_masked_if_most_of_its_results_are() -> None:
    for exact in [(False, False), (True, False), (True, False, False), (False, None)]:
        assert not cycle_of(*exact).masked
    for masked in [(True, None), (True, True), (True, True, False), (True, None, None)]:
        assert cycle_of(*masked).masked


def test_only_the_newest_lap_says_whether_a_cycle_is_masked() -> None:
    cycles = Cycles()
    for at, vague in enumerate([True, True, True, True, False, False]):
        cycles.add("ab"[at % 2], "args", "r", moment(at), opens=True, vague=vague)
    cycle = cycles.longest(2)
    assert cycle is not None
    assert not cycle.masked


def test_one_call_in_turns_is_a_masked_cycle() -> None:
    cycles = Cycles()
    for at in range(6):
        cycles.add("a", "args", "xy"[at % 2], moment(at), opens=True)
    cycle = cycles.longest(2)
    assert cycle is not None
    assert (cycle.period, cycle.masked) == (2, True)


def test_after_clear_nothing_repeats() -> None:
    cycles = cycles_of("aaaa")
    cycles.clear()
    cycles.add("a", "args", "a", moment(9), opens=False)
    assert cycles.longest(2) is None
    cycles.add("a", "args", "a", moment(10), opens=True)
    cycle = cycles.longest(2)
    assert cycle is not None
    assert cycle.first.span == "span-9"
