"""Requests that are changed: always in a copy, never between a call and its result."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard.breaking.brief import Brief
from otel_loopguard.breaking.counsel import Change
from otel_loopguard.breaking.reminders import ConstraintReminder, ObjectiveAnchor
from otel_loopguard.instrumentation.wire import anthropic_messages, openai_chat, openai_responses
from otel_loopguard.instrumentation.wire.forms import LONG, Body

WIRES = {"chat": openai_chat, "responses": openai_responses, "messages": anthropic_messages}
SCHEMA = {"type": "object", "properties": {"query": {}, "page": {}}}
TOOLS: dict[str, list[Any]] = {
    "chat": [{"type": "function", "function": {"name": "search", "parameters": SCHEMA}}],
    "responses": [{"type": "function", "name": "search", "parameters": SCHEMA}],
    "messages": [{"name": "search", "input_schema": SCHEMA}],
}
every_wire = pytest.mark.parametrize("wire", WIRES)


def said(wire: str, turn: str, number: int, result: str = "nothing") -> list[Any]:
    """One turn of a history: u(ser), a(nswer), c(all with its result), p(arallel calls)."""
    if turn == "u":
        return [{"role": "user", "content": f"user {number}"}]
    if turn == "a":
        return [{"role": "assistant", "content": f"answer {number}"}]
    ids = [f"call_{number}_{n}" for n in range(2 if turn == "p" else 1)]
    if wire == "chat":
        calls = [
            {"id": i, "type": "function", "function": {"name": "search", "arguments": "{}"}}
            for i in ids
        ]
        answers = [{"role": "tool", "tool_call_id": i, "content": result} for i in ids]
        return [{"role": "assistant", "content": None, "tool_calls": calls}, *answers]
    if wire == "responses":
        asks = [
            {"type": "function_call", "call_id": i, "name": "search", "arguments": "{}"}
            for i in ids
        ]
        answers = [{"type": "function_call_output", "call_id": i, "output": result} for i in ids]
        return [{"type": "reasoning", "id": f"rs_{number}", "summary": []}, *asks, *answers]
    uses = [{"type": "tool_use", "id": i, "name": "search", "input": {}} for i in ids]
    blocks = [{"type": "tool_result", "tool_use_id": i, "content": result} for i in ids]
    return [{"role": "assistant", "content": uses}, {"role": "user", "content": blocks}]


def history(wire: str, turns: str) -> list[Any]:
    return [each for n, turn in enumerate(turns) for each in said(wire, turn, n)]


def body(wire: str, turns: str = "ucccc", **more: Any) -> dict[str, Any]:
    key = WIRES[wire].form().messages
    return {"model": "m", key: history(wire, turns), "tools": TOOLS[wire], **more}


def draft(wire: str, sent: dict[str, Any], brief: Brief | None = None, **more: Any) -> Body:
    module = WIRES[wire]
    return Body(sent, module.form(), module.read_request(sent), brief, "en", **more)


def messages(wire: str, changed: dict[str, Any]) -> list[Any]:
    return changed[WIRES[wire].form().messages]


def ids(messages: list[Any]) -> tuple[list[str], list[str]]:
    """The ids of the calls that a history asks for, and of those that it answers."""
    text = json.dumps(messages)
    found = {f"call_{n}_{k}" for n in range(40) for k in range(2) if f'"call_{n}_{k}"' in text}
    twice = [each for each in sorted(found) if text.count(f'"{each}"') == 2]
    return sorted(found), twice


@every_wire
@given(turns=st.text("uacp", max_size=24), keep=st.sampled_from([None, 0, 1, 4]))
def test_what_stays_is_whole_and_in_order(wire: str, turns: str, keep: int | None) -> None:
    sent = body(wire, f"u{turns}")
    before = copy.deepcopy(sent)
    changed = draft(wire, sent).changed(Change("Told.", keep=keep))
    assert sent == before
    *kept, told = messages(wire, changed)
    assert told == {"role": "user", "content": "Told."}
    asked, whole = ids(kept)
    assert asked == whole
    mine = [each for each in kept if each in messages(wire, before)]
    places = [messages(wire, before).index(each) for each in mine]
    assert places == sorted(places)
    assert kept[0] == messages(wire, before)[0]
    last = next(e for e in reversed(messages(wire, before)) if "user " in str(e.get("content")))
    assert last in kept
    if keep is None:
        assert kept == messages(wire, before)


@every_wire
def test_what_is_left_out_is_counted(wire: str) -> None:
    before = body(wire, "uccccccp")
    short = messages(wire, draft(wire, before).changed(Change("Told.", keep=0)))
    assert [each["role"] for each in short] == ["user"] * 3
    gone = len(messages(wire, before)) - 1
    assert f"{gone} earlier messages" in short[1]["content"]
    assert "search (8)" in short[1]["content"]


@every_wire
def test_what_is_left_out_is_told_in_short(wire: str) -> None:
    before = body(wire, "u")
    key = WIRES[wire].form().messages
    for number in range(1, 9):
        before[key] += said(wire, "c", number, f"row {number} of many " * 30)
    before[key] += said(wire, "a", 9)
    short = messages(wire, draft(wire, before).changed(Change("Told.", keep=1)))
    told = next(each["content"] for each in short if "left out" in str(each["content"]))
    assert [f"tool: row {number} of many row" in told for number in range(1, 9)] == [False] * 4 + [
        True
    ] * 4
    assert len(told) < 1000
    fresh = messages(wire, draft(wire, before).changed(Change("Told.", keep=0)))
    assert "of many" not in str(fresh)


@every_wire
def test_a_summary_of_ones_own(wire: str) -> None:
    told: list[Any] = []

    def summarise(gone: Any) -> str:
        told.extend(gone)
        return "It was all in vain."

    sent = body(wire, "uccc")
    short = messages(
        wire, draft(wire, sent, Brief(summarise=summarise)).changed(Change("Told.", keep=0))
    )
    assert "It was all in vain." in short[1]["content"]
    assert told == messages(wire, sent)[1:]
    other = Brief(summarise=lambda _: None)  # type: ignore[arg-type, return-value]
    short = messages(wire, draft(wire, sent, other).changed(Change("Told.", keep=0)))
    assert "search (3)" in short[1]["content"]


@every_wire
def test_the_final_answer(wire: str) -> None:
    sent = body(wire, tool_choice="auto")
    assert draft(wire, sent).scene.takes_final
    changed = draft(wire, sent).changed(Change("Told.", final=True))
    assert changed["tool_choice"] == ({"type": "none"} if wire == "messages" else "none")
    assert sent["tool_choice"] == "auto"
    del sent["tools"]
    assert not draft(wire, sent).scene.takes_final


def test_the_final_answer_of_old() -> None:
    sent = body("chat", functions=[{"name": "search", "parameters": SCHEMA}])
    del sent["tools"]
    changed = draft("chat", sent).changed(Change("Told.", final=True))
    assert changed["function_call"] == "none"
    assert "tool_choice" not in changed


@pytest.mark.parametrize("temperature", [0, 0.0, None, True, "1", float("nan")])
def test_only_a_temperature_can_be_lowered(temperature: object) -> None:
    assert not draft("chat", body("chat", temperature=temperature)).scene.is_warm
    warm = draft("chat", body("chat", temperature=1))
    assert warm.scene.is_warm
    assert warm.changed(Change("Told.", cools=True))["temperature"] == 0.5


@every_wire
@pytest.mark.parametrize("odd", [None, 7, [], {}, iter(()), ({"role": "user"},), {1: 2}.items()])
def test_odd_messages_are_let_alone(wire: str, odd: object) -> None:
    sent = body(wire)
    sent[WIRES[wire].form().messages] = odd
    known = draft(wire, sent)
    assert not known.scene.takes_words
    assert not known.goes_on


@every_wire
@pytest.mark.parametrize("odd", [None, 7, "text", object(), {"role": 1}, {"content": {}}, b"x"])
def test_an_odd_message_is_passed_on(wire: str, odd: object) -> None:
    sent = body(wire, "uccc")
    messages(wire, sent).append(odd)
    kept = messages(wire, draft(wire, sent).changed(Change("Told.", keep=4, shortens=True)))
    assert kept[-2] is odd


@every_wire
def test_what_may_not_be_changed_is_not(wire: str) -> None:
    assert not draft(wire, body(wire), fixed=True).scene.takes_words


def test_what_a_server_keeps_cannot_be_left_out() -> None:
    for more in ({"previous_response_id": "resp_1"}, {"conversation": "conv_1"}):
        kept = draft("responses", body("responses", "ucccc", **more))
        assert kept.goes_on
        assert kept.scene.takes_words
        assert not kept.scene.is_whole
    thread = {"type": "continue", "previous_message_id": "msg_1"}
    assert not draft("messages", body("messages", thread=thread)).scene.is_whole
    assert draft("responses", body("responses", "ucccc")).scene.is_whole


def test_a_text_is_a_message_too() -> None:
    sent = {"model": "m", "input": "Find it.", "previous_response_id": "resp_1"}
    known = draft("responses", sent)
    assert known.scene.objective == "Find it."
    assert [each["content"] for each in known.changed(Change("Told."))["input"]] == [
        "Find it.",
        "Told.",
    ]


@every_wire
def test_a_beginning_goes_on_with_nothing(wire: str) -> None:
    assert not draft(wire, body(wire, "u")).goes_on
    assert draft(wire, body(wire, "uc")).goes_on


@every_wire
def test_a_scene(wire: str) -> None:
    scene = draft(wire, body(wire, "ucuc")).scene
    assert scene.objective == "user 0"
    assert scene.tools == {"search": ("query", "page")}
    assert scene.asked == ("search",)
    assert scene.constraints == ""


def test_the_system_message_says_the_constraints() -> None:
    rule = "Never delete anything."
    chat = body("chat")
    chat["messages"].insert(0, {"role": "system", "content": rule})
    assert draft("chat", chat).scene.constraints == rule
    assert draft("responses", body("responses", instructions=rule)).scene.constraints == rule
    blocks = [{"type": "text", "text": rule}]
    assert draft("messages", body("messages", system=blocks)).scene.constraints == rule
    kept = messages("chat", draft("chat", chat).changed(Change("Told.", keep=0)))
    assert kept[0]["role"] == "system"


def test_what_the_application_says_comes_first() -> None:
    said = Brief(ObjectiveAnchor("Find the order."), ConstraintReminder(["Be kind."]))
    scene = draft("chat", body("chat"), said).scene
    assert (scene.objective, scene.constraints) == ("Find the order.", "- Be kind.")


@every_wire
def test_long_results_are_given_in_their_first_part(wire: str) -> None:
    sent = body(wire, "u")
    messages(wire, sent).extend(said(wire, "c", 1, "word " * LONG))
    messages(wire, sent).extend(said(wire, "c", 2))
    before = copy.deepcopy(sent)
    changed = draft(wire, sent).changed(Change("Told.", shortens=True))
    assert sent == before
    assert "[part 1 of " in str(messages(wire, changed))
    assert len(str(changed)) < LONG + 2_000
    assert messages(wire, changed)[-2] == messages(wire, sent)[-1]
