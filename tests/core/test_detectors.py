"""Detectors: what each catches, when it speaks, and the neighbours that it leaves alone."""

from __future__ import annotations

import dataclasses
from itertools import cycle as forever
from itertools import islice
from typing import TYPE_CHECKING

import pytest

from otel_loopguard.core.detectors import BUILTIN, IterationBudget
from otel_loopguard.core.model import MISSING, Kind, Outcome, Pattern, Sighting
from otel_loopguard.core.names import waits
from tests.core.steps import (
    PAGE,
    SECOND,
    START,
    Spoken,
    call,
    failure,
    make_guard,
    observe,
    page,
    seen,
    utterances,
)

if TYPE_CHECKING:
    from otel_loopguard.core.model import Finding

MOTION = "The motor of the third axis did not answer in time; the arm stays where it is. " * 3


def first(*sightings: Sighting) -> Spoken | None:
    spoken = utterances(sightings)
    return spoken[0] if spoken else None


def finding(*sightings: Sighting) -> Finding:
    """The newest thing that was said."""
    return [each.finding for seen in observe(sightings) for each in seen.utterances][-1]


def numbered(name: str, count: int, result: str = "page {} " + PAGE) -> list[Sighting]:
    return [call(name, f"{name}-{each}", result.format(each)) for each in range(count)]


def test_there_is_a_detector_for_each_pattern() -> None:
    assert {pattern.value for pattern in BUILTIN} == {
        "delegation_loop",
        "guardrail_loop",
        "tool_hallucination",
        "hard_loop",
        "tool_oscillation",
        "result_stagnation",
        "retry_storm",
        "reflection_paralysis",
        "truncation_loop",
        "context_rot",
        "constraint_drift",
        "iteration_budget",
    }


# -- hard_loop ------------------------------------------------------------------------------------


def test_an_equal_step_again_and_again() -> None:
    assert utterances([call()] * 50) == [
        (3, "hard_loop", "warning"),
        (5, "hard_loop", "critical"),
        (10, "hard_loop", "critical"),
        (20, "hard_loop", "critical"),
        (40, "hard_loop", "critical"),
    ]


@pytest.mark.parametrize("result", [PAGE, "ok", "", "7", {"rows": []}, None, True, 3.5])
def test_the_third_equal_step_is_a_warning_whatever_the_result(result: object) -> None:
    assert first(*[call(result=result)] * 3) == (3, "hard_loop", "warning")


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([call()] * 2, id="two equal steps"),
        pytest.param([call(result=MISSING)] * 3, id="three of which the results are not known"),
        pytest.param([Sighting(Kind.TOOL, "search", result=PAGE)] * 2, id="arguments not captured"),
        pytest.param([call(result=page(n)) for n in range(30)], id="the result changes"),
        pytest.param(
            [call(result="\n".join(PAGE.split()[:n])) for n in range(60, 90)], id="a log grows"
        ),
        pytest.param([call(result=f"{n} errors left") for n in range(9, 0, -1)], id="a countdown"),
        pytest.param(
            [step for page in numbered("read", 5) for step in (call(), page)],
            id="something else is learned between",
        ),
        pytest.param(
            [step for n in range(0, 40, 4) for step in (call(), *numbered("read", n + 4)[n:])],
            id="much else is learned between",
        ),
        pytest.param(
            [step for n in range(9) for step in (call(result=MISSING), call("edit", n, MISSING))],
            id="something is edited between, the results are not known",
        ),
        pytest.param(
            [step for n in range(10) for step in (call("write", str(n), "saved"), call("test"))],
            id="something is written between",
        ),
        pytest.param(
            [
                step
                for n in range(10)
                for step in (call("edit", str(n), "1 occurrence replaced"), call("test"))
            ],
            id="something is edited between, tersely acknowledged",
        ),
    ],
)
def test_what_is_no_hard_loop(steps: list[Sighting]) -> None:
    assert utterances(steps) == []


