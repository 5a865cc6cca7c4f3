"""Episode: what is counted step by step is what the whole history says; evidence before counts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otel_loopguard.core.cycles import MAX_PERIOD
from otel_loopguard.core.episode import CONDENSED, Episode
from otel_loopguard.core.model import Kind, Outcome, Severity, Source, Status, Step
from otel_loopguard.core.records import Alert, Moment
from tests.core.reference import Facts, History, is_bare
from tests.core.steps import SECOND, START, episode_of, other, tool

END_OF = {
    "ok": (Outcome.OK, 500, "page"),
    "other": (Outcome.OK, 500, "other page"),
    "bare": (Outcome.OK, 8, "7"),
    "ack": (Outcome.ACK, 2, "ok"),
    "blank": (Outcome.EMPTY, 0, "nothing"),
    "empty": (Outcome.EMPTY, 2, "[]"),
    "small": (Outcome.OK, 90, "row"),
    "pending": (Outcome.PENDING, 9, "wait"),
    "error": (Outcome.ERROR, 40, "refused"),
    "no text": (Outcome.ERROR, 0, None),
    "unknown": (Outcome.UNKNOWN, 0, None),
}
BLANK = tool("shell", "a", "", size=0, outcome=Outcome.EMPTY)
NONE = tool("search", "a", "[]", size=2, outcome=Outcome.EMPTY)


@st.composite
def histories(draw: st.DrawFn) -> list[Step]:
    """Steps of a small alphabet, so that much of it repeats."""
    now, steps = START, []
    ends = draw(st.lists(st.sampled_from(sorted(END_OF)), min_size=1, max_size=4))
    for _ in range(draw(st.integers(1, 25))):
        kind = draw(st.sampled_from("ttttttttmuer"))
        start = now + draw(st.sampled_from([-1, 0, 1, 1, 4, 25, 150])) * SECOND
        now = max(now, start) + draw(st.sampled_from([0, 2, 30])) * SECOND
        times = {"start_ns": start, "end_ns": now}
        if kind == "t":
            outcome, size, result = END_OF[draw(st.sampled_from(ends))]
            step = tool(
                draw(st.sampled_from(["search", "search", "shell", "edit"])),
                draw(st.sampled_from(["a", "a", "a", "b", None])),
                result,
                outcome=outcome,
                size=size,
                round=draw(st.sampled_from([None, None, None, "one", "two"])),
                error=draw(st.sampled_from([None, "TimeoutError"])),
                loose_key=draw(st.sampled_from([None, None, "a", "b"])),
                **times,
            )
        else:
            kinds = {"m": Kind.MODEL, "u": Kind.USER, "e": Kind.EFFECT, "r": Kind.RETRY}
            step = other(kinds[kind], tokens=7 * (kind == "m"), **times)
        steps.append(step)
    return steps


def facts_of(episode: Episode) -> Facts:
    call, loose, tool_record = episode.call, episode.loose, episode.tool
    assert call is not None
    assert tool_record is not None
    failures, fresh = tool_record.failures, tool_record.fresh
    return Facts(
        iteration=episode.iteration,
        consecutive=episode.consecutive,
        seen=call.seen,
        same=call.same,
        repeats=call.repeats,
        weight=pytest.approx(call.weight),  # type: ignore[arg-type]
        doubtful=call.doubtful,
        first_iteration=call.first.iteration,
        results=tool_record.results.count
        if tool_record.results
        else int(fresh is not None and not is_bare(fresh[0])),
        loose=(loose.repeats, pytest.approx(loose.weight), loose.doubtful)  # type: ignore[arg-type]
        if loose
        else (0, 0.0, False),
        failures=failures.count if failures else 0,
        failure_weight=pytest.approx(failures.weight if failures else 0.0),  # type: ignore[arg-type]
        laps=[episode._deeds.cycles.laps(period) for period in range(1, MAX_PERIOD + 1)],
        tokens=episode.tokens,
    )


@settings(max_examples=300)
@given(histories())
def test_step_by_step_is_the_same_as_all_at_once(steps: list[Step]) -> None:
    episode = Episode("run")
    for count, step in enumerate(steps, 1):
        assert episode.add(step) is (step.kind is not Kind.RETRY)
        if step.kind is Kind.TOOL:
            assert facts_of(episode) == History(steps[:count]).facts()
        else:
            assert episode.call is episode.tool is episode.cycle is None


# -- what is equal, and what is progress ----------------------------------------------------------


def weight(*steps: Step) -> float:
    call = episode_of(steps).call
    assert call is not None
    return call.weight


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([tool(), tool(), tool()], 3),
        ([tool(result=None)] * 4, 3.25),
        ([tool(result=None), tool("read", "b", None)] * 4, 2.5),
        ([tool(result=None), tool(result=None), other(Kind.RETRY), tool(result=None)], 1),
        ([tool(result=None), tool(result="r"), tool(result=None)], 1),
        ([tool(args=None)] * 3, 1),
        ([tool(result="1"), tool(result="2"), tool(result="3")], 1),
        ([tool(), tool(), tool("read", "b", "new"), tool()], 2.45),
        ([tool(), *[tool("read", str(n), f"new {n}") for n in range(3)], tool()], 1.45),
        ([tool(), *[tool("read", str(n), f"new {n}") for n in range(4)], tool()], 1),
        ([tool(size=8), tool("read", "b", "new"), tool(size=8)], 1),
        ([tool(), *[tool("read", "b", "old") for n in range(30)], tool()], 1),
        ([tool(agent="a"), tool(agent="b"), tool(agent="a")], 2),
        ([tool("read", "b", "old"), tool(), tool(), tool("read", "b", "old"), tool()], 3),
        ([tool(), tool(), other(Kind.EFFECT), tool()], 1),
        ([tool(), tool(), other(Kind.USER), tool()], 1),
        ([tool(), tool(), other(Kind.MODEL), tool()], 3),
        ([other(Kind.MODEL), tool(), tool(), tool()], 2.5),
        ([other(Kind.MODEL), tool(), other(Kind.MODEL), tool(), other(Kind.MODEL), tool()], 3),
        ([other(Kind.MODEL), tool("read", "b", "old"), tool(), tool(), tool()], 3),
        ([step for n in range(4) for step in (BLANK, tool("read", "b", f"new {n}"))] + [BLANK], 1),
        ([step for n in range(2) for step in (NONE, tool("read", "b", f"new {n}"))] + [NONE], 1.9),
        ([tool(), tool(), other(Kind.RETRY), tool()], 3),
    ],
)
def test_repeats_add_up_only_while_nothing_is_learned(steps: list[Step], expected: float) -> None:
    assert weight(*steps) == expected


@pytest.mark.parametrize(
    ("name", "outcome", "size", "between"),
    [
        ("shell", Outcome.ACK, 2, 1),
        ("shell", Outcome.EMPTY, 0, 1),
        ("shell", Outcome.OK, 21, 1),  # "1 occurrence replaced"
        ("shell", Outcome.OK, 500, 3),  # a page that was seen before
        ("shell", Outcome.PENDING, 7, 3),
        ("shell", Outcome.ERROR, 7, 3),
        ("edit", Outcome.OK, 500, 3),
        ("edit", Outcome.ERROR, 7, 3),
    ],
)
def test_a_new_call_that_says_little_may_have_changed_something(
    name: str, outcome: Outcome, size: int, between: float
) -> None:
    def edit(args: str) -> Step:
        return tool(name, args, "same", outcome=outcome, size=size)

    test = tool("test", "all", "2 failed")
    assert weight(edit("0"), test, edit("1"), test, edit("2"), test) == pytest.approx(between)
    assert weight(edit("0"), edit("1"), test, edit("1"), test, edit("1"), test) == 3


def test_results_equal_but_for_volatile_values_count_half() -> None:
    steps = [tool(result="0")] + [tool(result=str(each), masked_key="m") for each in range(1, 6)]
    assert [weight(*steps[: count + 1]) for count in range(6)] == [1, 1, 1.5, 2, 2.5, 3]


def test_an_equal_result_keeps_what_is_known_of_its_volatile_values() -> None:
    masked = [tool(result="1", masked_key="m"), tool(result="1"), tool(result="2", masked_key="m")]
    assert weight(tool(result="0"), *masked) == 2.5
    assert weight(tool(result="0"), *masked[:2], tool(result="2", masked_key="n")) == 1


def test_volatile_values_do_not_break_a_cycle() -> None:
    times = [tool(result=str(each), masked_key="m" if each else None) for each in range(4)]
    for size, masked in (500, False), (2, True):
        steps = [step for time in times for step in (time, tool("read", "b", "same", size=size))]
        cycle = episode_of(steps).cycle
        assert cycle is not None
        assert (cycle.period, cycle.laps, cycle.masked) == (2, 3, masked)


@pytest.mark.parametrize(
    ("size", "pause", "worked", "expected"),
    [
        *[(90, 14, 0, 3.0), (90, 16, 0, 1.3), (90, 25, 11, 3.0), (90, 26, 11, 1.3)],
        *[(900, 14, 0, 3.0), (900, 16, 0, 1.9), (900, 25, 11, 3.0), (900, 26, 11, 1.9)],
    ],
)
def test_what_comes_again_after_a_wait_weighs_less_and_least_if_it_says_little(
    size: int, pause: int, worked: int, expected: float
) -> None:
    now, steps = START, []
    for _ in range(3):
        model = other(Kind.MODEL, start_ns=now, end_ns=now + worked * SECOND)
        now += pause * SECOND
        steps += [model, tool(size=size, start_ns=now, end_ns=now + SECOND)]
        now += SECOND
    assert weight(*steps) == pytest.approx(expected)


def test_unknown_times_are_no_wait() -> None:
    assert weight(tool(), tool(start_ns=START, end_ns=START)) == 2


# -- rounds ---------------------------------------------------------------------------------------


def iterations(*steps: Step) -> list[int]:
    episode = Episode("run")
    return [(episode.add(step), episode.iteration)[1] for step in steps]


def at(start: int, end: int, **more: object) -> Step:
    return tool(start_ns=START + start, end_ns=START + end, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([tool(round="1"), tool(round="1"), tool(round="2")], [1, 1, 2]),
        ([at(0, 10), at(5, 8), at(9, 20), at(20, 30)], [1, 1, 1, 2]),
        ([at(0, 10, round="1"), at(5, 8, round="2")], [1, 2]),
        ([at(0, 10, round="1"), at(5, 8), at(50, 60, round="1"), at(70, 80)], [1, 1, 1, 2]),
        ([at(0, 100, round="1"), at(5, 8, round="2"), at(50, 60)], [1, 2, 3]),
        ([at(0, 0), at(0, 0)], [1, 2]),
        ([tool(), tool()], [1, 2]),
    ],
)
def test_what_is_one_round(steps: list[Step], expected: list[int]) -> None:
    assert iterations(*steps) == expected


def test_duplicates_in_a_round_count_once() -> None:
    rounds = [tool(round=str(number)) for number in range(3) for _ in range(4)]
    episode = episode_of(rounds)
    assert episode.call is not None
    assert (episode.call.weight, episode.call.same, episode.call.seen) == (3, 3, 12)
    assert episode.tool is not None
    assert episode.tool.results is not None
    assert episode.tool.results.count == 3
    assert (episode.iteration, episode.consecutive) == (3, 12)


# -- one call, shown or tried more than once ------------------------------------------------------


def test_a_call_that_somebody_else_shows_is_not_counted() -> None:
    episode = Episode("run")
    assert episode.add(tool(call_id="1", source=Source.HOOK))
    assert not episode.add(tool(call_id="1", args="other form", source=Source.MESSAGES))
    assert not episode.add(tool(call_id="1", source=Source.SPAN))
    assert episode.call is None
    assert episode.add(tool(call_id="2", source=Source.MESSAGES))
    assert episode.iteration == 2
    assert episode.newest is not None
    assert episode.newest.call_id == "2"


def test_a_second_source_may_be_late_by_one_response() -> None:
    episode = episode_of([tool(call_id="1"), other(Kind.MODEL)])
    assert not episode.add(tool(call_id="1", source=Source.SPAN))
    assert episode.add(tool("other", call_id="1", source=Source.SPAN))
    episode.add(other(Kind.MODEL))
    episode.add(other(Kind.MODEL))
    assert episode.add(tool(call_id="1", source=Source.SPAN))


def test_another_attempt_is_no_step_but_a_failure() -> None:
    attempt = tool(result="refused", outcome=Outcome.ERROR, call_id="1")
    episode = Episode("run")
    assert [episode.add(attempt) for _ in range(3)] == [True, False, False]
    assert episode.iteration == 1
    assert episode.tool is not None
    assert episode.tool.failures is not None
    assert episode.tool.failures.count == 3
    assert not episode.add(tool(call_id="1"))
    assert episode.tool.failures is None
    assert episode.call is not None
    assert (episode.call.seen, episode.call.weight) == (1, 1)


def test_an_attempt_that_gives_the_result_anew_is_no_repeat() -> None:
    episode = episode_of([tool(call_id="1"), tool(call_id="1"), tool(call_id="1")])
    assert episode.call is not None
    assert (episode.call.seen, episode.call.weight) == (1, 1)


@pytest.mark.parametrize(
    "again",
    [
        [other(Kind.MODEL), tool(call_id="call_0")],
        [tool(args="b", call_id="call_0")],
        [tool("read", call_id="call_0")],
        [tool(call_id="call_0", round="2")],
    ],
)
def test_an_id_that_is_given_out_again_is_another_call(again: list[Step]) -> None:
    episode = episode_of([tool(call_id="call_0", round="1"), *again])
    assert episode.iteration == 2


# -- the rest -------------------------------------------------------------------------------------


def test_a_user_turn_makes_all_counts_void() -> None:
    episode = episode_of([tool()] * 4)
    assert episode.health is Status.STAGNANT
    episode.add(other(Kind.USER))
    assert episode.health is Status.HEALTHY
    episode.add(tool())
    assert episode.call is not None
    assert (episode.call.seen, episode.consecutive, episode.iteration) == (1, 1, 5)
    assert episode.turn_start == 4


def status(*steps: Step) -> Status:
    return episode_of(steps).health


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], Status.HEALTHY),
        ([tool()], Status.HEALTHY),
        ([tool()] * 2, Status.REPEATING),
        ([tool()] * 3, Status.STAGNANT),
        ([tool(size=8)] * 3, Status.REPEATING),
        ([tool(args=each, result="same") for each in "abc"], Status.STAGNANT),
        ([tool(args=each, result="same", size=50) for each in "abcde"], Status.HEALTHY),
        ([tool(args=each, result="same", size=50) for each in "abcdef"], Status.STAGNANT),
        ([tool(args=each, outcome=Outcome.EMPTY, size=0) for each in "abc"], Status.STAGNANT),
        ([tool(args=each, outcome=Outcome.ACK, size=2) for each in "abcdef"], Status.HEALTHY),
        ([tool(outcome=Outcome.PENDING)] * 5, Status.HEALTHY),
        ([tool(outcome=Outcome.PENDING), tool("nap", size=8)] * 5, Status.HEALTHY),
        (
            [
                step
                for job in "abcd"
                for step in (tool("job", job, "wait", outcome=Outcome.PENDING), tool("nap", size=8))
            ],
            Status.HEALTHY,
        ),
        ([tool(outcome=Outcome.ERROR)] * 2, Status.HEALTHY),
        ([tool(), tool("read", "b", "s")] * 2, Status.REPEATING),
        ([tool(), tool(), other(Kind.MODEL)], Status.REPEATING),
    ],
)
def test_status(steps: list[Step], expected: Status) -> None:
    assert status(*steps) is expected


def test_a_relapse_needs_half_rounded_up() -> None:
    episode, first = Episode("run"), Moment(None, 1, 0, 0, 0)
    episode.alerts.put("loop", Alert("id", Severity.WARNING, 5, first_iteration=1))
    again = first._replace(iteration=9)
    grades = [episode.alerts.grade("loop", repeats, (5, 9), again) for repeats in (2, 3, 4, 5)]
    assert grades == [None, Severity.WARNING, Severity.WARNING, Severity.CRITICAL]
    assert episode.alerts.grade("loop", 4, (5, 9), first) is None
    assert episode.alerts.grade("other loop", 4, (5, 9), again) is None


def test_a_condensed_run_goes_on() -> None:
    episode = episode_of(
        [tool(args=str(each), result=str(each), call_id=str(each)) for each in range(60)]
    )
    episode.condense()
    assert episode.newest is None
    kept = episode._deeds.evidence
    assert len(kept.calls) == len(kept.results) == CONDENSED
    assert episode.earlier("search", "59", None) is not None
    assert episode.earlier("search", "3", None) is None
    assert not episode.add(tool(args="59", result="59", call_id="59"))
    episode.add(tool(args="59", result="59"))
    assert episode.call is not None
    assert (episode.iteration, episode.call.weight) == (61, 2)
