"""Guard: when a finding speaks, how a run gets stuck and recovers, and what is left of a run."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otel_loopguard.core.digest import UNKNOWN_TOOL
from otel_loopguard.core.guard import Closing
from otel_loopguard.core.model import (
    MISSING,
    Finding,
    Kind,
    Outcome,
    Pattern,
    Recorded,
    RunEnd,
    Severity,
    Sighting,
    Source,
    Status,
    Stuck,
    StuckChange,
)
from otel_loopguard.dialects.view import SpanView
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
from tests.unharmed.apps.odd import attribute, touched

if TYPE_CHECKING:
    from collections.abc import Callable

    from otel_loopguard.core.episode import Episode
    from otel_loopguard.core.model import Observation, Step

WARNED = Stuck(Pattern.HARD_LOOP, Severity.WARNING, None)
CRITICAL = Stuck(Pattern.HARD_LOOP, Severity.CRITICAL, None)


def news(count: int, name: str = "read") -> list[Sighting]:
    return [call(name, f"{name} {n}", f"{name} {n} {PAGE}") for n in range(count)]


# -- what it says of a step -----------------------------------------------------------------------


def test_what_is_said_of_each_step() -> None:
    first, other, again, changed = observe(
        [call(), call("read", "y"), call(), call(result=f"{PAGE} new")]
    )
    assert [each.iteration for each in (first, other, again, changed)] == [1, 2, 3, 4]
    assert [each.consecutive_same_tool for each in (first, other, again, changed)] == [1, 1, 1, 2]
    assert [each.same_args_seen for each in (first, other, again)] == [False, False, True]
    assert [each.repeat_count for each in (first, other, again, changed)] == [1, 1, 2, 1]
    assert all(each.counted for each in (first, other, again, changed))
    assert first.step.args_key == again.step.args_key != other.step.args_key
    assert first.step.result_key == again.step.result_key != changed.step.result_key
    assert (first.step.size, first.step.outcome) == (len(PAGE), Outcome.OK)


def test_a_step_that_is_no_call_has_no_counts() -> None:
    told = observe([call(), call(), seen(Kind.MODEL, tokens=5)])[-1]
    assert (told.repeat_count, told.same_args_seen, told.counted) == (0, False, True)
    assert told.iteration == 2


def test_digests_that_were_made_already_are_taken_as_they_are() -> None:
    """Of a result that is not known any more, and of one that is."""
    recorded = Recorded("1" * 16, "2" * 16, 512)
    for result in (MISSING, "something else"):
        seen = Sighting(Kind.TOOL, "search", args_key="0" * 16, result=result, recorded=recorded)
        told = observe([seen] * 3)
        step = told[-1].step
        assert (step.result_key, step.masked_key, step.size) == recorded
        assert [spoken.finding.pattern.value for spoken in told[-1].utterances] == ["hard_loop"]


def test_the_seer_may_have_made_the_digest_of_the_arguments() -> None:
    told = observe([Sighting(Kind.TOOL, "search", args_key="0" * 16, result=PAGE)] * 3)
    assert told[-1].step.args_key == "0" * 16
    assert told[-1].utterances


def test_results_are_masked_only_once_a_call_comes_back_with_another() -> None:
    times = [call(result=f"{PAGE} at 10:00:0{n}") for n in (1, 1, 2, 3)]
    masked = [each.step.masked_key for each in observe(times)]
    assert masked[:2] == [None, None]
    assert masked[2] == masked[3] is not None


def test_a_tool_that_is_unknown_has_no_name() -> None:
    for known in (
        call("xyzzy", outcome=Outcome.UNKNOWN_TOOL),
        call("xyzzy", result="Tool xyzzy not found", error="ToolNotFound"),
    ):
        told = observe([known])[0]
        assert told.step.outcome is Outcome.UNKNOWN_TOOL
        assert told.step.action == UNKNOWN_TOOL


def test_a_sub_agent_is_no_tool_of_the_same_name() -> None:
    agent = Sighting(Kind.AGENT, "search", args={"q": "x"}, result=PAGE)
    assert observe([agent])[0].step.action == "agent:search"
    assert utterances([agent] * 3) == [(3, "hard_loop", "warning")]
    assert utterances([call(), call(), agent]) == []


def test_a_span_names_itself_with_its_trace() -> None:
    span = SpanView("tool", "internal", "a" * 32, "b" * 16, None, "scope", 0, 0, False, {})
    assert span.reference == (int("a" * 32, 16), int("b" * 16, 16))


def test_the_agent_of_a_step() -> None:
    guard = make_guard()
    assert guard.observe("run", call(agent="inner"), "outer").step.agent == "inner"
    assert guard.observe("run", call(), "outer").step.agent == "outer"


# -- when a finding speaks ------------------------------------------------------------------------


def test_the_utterances_of_one_finding_belong_together() -> None:
    spoken = [each for told in observe([call()] * 10) for each in told.utterances]
    assert [each.report_no for each in spoken] == [1, 2, 3]
    assert [each.iteration for each in spoken] == [3, 5, 10]
    assert len({each.finding_id for each in spoken}) == 1
    assert len(spoken[0].finding_id) == 16
    elsewhere = make_guard().observe
    twin = [each for _ in range(3) for each in elsewhere("other run", call()).utterances]
    assert twin[0].finding_id != spoken[0].finding_id


@pytest.mark.parametrize(("count", "expected"), [(5, [3, 5]), (3, [3])])
def test_a_parallel_round_is_one_set(count: int, expected: list[int]) -> None:
    for names in (["a", "b"], ["a", "b", "c", "d"]):
        rounds = [call(name, round=str(number)) for number in range(count) for name in names]
        told = [
            (each.iteration, each.finding.severity.label)
            for observation in observe(rounds)
            for each in observation.utterances
        ]
        assert [iteration for iteration, _ in told] == expected
        assert [severity for _, severity in told] == ["warning", "critical"][: len(expected)]


def test_a_round_says_a_thing_once_unless_it_gets_worse() -> None:
    alone = ["a", "b", "b", "b", "b", "a", "a"]
    steps = [call(name, round=str(number)) for number, name in enumerate(alone)]
    together = [call("a", round="last"), call("b", round="last")]
    warned = (4, "hard_loop", "warning")
    assert utterances([*steps, *together]) == [
        warned,
        (8, "hard_loop", "warning"),
        (9, "hard_loop", "critical"),
    ]
    assert utterances([*steps, *reversed(together)]) == [warned, (8, "hard_loop", "critical")]


def test_attempts_of_one_call_speak_on() -> None:
    assert utterances([failure(call_id="1")] * 20) == [
        (3, "retry_storm", "warning"),
        (5, "retry_storm", "critical"),
        (10, "retry_storm", "critical"),
        (20, "retry_storm", "critical"),
    ]


def test_what_is_muted_is_silent_and_leaves_the_run_as_it_is() -> None:
    guard = make_guard(muted=frozenset({Pattern.HARD_LOOP}))
    told = observe([call()] * 9, guard)
    assert not any(each.utterances or each.changes for each in told)
    assert told[-1].status is Status.STAGNANT


def test_a_hint_is_silent() -> None:
    def hint(_: Episode, step: Step) -> Finding:
        return Finding(Pattern.CONTEXT_ROT, Severity.INFO, "1", 1, 1, step.action, "none")

    guard = make_guard(detectors=[hint])
    told = observe([call()] * 9, guard)
    assert not any(each.utterances or each.changes for each in told)
    assert not guard.is_stuck("run")


def test_a_tool_that_is_ignored_is_no_step() -> None:
    guard = make_guard(ignored_tools=frozenset({"think"}))
    thoughts = observe([call("think")] * 9, guard)
    assert not any(each.utterances or each.counted for each in thoughts)
    assert thoughts[-1].iteration == 0
    assert utterances([call(), call("think"), call(), call("think"), call()], guard) == [
        (5, "hard_loop", "warning")
    ]
    assert guard.observe("run", Sighting(Kind.MODEL, "think")).counted


# -- stuck, recovered, relapsed -------------------------------------------------------------------


def changes(observations: list[Observation]) -> list[tuple[int, StuckChange]]:
    return [(at, each) for at, told in enumerate(observations, 1) for each in told.changes]


def test_a_run_is_stuck_from_the_first_warning() -> None:
    guard = make_guard()
    told = observe([call()] * 7, guard)
    assert [each.status.value for each in told] == ["healthy", "repeating", *["deadlocked"] * 5]
    assert changes(told) == [
        (3, StuckChange("run", None, WARNED)),
        (5, StuckChange("run", WARNED, CRITICAL)),
    ]
    assert guard.is_stuck("run")
    assert not guard.is_stuck("other run")


def test_five_steps_of_progress_and_it_is_well_again() -> None:
    guard = make_guard()
    told = observe([*[call()] * 3, *news(5)], guard)
    assert [each.status.value for each in told[3:]] == [*["deadlocked"] * 4, "healthy"]
    assert changes(told)[1:] == [(8, StuckChange("run", WARNED, None))]
    assert not guard.is_stuck("run")


@pytest.mark.parametrize(
    "step", [call("search", "n", ""), failure(), call("job", "7", {"status": "running"}), call()]
)
def test_steps_that_bring_nothing_do_not_help(step: Sighting) -> None:
    told = observe([*[call()] * 3, *[step] * 2, *news(4), *[step] * 2])
    assert told[-1].status is Status.DEADLOCKED


def test_a_loop_that_goes_on_between_is_no_recovery() -> None:
    steps = [*[call()] * 3, *news(4), *[call()] * 2, *news(4, "load")]
    assert observe(steps)[-1].status is Status.DEADLOCKED


def test_a_relapse_needs_half() -> None:
    told = observe([*[call()] * 3, *news(5), *[call()] * 3])
    spoken = [(at, each) for at, one in enumerate(told, 1) for each in one.utterances]
    assert [(at, each.finding.severity.label, each.finding.repeats) for at, each in spoken] == [
        (3, "warning", 3),
        (10, "warning", 2),
        (11, "critical", 3),
    ]
    assert [each.report_no for _, each in spoken] == [1, 2, 3]
    assert len({each.finding_id for _, each in spoken}) == 1
    assert [at for at, _ in changes(told)] == [3, 8, 10, 11]


def test_relapses_of_other_patterns_need_half_too() -> None:
    storm = [failure()] * 2
    assert utterances([*storm, failure(), call("fetch"), *storm]) == [
        (3, "retry_storm", "warning"),
        (6, "retry_storm", "warning"),
    ]
    lap = [call("open"), call("close", result=f"closed {PAGE}")]
    told = utterances([*lap * 3, *news(2), *lap * 2])
    assert [at for at, _, _ in told] == [6, 12]


def test_a_loop_that_goes_on_is_no_relapse() -> None:
    times = [call(result=f"{PAGE} 10:00:{n:02}") for n in range(9)]
    assert utterances(times) == [(5, "hard_loop", "warning"), (8, "hard_loop", "critical")]


def test_a_user_turn_forgets_the_counts_but_not_the_loop() -> None:
    assert utterances([call(), call(), seen(Kind.USER), call(), call()]) == []
    assert utterances([*[call()] * 3, seen(Kind.USER), *[call()] * 2]) == [
        (3, "hard_loop", "warning"),
        (6, "hard_loop", "warning"),
    ]


def test_old_results_are_news_to_another_user_turn() -> None:
    steps = [*news(5), *[call()] * 3, seen(Kind.USER), *news(5)]
    assert observe(steps)[-1].status is Status.HEALTHY


def test_the_worst_counts() -> None:
    told = observe([*[call()] * 5, *[failure()] * 3])
    assert told[-1].utterances[0].finding.severity is Severity.WARNING
    assert [each for _, each in changes(told)][-1].after == CRITICAL


def test_stuck_names_the_agent() -> None:
    guard = make_guard()
    told = [guard.observe("run", call(), "planner") for _ in range(3)]
    assert told[-1].changes[0].after == Stuck(Pattern.HARD_LOOP, Severity.WARNING, "planner")


# -- healthy twins --------------------------------------------------------------------------------

TWINS = {
    "paging": [call("next_page", "", page(n)) for n in range(20)],
    "polling until done": [
        *[call("job", "7", {"status": "running"})] * 9,
        call("job", "7", {"status": "done", "rows": 3}),
    ],
    "a retry that succeeds": [failure(), failure(), call("fetch"), *news(3)],
    "a retried call that succeeds": [failure(call_id="1"), call("fetch", call_id="1"), *news(3)],
    "a batch": [call("send", f"user {n}", "sent") for n in range(20)],
    "a batch that says nothing": [call("send", f"user {n}", True) for n in range(20)],
    "the same call after a write": [
        each for n in range(6) for each in (call("read", "f"), call("write", f"v{n}", "ok"))
    ],
    "edit and test": [
        each
        for n in range(6)
        for each in (call("edit", f"v{n}", "ok"), failure("test", "all", f"{n} failed"))
    ],
    "two equal calls": [*news(3), call(), call(), *news(3)],
}


@pytest.mark.parametrize("twin", TWINS)
@pytest.mark.parametrize("with_model", [False, True])
def test_healthy_twins(twin: str, *, with_model: bool) -> None:
    model = seen(Kind.MODEL, tokens=10)
    steps = [each for step in TWINS[twin] for each in ([model, step] if with_model else [step])]
    told = observe(steps)
    assert not any(each.utterances or each.changes for each in told)
    expected = {Status.HEALTHY}
    if twin == "two equal calls":
        expected.add(Status.REPEATING)
    assert {each.status for each in told} == expected


# -- properties -----------------------------------------------------------------------------------

LETTERS = {
    "a": call("search", "a", f"a {PAGE}"),
    "b": call("search", "b", f"a {PAGE}"),
    "c": call("read", "c", f"c {PAGE}"),
    "d": call("read", "c", f"d {PAGE}"),
    "e": failure("fetch", "e", "refused"),
    "f": call("job", "f", {"status": "running"}),
    "g": call("write", "g", "ok"),
    "u": seen(Kind.USER),
}
WORDS = st.text(alphabet=sorted(LETTERS), min_size=1, max_size=40)


def say(word: str) -> list[Sighting]:
    return [LETTERS[letter] for letter in word]


@settings(max_examples=60)
@given(WORDS, st.integers(1, 90))
def test_healthy_steps_before_change_neither_verdict_nor_delay(word: str, padding: int) -> None:
    before = news(padding, "prepare")
    padded = utterances([*before, *say(word)])
    assert [(at - padding, *rest) for at, *rest in padded] == utterances(say(word))


def renamed(step: Sighting, names: dict[str, str]) -> Sighting:
    return Sighting(
        step.kind, names.get(step.action, step.action), args=step.args, result=step.result,
        error=step.error,
    )  # fmt: skip


@settings(max_examples=60)
@given(WORDS)
def test_the_names_of_tools_do_not_matter(word: str) -> None:
    names = {"search": "zulu", "read": "alpha", "fetch": "f", "job": "x y z", "write": "search"}
    assert utterances([renamed(each, names) for each in say(word)]) == utterances(say(word))


@settings(max_examples=60)
@given(WORDS, WORDS)
def test_two_runs_at_once_are_two_runs(one: str, other: str) -> None:
    guard = make_guard()
    said: dict[str, list[Spoken]] = {"one": [], "other": []}
    counts = dict.fromkeys(said, 0)
    mixed = chain.from_iterable(
        [("one", first), ("other", second)] for first, second in zip_longest(one, other)
    )
    for run, letter in mixed:
        if letter is not None:
            counts[run] += 1
            told = guard.observe(run, LETTERS[letter]).utterances
            said[run] += [
                (counts[run], each.finding.pattern.value, each.finding.severity.label)
                for each in told
            ]
    assert said == {"one": utterances(say(one)), "other": utterances(say(other))}


# -- the life of a run ----------------------------------------------------------------------------


def test_a_run_that_ends_leaves_the_gauge() -> None:
    guard = make_guard()
    observe([call()] * 3, guard)
    assert guard.end("run", "answer") == Closing(
        (StuckChange("run", WARNED, None),), (RunEnd("run", None, 3, "answer", WARNED),)
    )
    assert guard.end("run", "answer") == Closing()
    assert not guard.is_stuck("run")
    assert observe([call()], guard)[0].iteration == 1


def test_a_run_that_is_kept_goes_on_where_it_was() -> None:
    guard = make_guard()
    observe([call()] * 3, guard)
    assert guard.end("run", "answer", keep=True).ended[0].iterations == 3
    assert guard.end("run", "answer", keep=True) == Closing()
    told = guard.observe("run", call())
    assert told.iteration == 4
    assert guard.end("run", "exit").ended[0].iterations == 4


def test_a_healthy_run_ends_without_a_change() -> None:
    guard = make_guard()
    observe(news(2), guard)
    assert guard.end("run", "closed") == Closing((), (RunEnd("run", None, 2, "closed", None),))


def test_a_silent_run_expires() -> None:
    guard = make_guard(ttl_ns=60 * SECOND)
    guard.observe("old", call(end_ns=START))
    guard.observe("young", call(end_ns=START + 30 * SECOND))
    assert guard.expire(START + 59 * SECOND) == Closing()
    assert [each.run for each in guard.expire(START + 60 * SECOND).ended] == ["old"]
    assert [each.reason for each in guard.expire(START + 90 * SECOND).ended] == ["expired"]
    assert guard.expire(START + 900 * SECOND) == Closing()


def test_a_run_without_times_lives_from_the_first_look_at_it() -> None:
    guard = make_guard(ttl_ns=60 * SECOND)
    guard.observe("run", call())
    assert guard.expire(START) == Closing()
    assert len(guard.expire(START + 60 * SECOND).ended) == 1


def test_the_run_that_was_silent_longest_makes_room() -> None:
    guard = make_guard(max_runs=2, ignored_tools=frozenset({"think"}))
    for _ in range(3):
        guard.observe("one", call())
    guard.observe("two", call())
    guard.observe("one", call())
    assert guard.observe("three", call()).ended[0].run == "two"
    told = guard.observe("four", call("think"))
    assert told.changes == (StuckChange("one", WARNED, None),)
    assert told.ended == (RunEnd("one", None, 4, "evicted", WARNED),)
    assert guard.observe("three", call()).iteration == 2


# -- threads and forks ----------------------------------------------------------------------------


def test_counts_are_exact_under_64_threads() -> None:
    guard = make_guard()
    barrier = threading.Barrier(64)

    def work(number: int) -> list[Observation]:
        barrier.wait()
        shared = [guard.observe("shared", call()) for _ in range(25)]
        own = [guard.observe(f"run {number}", call()) for _ in range(25)]
        assert [at for at, each in enumerate(own, 1) if each.utterances] == [3, 5, 10, 20]
        return shared

    with ThreadPoolExecutor(64) as pool:
        told = [each for result in pool.map(work, range(64)) for each in result]
    assert sorted(each.iteration for each in told) == list(range(1, 64 * 25 + 1))
    assert max(each.repeat_count for each in told) == 64 * 25
    spoken = sorted((each.report_no, each.iteration) for one in told for each in one.utterances)
    assert spoken == list(enumerate([3, 5, 10, 20, 40, 80, 160, 320, 640, 1280], 1))
    assert sum(len(each.changes) for each in told) == 2


def test_a_forked_child_does_not_wait_for_a_thread_that_it_does_not_have() -> None:
    guard = make_guard()
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with guard._lock:
            held.set()
            done.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    guard.after_fork()
    assert guard.observe("run", call()).iteration == 1
    done.set()
    holder.join()


def test_what_others_show_again_changes_nothing() -> None:
    steps = [
        call(call_id=str(n), source=source)
        for n in range(5)
        for source in (Source.HOOK, Source.MESSAGES, Source.SPAN)
    ]
    told = observe(steps)
    assert [at for at, each in enumerate(told, 1) if each.utterances] == [7, 13]
    assert [each.counted for each in told[:3]] == [True, False, False]
    assert told[1].iteration == 1


@pytest.mark.parametrize("shape", [lambda odd: odd, lambda odd: {"q": odd}, lambda odd: [odd]])
def test_no_step_of_any_kind_runs_code_of_the_values(shape: Callable[[object], object]) -> None:
    value = shape(attribute("__class__"))
    touched.clear()
    guard = make_guard()
    guard.observe("run", Sighting(Kind.HANDOFF, "bob", args=value, agent="al"))
    for _ in range(3):
        guard.observe("run", Sighting(Kind.TOOL, "t", args=value, result=value, agent="al"))
        guard.observe("run", Sighting(Kind.TOOL, "bob", args=value, result="x", agent="al"))
        guard.observe(
            "run", Sighting(Kind.MODEL, "m", args=value, result=value, thought=value, agent="bob")
        )
    assert touched == []