def test_a_call_that_comes_again_and_again_among_news() -> None:
    looks = [step for page in numbered("read", 12) for step in (call("grep", "x", []), page)]
    assert utterances(looks) == [(11, "hard_loop", "warning"), (23, "hard_loop", "warning")]


def test_of_unknown_results_only_a_warning_comes() -> None:
    assert utterances([call(result=MISSING)] * 20) == [
        (4, "hard_loop", "warning"),
        (8, "hard_loop", "warning"),
        (16, "hard_loop", "warning"),
    ]
    others = [call("read", n, MISSING) for n in range(9)]
    among = [step for one in others for step in (call(result=MISSING), one)]
    assert utterances(among) == [(9, "hard_loop", "warning")]
    assert finding(*among).evidence.endswith("gave a result that is not known each time")


def test_what_one_agent_repeats_is_no_loop_of_another() -> None:
    assert utterances([call(agent=f"agent {n}") for n in range(9)]) == []
    assert first(*[call(agent=f"agent {n % 2}") for n in range(9)]) == (5, "hard_loop", "warning")


def test_equal_but_for_the_time_of_day() -> None:
    times = [call(result=f"Report of 2026-01-05 10:00:{n:02}: all is quiet.") for n in range(12)]
    assert utterances(times) == [(6, "hard_loop", "warning"), (10, "hard_loop", "critical")]


@pytest.mark.parametrize(
    ("steps", "at"),
    [
        pytest.param(
            [call("run", {"cmd": "ls", "label": n}, "noop") for n in range(9)], 4, id="label"
        ),
        pytest.param(
            [call("find", " ".join(islice(forever("abcd"), n, n + 4)), MISSING) for n in range(9)],
            4,
            id="the same words in another order, results not known",
        ),
        pytest.param(
            [call("run", {"cmd": "ls", "timeout": n % 3}, f"took {n} ms") for n in range(12)],
            8,
            id="timeouts and durations",
        ),
        pytest.param([call(result=f"{PAGE} seen {n} times") for n in range(9)], 5, id="a tally"),
        pytest.param(
            [call("post", "x", {"ok": True, "to": "the team", "ref": f"om_{n}"}) for n in range(9)],
            5,
            id="an id that is new each time",
        ),
    ],
)
def test_nearly_the_same_is_enough(steps: list[Sighting], at: int) -> None:
    assert first(*steps) == (at, "hard_loop", "warning")


def test_nearly_the_same_is_never_critical() -> None:
    told = utterances([call(result=f"{PAGE} seen {n} times") for n in range(60)])
    assert {severity for _, _, severity in told} == {"warning"}


def test_what_says_that_arguments_are_not_quite_the_same() -> None:
    told = finding(*[call("run", {"cmd": "ls", "label": n}, "noop") for n in range(5)])
    assert told.evidence == (
        "run was called 3 times with nearly the same arguments and gave the same result each time"
    )


def test_polls_have_a_scale_of_their_own() -> None:
    pending = call("job", "7", {"status": "running"})
    assert utterances([pending] * 9) == []
    assert utterances([pending] * 20) == [
        (10, "hard_loop", "warning"),
        (20, "hard_loop", "critical"),
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("wait", 10), ("browser_wait", 10), ("Sleep", 10), ("waitlist", 3), ("await_all", 3)],
)
def test_a_tool_that_only_waits_is_a_poll(name: str, expected: int) -> None:
    assert waits(name) is (expected == 10)
    assert first(*[call(name, 5, "that took a while")] * 12) == (expected, "hard_loop", "warning")


def test_a_step_between_polls_is_a_poll_too() -> None:
    jobs = [call("job", str(n), {"status": "running"}) for n in range(9)]
    naps = [call("shell", "sleep 5", "")] * 9
    assert utterances([step for pair in zip(jobs, naps, strict=True) for step in pair]) == []
    assert first(*naps) is None
    assert first(*[call("shell", "sleepy", "")] * 9) == (3, "hard_loop", "warning")


