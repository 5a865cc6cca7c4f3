"""What is declared about tools: polls, reads, what cannot be undone, and how often at most."""

from __future__ import annotations

import pytest

from otel_loopguard.core.action import Action
from otel_loopguard.core.decision import GO, Verdict, Why
from otel_loopguard.core.declared import MAX_CALLS, MAX_TOOLS, over_limit
from otel_loopguard.core.model import MISSING, Kind, Outcome, Pattern, Sighting
from otel_loopguard.core.traits import Traits
from otel_loopguard.core.whys import why_note
from tests.core.steps import PAGE, call, failure, make_guard, page, seen, utterances

POLL = {"status": Traits(poll=True)}
READ = {"search": Traits(idempotent=True)}
PAY = {"pay": Traits(irreversible=True)}
USER = Sighting(Kind.USER, "user", args="go on")
STATE = "The export is in state three of seven. " * 9


def decide(guard, sighting, call_id=None, run="run", **more):
    key = guard.fingerprinter.of_args(sighting.args)
    return guard.decide(run, sighting.action, key, call_id, **more)


def verdicts(guard, sightings, run="run", **more):
    """Make the calls that the guard lets go, or only would not; what it said of each."""
    said = []
    for each in sightings:
        decision = decide(guard, each, run=run, **more)
        if decision.verdict is Verdict.GO or decision.shadow:
            guard.observe(run, each)
        said.append(decision.verdict.value)
    return said


# Polls


def test_equal_results_of_a_poll_are_waiting_on_its_own_scale():
    status = call("status", result=STATE)
    loop = [(3, "hard_loop", "warning"), (5, "hard_loop", "critical")]
    assert utterances([status] * 9)[:2] == loop
    assert utterances([status] * 9, make_guard(tools=POLL)) == []
    said = utterances([status] * 21, make_guard(tools=POLL))
    assert said == [(10, "hard_loop", "warning"), (20, "hard_loop", "critical")]


def test_a_poll_may_ask_for_several_things_in_turn():
    several = [call("status", n, STATE) for n in range(9)]
    assert utterances(several)
    assert utterances(several, make_guard(tools=POLL)) == []


def test_a_poll_in_a_lap_with_another_tool_is_no_oscillation_before_its_scale():
    lap = [call("status", result=STATE), call("look", result=PAGE)]
    assert utterances(lap * 5)[0][1] == "tool_oscillation"
    assert utterances(lap * 9, make_guard(tools=POLL)) == []
    assert utterances(lap * 10, make_guard(tools=POLL))[0][1:] == ("tool_oscillation", "warning")


def test_a_poll_that_fails_is_a_storm_all_the_same():
    said = utterances([failure("status")] * 3, make_guard(tools=POLL))
    assert said == [(3, "retry_storm", "warning")]


def test_only_the_tool_that_is_declared_polls():
    assert utterances([call("search")] * 3, make_guard(tools=POLL)) == [(3, "hard_loop", "warning")]


def test_a_poll_asked_twice_at_once_is_one_that_waits():
    status = [call("status", n, STATE, round=f"r{at}") for at in range(9) for n in (1, 2)]
    assert utterances(status, make_guard(tools=POLL)) == []


# Reads


def epoch(guard):
    return guard._runs.get("run").deeds.evidence.epoch


@pytest.mark.parametrize("result", [PAGE, "saved"])
@pytest.mark.parametrize(
    ("traits", "changes"),
    [(Traits(), 1), (Traits(idempotent=True), 0), (Traits(irreversible=True), 1)],
)
def test_what_only_reads_starts_no_new_epoch(traits, changes, result):
    guard = make_guard(tools={"update_view": traits})
    guard.observe("run", call("look", result="saved"))
    before = epoch(guard)
    guard.observe("run", call("update_view", result=result, outcome=Outcome.OK))
    guard.observe("run", call("update_view", "y", result=result, outcome=Outcome.OK))
    assert (epoch(guard) - before >= 1) == bool(changes)


def test_what_cannot_be_undone_changes_something_whatever_its_name():
    guard = make_guard(tools={"check": Traits(irreversible=True)})
    guard.observe("run", call("check"))
    assert epoch(guard) == 1
    guard = make_guard()
    guard.observe("run", call("check"))
    assert epoch(guard) == 0


def clock(n):
    return call(result=f"At 2026-12-01T10:00:{n:02d}Z the page says what it said before. " + PAGE)


