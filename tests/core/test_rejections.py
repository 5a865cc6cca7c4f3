"""guardrail_loop and tool_hallucination: calls that are turned down again and again."""

from __future__ import annotations

import pytest

from otel_loopguard.core.model import Kind, Outcome, Sighting
from otel_loopguard.core.rejections import MAX_TOOLS, NEAR
from tests.core.steps import PAGE, SECOND, START, call, make_guard, observe, seen, utterances

REFUSALS = (
    "Permission denied.",
    "You are not allowed to do that.",
    "Request blocked by policy 7.",
    "Zugriff verweigert",
    "没有权限",
)


def refused(number: int, tool: str = "shell", **more: object) -> Sighting:
    return call(tool, f"spelling {number}", REFUSALS[number % 5], outcome=Outcome.REFUSED, **more)


def unknown(number: int, **more: object) -> Sighting:
    return call(f"tool {number}", "x", "no such tool", outcome=Outcome.UNKNOWN_TOOL, **more)


def unfit(number: int, complaint: str = "field required: city") -> Sighting:
    return call("book", number, complaint, outcome=Outcome.INVALID_ARGS, error="ValueError")


def works(number: int, tool: str = "read") -> Sighting:
    return call(tool, f"page {number}", f"{PAGE}{number}")


# -- guardrail_loop -------------------------------------------------------------------------------


def test_one_tool_refuses_whatever_the_call_and_the_wording() -> None:
    assert utterances([refused(number) for number in range(5)]) == [
        (3, "guardrail_loop", "warning"),
        (5, "guardrail_loop", "critical"),
    ]


@pytest.mark.parametrize("text", REFUSALS)
def test_refusals_are_known_in_several_languages(text: str) -> None:
    steps = [call("shell", number, text, error="PermissionError") for number in range(3)]
    assert utterances(steps) == [(3, "guardrail_loop", "warning")]


def test_a_way_around_by_several_tools_is_refused_too() -> None:
    steps = [refused(number, f"tool {number}") for number in range(8)]
    assert utterances(steps) == [
        (5, "guardrail_loop", "warning"),
        (8, "guardrail_loop", "critical"),
    ]
    with_news = [*steps[:3], works(1), *steps[3:6]]
    assert utterances(with_news) == []


def test_what_is_done_between_does_not_matter_for_one_tool() -> None:
    steps = [refused(0), works(0), refused(1), works(1), refused(2)]
    assert utterances(steps) == [(5, "guardrail_loop", "warning")]


def test_a_call_that_is_let_through_ends_it() -> None:
    steps = [refused(0), refused(1), works(0, "shell"), refused(2), refused(3)]
    assert utterances(steps) == []


def test_a_call_that_fails_is_not_let_through() -> None:
    failed = call("shell", "x", "O comando foi bloqueado", error="Error")
    steps = [refused(0), failed, refused(1), failed, refused(2)]
    assert ("guardrail_loop", "warning") in [each[1:] for each in utterances(steps)]
    assert utterances([refused(0), works(0, "shell"), refused(1), failed, refused(2)]) == []


def test_refusals_far_apart_have_nothing_to_do_with_each_other() -> None:
    steps: list[Sighting] = []
    for number in range(4):
        steps += [refused(number), *(works(99 * number + more) for more in range(NEAR))]
    assert utterances(steps) == []


def test_a_round_is_refused_once() -> None:
    steps = [refused(number, round="one") for number in range(5)]
    assert utterances(steps) == []


def test_who_waits_for_an_approval_may_ask_again() -> None:
    times = [START + number * 60 * SECOND for number in range(8)]
    steps = [refused(0, start_ns=at, end_ns=at + SECOND) for at in times]
    assert utterances(steps) == []