@pytest.mark.parametrize(("result", "expected"), [("still cold", 15), (PAGE, 6)])
def test_steps_far_apart_count_less(result: str, expected: int) -> None:
    times = [START + n * 30 * SECOND for n in range(16 if expected > 9 else 9)]
    apart = [call(result=result, start_ns=time, end_ns=time + 1) for time in times]
    assert utterances(apart) == [(expected, "hard_loop", "warning")]


def test_what_a_model_asks_for_at_once_is_less_of_a_loop() -> None:
    asks = seen(Kind.MODEL)
    assert first(asks, *[call()] * 6) == (5, "hard_loop", "warning")
    assert first(asks, *[call("look")], *[call()] * 6) == (5, "hard_loop", "warning")
    assert first(*[asks, call()] * 6) == (6, "hard_loop", "warning")


def test_a_command_that_says_nothing_may_come_between_news() -> None:
    nap, none = call("shell", "sync", ""), call("grep", "x", "[]")
    news = numbered("read", 8)
    assert first(*[step for new in news for step in (nap, new)]) is None
    assert first(*[step for new in news for step in (none, new)]) is not None
    assert first(*[nap] * 6) is not None


def test_what_a_hard_loop_wastes() -> None:
    steps: list[Sighting] = []
    for n in range(5):
        start = START + n * 4 * SECOND
        steps.append(seen(Kind.MODEL, tokens=100, start_ns=start, end_ns=start + 3 * SECOND))
        steps.append(call(start_ns=start + 3 * SECOND, end_ns=start + 4 * SECOND, span=f"span-{n}"))
    told = finding(*numbered("read", 2), *steps)
    assert (told.repeats, told.period, told.wasted_calls) == (5, 1, 4)
    assert (told.wasted_tokens, told.wasted_seconds) == (400, 16.0)
    assert (told.first_span, told.first_iteration, told.action) == ("span-0", 3, "search")
    assert told.suggested_action == "inject_correction"
    assert told.evidence == (
        "search was called 5 times with the same arguments and gave the same result each time"
    )


def test_what_a_poll_needs_is_to_wait() -> None:
    told = finding(*[call("job", "7", {"status": "running"})] * 10)
    assert told.suggested_action == "wait_longer"
    assert told.evidence.endswith("gave no final result each time")


def test_times_that_are_unknown_waste_none() -> None:
    assert finding(*[call()] * 3).wasted_seconds == 0


# -- tool_oscillation -----------------------------------------------------------------------------


@pytest.mark.parametrize("period", range(2, 9))
def test_cycles_of_two_to_eight_calls(period: int) -> None:
    lap = [call("tour", f"stop {n}", f"{PAGE} {n}") for n in range(period)]
    for shift in range(period):
        steps = [*lap[shift:], *lap[:shift]] * 20
        assert utterances(steps) == [
            (3 * period, "tool_oscillation", "warning"),
            (5 * period, "tool_oscillation", "critical"),
            (10 * period, "tool_oscillation", "critical"),
            (20 * period, "tool_oscillation", "critical"),
        ]


def test_a_cycle_is_the_same_in_each_rotation() -> None:
    lap = [call("tour", f"stop {n}", f"{PAGE} {n}") for n in range(3)]
    identities = {finding(*([*lap[n:], *lap[:n]] * 3)).identity for n in range(3)}
    assert len(identities) == 1
    other = [call("tour", f"stop {n}", f"{PAGE} {n}") for n in (0, 2, 1)]
    assert finding(*(other * 3)).identity not in identities


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(
            [
                step
                for n in range(12)
                for step in (call("read", "f", f"v{n} {PAGE}"), call("write", f"v{n}", "saved"))
            ],
            id="read and write new content",
        ),
        pytest.param(
            [
                step
                for n in range(12)
                for step in (call("open", "f", "opened"), call("measure", "f", page(n)))
            ],
            id="the result changes in each lap",
        ),
        pytest.param(
            [call("job", "7", {"status": "running"}), call("shell", "sleep 5", "")] * 9,
            id="poll and sleep",
        ),
        pytest.param([call("open"), call("close", result="done")] * 2, id="two laps"),
        pytest.param(
            [call("open", result=MISSING), call("close", result=MISSING)] * 3,
            id="three laps of which the results are not known",
        ),
    ],
)
def test_what_is_no_oscillation(steps: list[Sighting]) -> None:
    assert utterances(steps) == []