def test_a_read_is_held_back_at_once_though_its_results_are_only_alike():
    for tools, verdict in ((None, "go"), (READ, "nudge")):
        guard = make_guard(action=Action.NUDGE, tools=tools)
        for n in range(20):
            if any(u.finding for u in guard.observe("run", clock(n)).utterances):
                break
        assert decide(guard, clock(n)).verdict.value == verdict


def test_another_read_is_not_held_back_by_doubtful_evidence():
    guard = make_guard(action=Action.NUDGE, tools=READ)
    empty = [call(args=n, result="", outcome=Outcome.EMPTY) for n in range(6)]
    assert verdicts(guard, empty) == ["go"] * 6
    assert decide(guard, call(args="new")) == GO


def test_what_is_called_for_what_it_does_may_say_the_same_each_time():
    bills = [
        call("pay", f"bill {n}", "The bill is paid, and the receipt is in your box.")
        for n in range(20)
    ]
    assert utterances(bills)
    assert utterances(bills, make_guard(tools=PAY)) == []


# At most so often

TWICE = {"search": Traits(max_repeats=2)}


def news(count):
    """An equal call that gives something else each time, so that no detector minds."""
    return [call(result=page(n)) for n in range(count)]


def test_a_limit_holds_back_what_no_detector_minds():
    assert verdicts(make_guard(action=Action.NUDGE), news(6)) == ["go"] * 6
    guard = make_guard(action=Action.NUDGE, tools=TWICE)
    assert verdicts(guard, news(6)) == ["go"] * 2 + ["nudge"] * 4
    guard = make_guard(action=Action.BREAK, tools=TWICE)
    assert verdicts(guard, news(5)) == ["go"] * 2 + ["nudge"] * 2 + ["halt"]


def test_a_limit_says_what_it_is_and_is_the_same_loop_each_time():
    guard = make_guard(action=Action.NUDGE, tools=TWICE)
    verdicts(guard, news(2))
    first, second = decide(guard, call()), decide(guard, call())
    assert first.why is Why.LIMIT
    assert first.finding.pattern is Pattern.HARD_LOOP
    assert first.finding.repeats == 2
    assert "may be called 2 times" in first.finding.evidence
    assert (first.nth, second.nth) == (1, 2)
    assert first.finding_id == second.finding_id != ""


@pytest.mark.parametrize("language", ["en", "de", "tlh"])
@pytest.mark.parametrize("why", [why for why in Why if why is not Why.LOOP])
@pytest.mark.parametrize("times", [1, 3])
def test_a_note_says_why_it_is_for_another_reason_than_a_loop(language, why, times):
    finding = over_limit("search", "key", times, times)
    said = why_note(finding, why, language=language)
    assert "{" not in said
    often = {"en": ("once", "3 times"), "de": ("einmal", "3 Mal"), "tlh": ("once", "3 times")}
    assert why is not Why.LIMIT or often[language][times > 1] in said
    assert why_note(finding, Why.LOOP, language=language) is None
    unknown = finding._replace(action=None)
    assert ("a tool" in why_note(unknown, why, language=language)) == (why is Why.LIMIT)


def test_after_a_yes_the_next_one_too_many_is_asked_about_at_once():
    guard = asking(tools={"pay": Traits(irreversible=True, max_repeats=1)})
    pages = [call("pay", result=page(n)) for n in range(4)]
    assert verdicts(guard, pages, asks=True)[-1] == "ask"
    guard.observe("run", pages[3])
    assert decide(guard, pages[3], asks=True).verdict is Verdict.ASK


def test_a_limit_is_for_equal_arguments_in_one_run_until_the_user_speaks():
    guard = make_guard(action=Action.NUDGE, tools=TWICE)
    verdicts(guard, news(2))
    assert decide(guard, call(args="y")) == GO
    assert decide(guard, call(), run="other") == GO
    assert decide(guard, call()).verdict is Verdict.NUDGE
    guard.observe("run", USER)
    assert decide(guard, call()) == GO


def test_a_run_that_ended_is_forgotten_unless_it_may_go_on():
    guard = make_guard(action=Action.NUDGE, tools=TWICE)
    verdicts(guard, news(2))
    guard.end("run", "answer", keep=True)
    assert decide(guard, call()).verdict is Verdict.NUDGE
    guard.end("run", "answer")
    assert decide(guard, call()) == GO


def test_calls_at_once_count_before_any_of_them_is_over():
    guard = make_guard(action=Action.NUDGE, tools=TWICE)
    said = [decide(guard, call(), f"call_{n}").verdict for n in range(3)]
    assert said == [Verdict.GO, Verdict.GO, Verdict.NUDGE]


