"""What becomes of a request to a model while its run is in a loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard.core.action import Action
from otel_loopguard.core.climbs import MAX_LOOPS, Climbs
from otel_loopguard.core.decision import GO, Decision, Verdict
from otel_loopguard.core.detectors import BUILTIN
from otel_loopguard.core.fingerprint import Fingerprinter
from otel_loopguard.core.guard import Guard
from otel_loopguard.core.model import Kind, Outcome, Pattern, Severity, Sighting, Source
from otel_loopguard.core.recovery import Remedy
from otel_loopguard.core.traits import Traits
from tests.core.steps import PAGE, call

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

ALL = frozenset(Remedy)
TALK = "I will look into it now and then tell you all that there is to know about this."
SEEN = Source.MESSAGES
"""Calls that nobody can hold back: they are made by the time that they are seen."""


def guard_that(action: Action = Action.BREAK, **more: object) -> Guard:
    detectors = [detector() for detector in BUILTIN.values()]
    return Guard(detectors, Fingerprinter(b"key"), action=action, **more)  # type: ignore[arg-type]


def model(text: str = TALK, **more: object) -> Sighting:
    return Sighting(Kind.MODEL, "m", result=text, **more)  # type: ignore[arg-type]


def asked(guard: Guard, can: AbstractSet[Remedy] = ALL) -> Decision:
    return guard.advise("run", lambda: can)


def rungs(
    guard: Guard,
    laps: Iterable[list[Sighting]],
    can: AbstractSet[Remedy] = ALL,
) -> list[str]:
    """What is done before each answer of a model that takes no notice; ends with the end."""
    said: list[str] = []
    for lap in laps:
        decision = asked(guard, can)
        climb = decision.climb
        said.append("" if climb is None else climb.rung.remedy.value)
        if decision.verdict is Verdict.HALT:
            break
        for sighting in lap:
            guard.observe("run", sighting)
    return said


def loop(sighting: Sighting, times: int = 9) -> list[list[Sighting]]:
    """The model asks for a call, and it is made, and so on; each answer has something to say."""
    return [[model(f"{n} {'x' * n}", acts=True), sighting] for n in range(times)]


def seen(**more: object) -> Sighting:
    return call(**more)._replace(source=SEEN)  # type: ignore[arg-type]


REFUSED = seen(result="no", outcome=Outcome.REFUSED)
INVALID = seen(result="field q is missing", outcome=Outcome.INVALID_ARGS)


@pytest.mark.parametrize(
    ("laps", "expected"),
    [
        (
            [[model()]] * 9,
            ["", "", "", "force_action_prompt", "lower_temperature", "end_run"],
        ),
        (
            loop(seen()),
            ["", "", "", "inject_correction", "force_final_answer", "end_run"],
        ),
        (
            loop(INVALID),
            ["", "", "", "inject_tool_schema", "lower_temperature", "end_run"],
        ),
        (
            loop(REFUSED),
            ["", "", "", *["inject_correction"] * 2, "escalate_to_human", "end_run"],
        ),
        (
            [[model(f"{n} " * n, finish="length")] for n in range(9)],
            [*[""] * 5, "chunk_result", "summarise_context", "end_run"],
        ),
    ],
    ids=["reflection", "hard loop", "invalid arguments", "refusals", "cut off"],
)
def test_the_whole_ladder(laps: list[list[Sighting]], expected: list[str]) -> None:
    assert rungs(guard_that(), laps) == expected
    assert rungs(guard_that(Action.SHADOW), laps) == expected
    assert set(rungs(guard_that(Action.OBSERVE), laps)) == {""}


def test_what_cannot_be_done_is_skipped_and_said() -> None:
    guard = guard_that()
    steers = ALL - {Remedy.LOWER_TEMPERATURE}
    for _ in range(3):
        guard.observe("run", model())
    said: list[Decision] = []
    for _ in range(3):
        said.append(asked(guard, steers))
        guard.observe("run", model())
    climbs = [each.climb for each in said if each.climb is not None]
    assert [(each.rung.remedy.value, [s.value for s in each.skipped]) for each in climbs] == [
        ("force_action_prompt", []),
        ("force_action_prompt", ["lower_temperature"]),
        ("end_run", ["lower_temperature"]),
    ]
    assert [each.nth for each in said] == [1, 2, 3]


def test_where_nothing_can_be_done_only_what_is_critical_is_stopped() -> None:
    guard = guard_that()
    said = rungs(guard, [[model()]] * 9, frozenset())
    assert said == [""] * 5 + ["end_run"]
    assert asked(guard, frozenset()).finding is not None


def test_a_nudge_is_a_word_to_the_model_and_never_more() -> None:
    said = rungs(guard_that(Action.NUDGE), [[model()]] * 8)
    assert said == [""] * 3 + ["force_action_prompt"] * 5


def test_a_rung_is_given_time_to_work() -> None:
    guard = guard_that()
    for _ in range(3):
        guard.observe("run", model())
    assert asked(guard).verdict is Verdict.NUDGE
    guard.observe("run", model("Quite another thing that nobody has said in this run so far."))
    assert asked(guard) == GO


def test_one_request_gets_one_answer_however_often_it_is_sent() -> None:
    guard = guard_that()
    for _ in range(3):
        guard.observe("run", model())
    first = asked(guard)
    again = asked(guard)
    assert again == first._replace(told=True)
    guard.observe("run", Sighting(Kind.MODEL, "m", error="RateLimitError"))
    assert asked(guard) == again
    guard.observe("run", model())
    assert asked(guard).nth == first.nth + 1


def test_calls_that_can_be_held_back_are_left_to_that() -> None:
    """The note stands in the place of the result; then comes what only the request can do."""
    guard = guard_that()
    key = guard.fingerprinter.of_args(call().args)
    said: list[str] = []
    for n in range(6):
        decision = asked(guard)
        said.append(decision.climb.rung.remedy.value if decision.climb else "")
        guard.observe("run", model(f"{n} {'x' * n}", acts=True))
        held = guard.decide("run", "search", key, f"call_{n}")
        if held.climb is None:
            guard.observe("run", call())
        else:
            said.append(f"held: {held.climb.rung.remedy.value}")
    assert said == [
        *["", "", "", ""],
        "held: inject_correction",
        "",
        "held: inject_correction",
        "force_final_answer",
        "held: end_run",
    ]
    assert asked(guard) == GO


def test_where_a_request_allows_nothing_the_calls_are_held_back_still() -> None:
    guard = guard_that()
    key = guard.fingerprinter.of_args(call().args)
    for _ in range(3):
        guard.observe("run", call())
    for n in range(2):
        guard.observe("run", model(f"{n} {'x' * n}", acts=True))
        assert guard.decide("run", "search", key).verdict is Verdict.NUDGE
        assert asked(guard, ALL - {Remedy.FORCE_FINAL_ANSWER}) == GO
    assert guard.decide("run", "search", key).verdict is Verdict.HALT


def test_calls_that_somebody_asks_about_are_left_to_that_too() -> None:
    guard = guard_that()
    key = guard.fingerprinter.of_args(call().args)
    for _ in range(3):
        assert guard.decide("run", "search", key) == GO
        guard.observe("run", seen())
    assert asked(guard) == GO
    for n in range(40):  # so many tools are not remembered
        assert guard.decide("run", f"tool {n}", key) == GO
    guard.observe("run", seen())
    assert asked(guard).verdict is Verdict.NUDGE


def test_the_end_says_what_was_never_done() -> None:
    guard = guard_that()
    key = guard.fingerprinter.of_args(call().args)
    for _ in range(3):
        guard.observe("run", call())
    held = [guard.decide("run", "search", key) for _ in range(3)]
    assert [each.climb.skipped for each in held if each.climb] == [
        (),
        (),
        (Remedy.FORCE_FINAL_ANSWER,),
    ]


@pytest.mark.parametrize(
    "between",
    [
        Sighting(Kind.USER, "user", args="go on"),
        Sighting(Kind.EFFECT, "effect"),
        call("fetch", "y", "A page that nobody has seen before in this run. " * 9),
    ],
    ids=["user", "effect", "news"],
)
def test_what_changes_the_situation_ends_it(between: Sighting) -> None:
    guard = guard_that()
    for _ in range(3):
        guard.observe("run", model())
    guard.observe("run", between)
    assert asked(guard) == GO


def test_a_user_who_speaks_lets_the_ladder_begin_anew() -> None:
    guard = guard_that()
    rungs(guard, loop(seen(), 5))
    guard.observe("run", Sighting(Kind.USER, "user", args="go on"))
    assert next(filter(None, rungs(guard, loop(seen(), 4)))) == "inject_correction"


def test_a_loop_that_is_left_is_left_alone() -> None:
    """Calls that say nothing new are no progress, but they are another thing than the loop."""
    guard = guard_that()
    rungs(guard, loop(seen(), 3))
    guard.observe("run", seen(name="fetch", args="y", result=""))
    assert asked(guard) == GO


def test_doubtful_evidence_is_not_acted_on() -> None:
    guard = guard_that()
    pages = [seen(result=f"[{n}s] " + PAGE) for n in range(6)]
    spoken = [bool(guard.observe("run", each).utterances) for each in pages]
    assert any(spoken)
    assert asked(guard) == GO


def test_a_model_that_does_not_answer_is_told_nothing() -> None:
    guard = guard_that()
    for _ in range(20):
        guard.observe("run", Sighting(Kind.MODEL, "m", error="RateLimitError"))
    assert guard.is_stuck("run")
    assert asked(guard) == GO


def test_the_worst_loop_comes_first() -> None:
    guard = guard_that()
    for n in range(6):
        guard.observe("run", seen())
        guard.observe("run", model(acts=n < 5))
    decision = asked(guard)
    assert decision.finding is not None
    assert decision.finding.severity is Severity.CRITICAL


def test_a_pattern_that_is_only_observed_is_left_alone() -> None:
    guard = guard_that(actions={Pattern.REFLECTION_PARALYSIS: Action.OBSERVE})
    assert set(rungs(guard, [[model()]] * 9)) == {""}


def refused(guard: Guard, times: int, **more: object) -> None:
    """The model asks for a call that is refused, and again."""
    for lap in loop(call(result="no", outcome=Outcome.REFUSED)._replace(**more), times):  # type: ignore[arg-type]
        asked(guard)
        for sighting in lap:
            guard.observe("run", sighting)


IRREVERSIBLE = {"search": Traits(irreversible=True)}


@pytest.mark.parametrize(
    ("source", "asks", "verdict"),
    [
        (Source.HOOK, True, Verdict.GO),
        (SEEN, True, Verdict.ASK),
        (Source.HOOK, False, Verdict.ASK),
        (SEEN, False, Verdict.ASK),
    ],
)
def test_where_a_human_is_asked_before_the_next_call_the_run_goes_on_until_then(
    source: Source, asks: bool, verdict: Verdict
) -> None:
    guard = guard_that(tools=IRREVERSIBLE)
    refused(guard, 5, source=source)
    assert guard.advise("run", lambda: ALL, asks=asks).verdict is verdict
    guard = guard_that()
    refused(guard, 5, source=source)
    assert guard.advise("run", lambda: ALL, asks=True).verdict is Verdict.ASK


@pytest.mark.parametrize("asks", [False, True])
def test_a_human_is_asked_before_a_run_ends_whose_calls_cannot_be_undone(asks: bool) -> None:
    """Where nobody can ask before the calls themselves."""
    guard = guard_that(tools=IRREVERSIBLE)
    said: list[str] = []
    for lap in loop(seen()):
        decision = guard.advise("run", lambda: ALL, asks=asks)
        said.append("" if decision.climb is None else decision.climb.rung.remedy.value)
        if decision.verdict is Verdict.ASK:
            guard.answer("run", decision, allowed=True)
        for sighting in lap:
            guard.observe("run", sighting)
    steps = ["inject_correction", "force_final_answer", *["escalate_to_human"] * asks, "end_run"]
    assert said[3 : 3 + len(steps)] == steps
    assert all(each == "end_run" for each in said[3 + len(steps) :])


def test_who_cannot_ask_anybody_says_that_a_human_was_passed_over() -> None:
    guard = guard_that()
    refused(guard, 5)
    decision = asked(guard, ALL - {Remedy.ESCALATE_TO_HUMAN})
    assert decision.verdict is Verdict.HALT
    assert decision.climb is not None
    assert decision.climb.skipped == (Remedy.ESCALATE_TO_HUMAN,)


def test_a_human_is_asked_once_and_a_yes_is_one_step_of_grace() -> None:
    guard = guard_that()
    refused(guard, 5)
    question = asked(guard)
    assert question.verdict is Verdict.ASK
    guard.answer("run", question, allowed=True)
    assert asked(guard).verdict is Verdict.GO, "it is sent again"
    refused(guard, 1)
    assert asked(guard).verdict is Verdict.HALT


def test_after_a_no_the_request_is_never_sent() -> None:
    guard = guard_that()
    refused(guard, 5)
    question = asked(guard)
    guard.answer("run", question, allowed=False)
    for _ in range(3):
        again = asked(guard)
        assert (again.verdict, again.told) == (Verdict.HALT, True)
        assert again.finding == question.finding


def test_a_yes_is_one_more_note_where_calls_are_held_back() -> None:
    """There it is the call itself that ends the run, if nobody is asked before."""
    guard = guard_that()
    key = guard.fingerprinter.of_args(call().args)
    for _ in range(4):
        guard.observe("run", call())
    for _ in range(2):
        held = guard.decide("run", "search", key)
        assert held.verdict is Verdict.NUDGE
    guard.answer("run", held, allowed=True)
    verdicts = [guard.decide("run", "search", key).verdict for _ in range(2)]
    assert verdicts == [Verdict.NUDGE, Verdict.HALT]


def test_a_yes_for_the_run_is_none_for_a_call_that_cannot_be_undone() -> None:
    guard = guard_that(tools={"pay": Traits(irreversible=True)})
    refused(guard, 5)
    question = guard.advise("run", lambda: ALL, asks=True)
    guard.answer("run", question, allowed=True)
    key = guard.fingerprinter.of_args({"bill": 7})
    assert guard.decide("run", "pay", key, asks=True).verdict is Verdict.ASK


def test_an_answer_that_comes_too_late_changes_nothing() -> None:
    guard = guard_that()
    refused(guard, 5)
    question = asked(guard)
    guard.answer("another run", question, allowed=False)
    guard.end("run", "closed")
    guard.answer("run", question, allowed=False)
    assert asked(guard) == GO
    guard.observe("run", call())
    guard.answer("run", question, allowed=False)
    assert asked(guard) == GO
    refused(guard, 5)
    guard.answer("run", GO, allowed=False)
    assert asked(guard).verdict is Verdict.ASK, "nobody was asked anything"


def test_a_request_that_is_no_part_of_the_loop_is_let_alone() -> None:
    guard = guard_that()
    rungs(guard, [[model()]] * 3)
    assert guard.advise("run", lambda: None) == GO
    assert asked(guard).verdict is Verdict.NUDGE


def test_a_loop_of_no_tool_is_asked_about_nowhere() -> None:
    guard = guard_that()
    rungs(guard, [[model()]] * 5, frozenset())
    assert guard.advise("run", frozenset, asks=True).verdict is Verdict.HALT


def test_an_unknown_run_has_nothing_to_fear() -> None:
    guard = guard_that()
    assert asked(guard) == GO
    assert guard.peek("run") is None


@given(st.lists(st.sampled_from("abc"), max_size=30), st.frozensets(st.sampled_from(list(Remedy))))
def test_nothing_is_done_but_what_can_be(names: str, can: frozenset[Remedy]) -> None:
    guard = guard_that()
    for name in names:
        decision = asked(guard, can)
        if decision.climb is not None:
            assert decision.climb.rung.remedy in can | {Remedy.END_RUN}
        guard.observe("run", model(name * 40, acts=True))
        guard.observe("run", seen(name=name))


def test_the_ladders_of_a_run_are_bounded() -> None:
    climbs = Climbs()
    for n in range(2 * MAX_LOOPS):
        climbs.of(str(n)).nth = n
    assert climbs.of("0").nth == 0
    assert climbs.of(str(2 * MAX_LOOPS - 1)).nth == 2 * MAX_LOOPS - 1