def lap_of(period: int, *others: Sighting, result: str = "{}") -> list[Sighting]:
    """A lap with other steps in the middle."""
    steps = [call(f"tool-{n}", n, result.format(page(n))) for n in range(period)]
    return [*steps[: period // 2], *others, *steps[period // 2 :]]


def stray(number: int) -> Sighting:
    return call("look", f"other {number}", page(90 + number))


@pytest.mark.parametrize("period", [4, 5, 6, 7, 8])
def test_one_other_step_does_not_hide_a_long_cycle(period: int) -> None:
    laps = [lap_of(period), lap_of(period, stray(0)), lap_of(period), lap_of(period)]
    told = finding(*[step for lap in laps for step in lap])
    assert (told.pattern, told.severity.label) == (Pattern.TOOL_OSCILLATION, "warning")
    assert (told.period, told.repeats, told.first_iteration) == (period, 3, 1)
    in_each = [step for n in range(9) for step in lap_of(period, stray(n))]
    assert utterances(in_each) == [(3 * period + 4, "tool_oscillation", "warning")]


@pytest.mark.parametrize(
    "laps",
    [
        pytest.param([lap_of(4, stray(n), stray(20 + n)) for n in range(6)], id="two others"),
        pytest.param([lap_of(4, call("edit", n, "ok")) for n in range(6)], id="an edit in each"),
        pytest.param([lap_of(4, stray(n), result="ok") for n in range(6)], id="only told ok"),
        pytest.param(
            [[call(f"t-{n}", n, page(n * 9 + lap)) for n in range(4)] for lap in range(6)],
            id="new results",
        ),
        pytest.param(
            [lap_of(4, stray(n), call("job", 1, {"status": "running"})) for n in range(6)],
            id="while waiting",
        ),
        pytest.param(
            [step for n in range(6) for step in ([seen(Kind.USER)], lap_of(4, stray(n)))],
            id="the user asks each time",
        ),
    ],
)
def test_what_is_no_long_cycle_with_others(laps: list[list[Sighting]]) -> None:
    assert utterances([step for lap in laps for step in lap]) == []


def test_a_long_cycle_that_comes_at_intervals_is_a_watch() -> None:
    steps: list[Sighting] = []
    now = START
    for lap in range(8):
        now += 60 * SECOND
        steps += [each._replace(start_ns=now, end_ns=now) for each in lap_of(4, stray(lap))]
    assert utterances(steps) == []


def test_polling_in_turn_is_an_oscillation_in_the_end() -> None:
    steps = [call("job", "7", {"status": "running"}), call("shell", "sleep 5", "")] * 20
    assert utterances(steps) == [
        (20, "tool_oscillation", "warning"),
        (40, "tool_oscillation", "critical"),
    ]


def test_laps_of_unknown_results_are_a_warning_in_the_end() -> None:
    lap = [call("open", result=MISSING), call("close", result=MISSING)]
    assert utterances(lap * 10) == [
        (8, "tool_oscillation", "warning"),
        (16, "tool_oscillation", "warning"),
    ]
    assert finding(*lap * 4).evidence.endswith("results that are not known")


def laps_at(*texts: str) -> list[tuple[int, str]]:
    """When laps are spoken of whose calls give these results, each with the time in it."""
    steps = [
        call("tool", at, text.format(f"10:00:{n:02}"))
        for n in range(11)
        for at, text in enumerate(texts)
    ]
    return [(at, severity) for at, pattern, severity in utterances(steps) if "osc" in pattern]


OPENED = "It was opened at {}, and it is open now"


def test_laps_that_are_only_equal_when_masked_count_half() -> None:
    assert laps_at(OPENED, "It was shut at {}; now it is shut") == [
        (12, "warning"),
        (20, "critical"),
    ]


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param((OPENED, MOTION), id="as much of it is just the same"),
        pytest.param((OPENED, MOTION, PAGE, MOTION), id="more of it is"),
        pytest.param((f"{PAGE} {{}}", "It was shut at {}; now it is shut"), id="or is long"),
    ],
)
def test_laps_of_which_enough_is_the_same_count_as_they_are(texts: tuple[str, ...]) -> None:
    assert [severity for _, severity in laps_at(*texts)][:2] == ["warning", "critical"]
    assert laps_at(*texts)[0][0] <= 4 * len(texts)


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param((OPENED, "ok"), id="a word says nothing"),
        pytest.param((OPENED, "It was shut at {}; now it is shut", MOTION), id="less than half"),
    ],
)
def test_laps_of_which_too_little_is_the_same(texts: tuple[str, ...]) -> None:
    assert laps_at(*texts)[0][0] > 4 * len(texts)