def test_one_call_id_is_one_call_until_the_model_speaks_again():
    guard = make_guard(action=Action.NUDGE, tools=TWICE)
    assert [decide(guard, call(), "call_0").verdict for _ in range(5)] == [Verdict.GO] * 5
    for verdict in (Verdict.GO, Verdict.NUDGE):
        guard.observe("run", seen(Kind.MODEL, result="Once more."))
        assert decide(guard, call(), "call_0").verdict is verdict
    guard.observe("run", seen(Kind.COMPACT))
    assert decide(guard, call(), "call_0").verdict is Verdict.NUDGE


def test_arguments_that_were_not_captured_are_no_repeat():
    guard = make_guard(action=Action.BREAK, tools=TWICE)
    assert verdicts(guard, [Sighting(Kind.TOOL, "search", args=MISSING)] * 9) == ["go"] * 9


def test_a_loop_that_stands_comes_before_the_limit():
    guard = make_guard(action=Action.NUDGE, tools={"search": Traits(max_repeats=9)})
    verdicts(guard, [call()] * 3)
    assert decide(guard, call()).why is Why.LOOP


def test_a_limit_may_be_a_shadow_or_be_left_alone():
    guard = make_guard(action=Action.SHADOW, tools=TWICE)
    assert verdicts(guard, news(3)) == ["go", "go", "nudge"]
    assert decide(guard, call()).shadow
    guard = make_guard(
        action=Action.BREAK, actions={Pattern.HARD_LOOP: Action.OBSERVE}, tools=TWICE
    )
    assert verdicts(guard, news(9)) == ["go"] * 9
    assert verdicts(make_guard(tools=TWICE), news(9)) == ["go"] * 9


def test_observed_only_it_is_told_from_the_first_one_too_many():
    said = utterances(news(6), make_guard(tools=TWICE))
    assert said == [(3, "hard_loop", "warning"), (5, "hard_loop", "critical")]
    once = {"search": Traits(max_repeats=1)}
    assert utterances(news(1), make_guard(tools=once)) == []
    between = [*news(2), USER, *news(2)]
    assert utterances(between, make_guard(tools=TWICE)) == []
    unknown = [Sighting(Kind.TOOL, "search", result=page(n)) for n in range(6)]
    assert utterances(unknown, make_guard(tools=TWICE)) == []


# What cannot be undone


def pays(**more):
    return call("pay", result="The payment of 14 euros was made, as it was said. " * 9, **more)


def asking(action=Action.BREAK, tools=PAY, **more):
    guard = make_guard(action=action, tools=tools, **more)
    guard.decides = True
    return guard


def test_before_a_run_is_ended_a_human_is_asked_about_what_cannot_be_undone():
    guard = asking()
    assert verdicts(guard, [pays()] * 6, asks=True) == ["go"] * 3 + ["nudge"] * 2 + ["ask"]
    assert verdicts(asking(), [pays()] * 6) == ["go"] * 3 + ["nudge"] * 2 + ["halt"]
    assert verdicts(asking(tools={}), [pays()] * 6, asks=True)[-1] == "halt"


@pytest.mark.parametrize("action", [Action.OBSERVE, Action.NUDGE])
def test_who_can_be_asked_is_asked_whatever_else_is_done_about_loops(action):
    guard = asking(action)
    assert verdicts(guard, [pays()] * 6, asks=True)[-1] == "ask"
    assert verdicts(guard, [call()] * 9, asks=True)[-1] != "ask"


def test_in_a_shadow_nobody_is_asked():
    guard = asking(Action.SHADOW)
    assert verdicts(guard, [pays()] * 6, asks=True)[-1] == "ask"
    assert decide(guard, pays(), asks=True).shadow


def test_a_call_that_was_allowed_is_asked_about_again_when_it_comes_again():
    guard = asking()
    verdicts(guard, [pays()] * 6, asks=True)
    guard.observe("run", pays())
    assert decide(guard, pays(), asks=True).verdict is Verdict.ASK


def test_a_call_that_was_refused_is_not_made_and_not_asked_about_until_the_user_speaks():
    guard = asking()
    verdicts(guard, [pays()] * 5, asks=True)
    decision = decide(guard, pays(), asks=True)
    key = guard.fingerprinter.of_args(pays().args)
    guard.refuse("run", "pay", key, decision)
    guard.observe("run", call("look", result=page(1)))
    for asks in (True, False):
        again = decide(guard, pays(), asks=asks)
        assert again.verdict is Verdict.HALT
        assert again.why is Why.REFUSED
        assert again.finding == decision.finding
    assert decide(guard, pays(), run="other", asks=True) == GO
    guard.observe("run", USER)
    assert decide(guard, pays(), asks=True) == GO