def test_a_model_that_is_asked_meanwhile_does_not_only_wait() -> None:
    """Its turn ends again and again, and a gate that takes its time will not have it."""
    steps: list[Sighting] = []
    for number in range(6):
        at = START + number * 60 * SECOND
        said = ("All of it is done.", "I am finished; nothing is left.", "Done.")[number % 3]
        steps += [
            seen(Kind.MODEL, result=said, start_ns=at, end_ns=at + SECOND),
            refused(0, "stop", start_ns=at + 50 * SECOND, end_ns=at + 50 * SECOND),
        ]
    assert utterances(steps) == [(10, "guardrail_loop", "warning")]
    assert utterances(steps[:8]) == []
    told = [each._replace(outcome=None, result='{"decision": "block", "reason": "no review"}')
            if each.kind is Kind.TOOL else each for each in steps]  # fmt: skip
    assert utterances(told) == [(10, "guardrail_loop", "warning")]


def test_each_agent_may_be_refused_once() -> None:
    steps = [refused(number, agent=f"agent {number}") for number in range(6)]
    assert utterances(steps) == []


def test_the_user_may_have_allowed_it() -> None:
    assert utterances([refused(0), refused(1), seen(Kind.USER), refused(2), refused(3)]) == []


# -- tool_hallucination ---------------------------------------------------------------------------


def test_unknown_tools_count_together() -> None:
    assert utterances([unknown(number) for number in range(5)]) == [
        (3, "tool_hallucination", "warning"),
        (5, "tool_hallucination", "critical"),
    ]


def test_to_go_on_making_up_tools_between_others_is_no_better() -> None:
    steps = [unknown(0), works(0), unknown(1), works(1), unknown(2)]
    assert utterances(steps) == [(5, "tool_hallucination", "warning")]


def test_one_slip_and_the_right_name() -> None:
    assert utterances([unknown(0), unknown(1), *(works(number) for number in range(9))]) == []


def test_the_same_complaint_about_arguments() -> None:
    assert utterances([unfit(number) for number in range(5)]) == [
        (3, "tool_hallucination", "warning"),
        (5, "tool_hallucination", "critical"),
    ]


def test_while_the_complaint_changes_the_agent_is_on_its_way() -> None:
    steps = [unfit(number, f"field required: {name}") for number, name in enumerate("abcdef")]
    assert utterances(steps[:5]) == []
    assert utterances(steps) == [(6, "tool_hallucination", "warning")]


def test_a_call_that_fits_ends_it() -> None:
    assert utterances([unfit(0), unfit(1), works(0, "book"), unfit(2), unfit(3)]) == []


def test_each_tool_has_arguments_of_its_own() -> None:
    steps = [unfit(0)._replace(action=f"tool {number}") for number in range(9)]
    assert utterances(steps) == []


def test_it_tells_no_name_that_a_model_made_up() -> None:
    told = [each for seen in observe([unknown(n) for n in range(5)]) for each in seen.utterances]
    assert len(told) == 2
    assert all(each.finding.action is None for each in told)
    assert not any("tool 1" in each.finding.evidence for each in told)


# -- bounds ---------------------------------------------------------------------------------------


def test_the_record_is_bounded_and_made_when_it_is_needed() -> None:
    guard = make_guard()
    observe([works(1)], guard)
    run = guard._runs.get("run")
    assert run is not None
    assert run.rejections is None
    observe([refused(number, f"tool {number}") for number in range(99)], guard)
    assert run.rejections is not None
    assert len(run.rejections._known) == 2 * MAX_TOOLS
    assert run.rejections.like is not None
    assert len(run.rejections.like[1].tools) == MAX_TOOLS


def test_a_refusal_after_some_work_is_a_new_story() -> None:
    """Whoever is told to go on, does, and comes back is not refused again and again."""

    def told(gates: list[Sighting], between: list[Sighting]) -> set[str]:
        steps = [step for pair in zip(gates, between, strict=True) for step in pair]
        return {pattern for _, pattern, _ in utterances(steps)}

    same, reworded = [refused(0, "stop")] * 6, [refused(number, "stop") for number in range(6)]
    edits = [call("edit", number, "ok") for number in range(6)]
    assert told(same, edits) == set()
    assert told(reworded, edits) == {"guardrail_loop"}
    assert told(same, [works(number) for number in range(6)]) == {"guardrail_loop"}