def test_a_result_that_goes_to_and_fro_is_not_a_lap_of_calls() -> None:
    steps = [
        call("debug", "n", f"cart.py({13 + n % 2}) total()\n the line is read") for n in range(8)
    ]
    assert utterances(steps) == []


def test_what_an_oscillation_wastes() -> None:
    lap = [call("open", span="span-open"), call("close", "x", MOTION)]
    told = finding(*numbered("read", 2), *(lap * 5))
    assert (told.period, told.repeats, told.wasted_calls) == (2, 5, 8)
    assert (told.first_span, told.first_iteration) == ("span-open", 3)


def test_what_was_told_as_a_cycle_is_not_told_again_as_a_hard_loop() -> None:
    lap = [call("a"), call("b", result=MOTION)]
    told = utterances([*lap * 3, *numbered("read", 1), *lap * 2])
    assert told == [(6, "tool_oscillation", "warning"), (11, "tool_oscillation", "warning")]


# -- result_stagnation ----------------------------------------------------------------------------


def test_what_is_empty_in_other_words_is_empty_too() -> None:
    searches = [call("search", n, f"Results for {n!r}: no relevant results.") for n in range(9)]
    assert first(*searches) == (5, "result_stagnation", "warning")
    among = [step for pair in zip(varied([], 9), numbered("read", 9), strict=True) for step in pair]
    assert first(*among) == (9, "result_stagnation", "warning")


def varied(result: object, count: int, name: str = "search") -> list[Sighting]:
    return [call(name, f"words {n}", result) for n in range(count)]


@pytest.mark.parametrize(
    ("result", "warning", "critical"),
    [(PAGE, 3, 5), ("118: running total of the writes to the cache", 6, 10), ([], 5, 10)],
)
def test_other_arguments_and_the_same_result(result: object, warning: int, critical: int) -> None:
    assert utterances(varied(result, 10)) == [
        (warning, "result_stagnation", "warning"),
        (critical, "result_stagnation", "critical"),
        *([(6, "result_stagnation", "critical")] if critical == 3 else []),
        *([(10, "result_stagnation", "critical")] if critical == 5 else []),
    ]


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(varied("ok", 30, "write"), id="acknowledged alike"),
        pytest.param(varied("1 occurrence replaced", 30, "edit"), id="a terse answer"),
        pytest.param(varied({"archived": True}, 30, "archive"), id="a terse structure"),
        pytest.param(varied([], 4), id="four that find nothing"),
        pytest.param(varied(PAGE, 2), id="two alike"),
        pytest.param(numbered("search", 30), id="other results"),
        pytest.param(varied(MISSING, 30), id="results not captured"),
        pytest.param(
            [step for n in range(9) for step in (call("search", n), *numbered("read", n + 1)[n:])],
            id="something else is learned between",
        ),
        pytest.param(
            [
                step
                for n in range(9)
                for step in (call("job", "7", {"status": "running"}), call("nap", n, ""))
            ],
            id="longer and longer waits between polls",
        ),
    ],
)
def test_what_is_no_stagnation(steps: list[Sighting]) -> None:
    assert utterances(steps) == []