def refused(tool="book", **more):
    return call(tool, result="not allowed", outcome=Outcome.REFUSED, **more)


def test_a_critical_guardrail_loop_has_a_human_asked_before_anything_that_cannot_be_undone():
    guard = asking()
    for n in range(4):
        guard.observe("run", refused(args=n))
    assert decide(guard, pays(), asks=True) == GO
    guard.observe("run", refused(args=5))
    asked = decide(guard, pays(), asks=True)
    assert asked.verdict is Verdict.ASK
    assert asked.finding.pattern is Pattern.GUARDRAIL_LOOP
    assert asked.finding_id
    assert decide(guard, pays()) == GO
    assert decide(guard, call("look"), asks=True) == GO
    guard.observe("run", USER)
    assert decide(guard, pays(), asks=True) == GO


def test_so_have_three_different_patterns():
    guard = asking()
    steps = [*[call()] * 3, *[failure()] * 3]
    for each in steps:
        guard.observe("run", each)
    assert decide(guard, pays(), asks=True) == GO
    for n in range(3):
        guard.observe("run", refused(args=n))
    assert decide(guard, pays(), asks=True).verdict is Verdict.ASK
    unknown = Sighting(Kind.TOOL, "pay", args=MISSING)
    assert decide(guard, unknown, asks=True).verdict is Verdict.ASK


def test_what_was_refused_and_cannot_be_undone_is_asked_about_when_it_is_tried_again():
    guard = asking(tools={"book": Traits(irreversible=True)})
    for _ in range(3):
        guard.observe("run", refused())
    assert decide(guard, refused(), asks=True).verdict is Verdict.ASK
    assert decide(guard, refused()).verdict is Verdict.NUDGE


def test_beyond_its_limit_a_call_gets_notes_and_then_a_human():
    guard = asking(tools={"pay": Traits(irreversible=True, max_repeats=1)})
    said = verdicts(guard, [call("pay", result=page(n)) for n in range(4)], asks=True)
    assert said == ["go", "nudge", "nudge", "ask"]


# How it is declared


def test_code_and_settings_say_it_together():
    guard = make_guard(tools={"pay": Traits(max_repeats=3)}, action=Action.BREAK)
    guard.declare("pay", Traits(irreversible=True, max_repeats=5))
    guard.declare("pay", Traits(irreversible=True, max_repeats=5))
    assert guard._declared.tools.get("pay") == Traits(irreversible=True, max_repeats=3)
    assert verdicts(guard, [call("pay", result=page(n)) for n in range(4)])[-1] == "nudge"
    guard.declare("pay", Traits(poll=True))
    assert guard._declared.tools.get("pay") == Traits(poll=True, max_repeats=3)


def test_what_is_declared_twice_is_no_read_if_it_cannot_be_undone():
    both = Traits(idempotent=True).and_also(Traits(irreversible=True, max_repeats=1))
    assert both == Traits(irreversible=True, max_repeats=1)
    assert Traits(max_repeats=1).and_also(Traits()) == Traits(max_repeats=1)


def test_a_limit_that_code_declares_is_watched():
    guard = make_guard()
    guard.declare("search", Traits(max_repeats=2))
    assert utterances(news(3), guard) == [(3, "hard_loop", "warning")]


@pytest.mark.parametrize(
    "odd",
    [
        Traits(idempotent=True, irreversible=True),
        *[Traits(max_repeats=limit) for limit in (0, -1, True, 1.5)],  # type: ignore[arg-type]
    ],
)
def test_odd_declarations_are_refused(odd):
    with pytest.raises(ValueError, match=r"declare one|max_repeats"):
        odd.check()
    assert Traits(poll=True, max_repeats=1).check() == Traits(poll=True, max_repeats=1)


def test_all_that_is_remembered_is_bounded():
    guard = asking(tools={"search": Traits(max_repeats=1), **PAY})
    for n in range(MAX_TOOLS + 5):
        guard.declare(f"tool_{n}", Traits(poll=True))
    assert len(guard._declared.tools) <= MAX_TOOLS
    guard.declare("search", Traits(max_repeats=1))
    for n in range(MAX_CALLS + 5):
        decide(guard, call(args=n), f"call_{n}")
        guard.refuse("run", "pay", f"{n}", GO)
    made = guard._declared._runs["run"]
    assert len(made.times) == len(made.by_id) == len(made.refused) == MAX_CALLS