def test_a_parallel_round_is_one_search() -> None:
    at_once = [call("search", n, round="1") for n in range(9)]
    assert utterances(at_once) == []
    assert utterances([call("search", n, round=str(n)) for n in range(3)]) == [
        (3, "result_stagnation", "warning")
    ]


def test_what_stagnation_says() -> None:
    assert finding(*varied(PAGE, 3)).evidence == (
        "search gave the same result 3 times in a row, whatever its arguments"
    )
    assert finding(*varied([], 5)).evidence == (
        "search gave nothing 5 times in a row, whatever its arguments; a tool that says nothing "
        "where it failed is a suspected cause"
    )
    assert (finding(*varied(PAGE, 3)).args_key, finding(*varied(PAGE, 3)).wasted_calls) == (None, 2)


# -- retry_storm ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param([failure()] * 5, [3, 5], id="the same call"),
        pytest.param([failure(text=f"refused {n}") for n in range(5)], [3, 5], id="another text"),
        pytest.param([failure(args=n, text="refused") for n in range(8)], [4, 8], id="one text"),
        pytest.param([failure(args=n) for n in range(12)], [6, 10], id="text not captured"),
        pytest.param(
            [failure(args=n, text=f"no host {n}") for n in range(10)], [6, 10], id="all varies"
        ),
        pytest.param([failure(args=MISSING, text="refused")] * 8, [4, 8], id="args not captured"),
        pytest.param([failure(call_id="1")] * 5, [3, 5], id="attempts of one call"),
    ],
)
def test_failing_in_the_same_way(steps: list[Sighting], expected: list[int]) -> None:
    if steps[0].args == {"q": MISSING}:
        steps = [Sighting(Kind.TOOL, "fetch", error="E", result="refused")] * len(steps)
    told = utterances(steps)
    assert [at for at, _, _ in told] == expected
    assert {pattern for _, pattern, _ in told} == {"retry_storm"}
    assert [severity for _, _, severity in told][:2] == ["warning", "critical"]


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([failure(), failure(), call("fetch")] * 2, id="a retry that succeeds"),
        pytest.param([failure(error=f"E{n}") for n in range(9)], id="other failures"),
        pytest.param([failure(args=n, text=f"no {n}") for n in range(5)], id="five other tries"),
        pytest.param([failure(n) for n in ("a", "b", "c", "d")], id="four tools fail once"),
        pytest.param(
            [step for n in range(9) for step in (call("edit", n, "saved"), failure("test"))],
            id="a test that fails between edits",
        ),
        pytest.param([failure(args=n, round="1") for n in range(9)], id="one round that fails"),
        pytest.param(
            [
                failure(start_ns=START + n * 30 * SECOND, end_ns=START + n * 30 * SECOND + 1)
                for n in range(8)
            ],
            id="retries that back off",
        ),
    ],
)
def test_what_is_no_storm(steps: list[Sighting]) -> None:
    assert utterances(steps) == []


def test_what_a_storm_says() -> None:
    told = finding(*[failure(span=f"span-{n}") for n in range(3)])
    assert told.evidence == "fetch failed 3 times in a row in the same way, with the same arguments"
    assert (told.first_span, told.wasted_calls) == ("span-0", 2)
    assert told.args_key is not None
    varied_args = finding(*[failure(args=n, text="refused") for n in range(4)])
    assert varied_args.evidence.endswith("with different arguments")
    assert varied_args.args_key is None


# -- iteration_budget -----------------------------------------------------------------------------


def silent(number: int, **more: object) -> Sighting:
    """A model that does not answer."""
    text = f"limit reached, resets in {5400 - number} s"
    return seen(Kind.MODEL, agent=f"worker-{number}", error="RateLimit", result=text, **more)


def test_models_that_do_not_answer() -> None:
    told = utterances([silent(n) for n in range(14)])
    assert told == [(7, "retry_storm", "warning"), (14, "retry_storm", "critical")]
    evidence = finding(*[silent(n) for n in range(7)]).evidence
    assert evidence == "model failed 7 times in a row without an answer between"
    with_calls = [step for n in range(7) for step in (silent(n), call("read", n, page(n)))]
    assert first(*with_calls) == (13, "retry_storm", "warning")


@pytest.mark.parametrize(
    "between",
    [
        pytest.param(seen(Kind.MODEL, result="Here is the answer."), id="an answer"),
        pytest.param(seen(Kind.USER), id="a user who tries again"),
    ],
)
def test_models_that_answer_again(between: Sighting) -> None:
    fails = [silent(n) for n in range(6)]
    assert utterances([*fails, between, *fails]) == []


def test_clients_that_back_off() -> None:
    times = [START + n * 60 * SECOND for n in range(9)]
    fails = [silent(n, start_ns=time, end_ns=time + SECOND) for n, time in enumerate(times)]
    assert utterances(fails) == []


def budget(limit: int, sightings: list[Sighting]) -> list[Spoken]:
    return utterances(sightings, make_guard(detectors=[IterationBudget(limit=limit)]))


def test_a_budget_is_off_until_it_is_set() -> None:
    assert utterances(numbered("read", 200)) == []


def test_more_iterations_than_the_budget() -> None:
    pattern = Pattern.ITERATION_BUDGET.value
    assert budget(10, numbered("read", 10)) == []
    assert budget(10, numbered("read", 45)) == [
        (11, pattern, "warning"),
        (20, pattern, "critical"),
        (40, pattern, "critical"),
    ]


def test_a_round_is_one_iteration() -> None:
    rounds = [call("read", n, f"{n} {PAGE}", round=str(n // 5)) for n in range(50)]
    assert budget(10, rounds) == []


def test_the_budget_is_that_of_one_user_turn() -> None:
    turn = [seen(Kind.USER), *numbered("read", 9)]
    assert budget(10, turn * 5) == []
    over = [seen(Kind.USER), *numbered("read", 12)]
    assert [at for at, _, _ in budget(10, over * 2)] == [12, 25]


def test_model_steps_take_none_of_the_budget() -> None:
    steps = [*numbered("read", 11), *[seen(Kind.MODEL)] * 50]
    assert budget(10, steps) == [(11, "iteration_budget", "warning")]


# -- all ------------------------------------------------------------------------------------------


def test_no_finding_holds_content_or_the_name_of_a_tool_that_is_unknown() -> None:
    canary = "xyzzy"
    loops = [
        [call("search", canary, f"{canary} {PAGE}")] * 5,
        [call("open", canary, canary), call("close", canary, f"{canary} 2")] * 5,
        [call("search", f"{canary} {n}", f"{canary} {PAGE}") for n in range(5)],
        [failure(args=canary, text=canary)] * 5,
        [call(canary, n, "no", outcome=Outcome.UNKNOWN_TOOL) for n in range(9)],
        [call(canary, n, f"Unknown tool: {canary}", error="ToolNotFound") for n in range(9)],
    ]
    for steps in loops:
        told = observe(steps)
        assert any(each.utterances for each in told)
        for each in told:
            assert canary not in repr(dataclasses.replace(each, ended=()))


def test_tools_by_any_other_name() -> None:
    def run(a: str, b: str) -> list[Spoken]:
        steps = [call(a), call(b, "y", MOTION), failure(a), call(b, "z", MOTION)]
        return utterances(list(islice(forever(steps), 60)))

    assert run("search", "read") == run("lookup", "load") != []
