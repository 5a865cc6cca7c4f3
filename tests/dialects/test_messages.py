"""Messages in every provider's shape say the same."""

from __future__ import annotations

import json

import pytest

from otel_loopguard.core.model import MISSING
from otel_loopguard.dialects import messages
from otel_loopguard.dialects.reading import Asked

ARGS = {"q": "a"}
USER = {"role": "user", "parts": [{"type": "text", "content": "find a"}]}
CALL = Asked("c1", "find", ARGS)
SHAPES = {
    "parts": [
        USER,
        {"role": "assistant", "parts": [
            {"type": "tool_call", "id": "c1", "name": "find", "arguments": ARGS}]},
        {"role": "tool", "parts": [
            {"type": "tool_call_response", "id": "c1", "response": "found"}]},
    ],
    "pydantic-ai": [
        {"role": "assistant", "parts": [
            {"type": "tool_call", "id": "c1", "name": "find", "arguments": json.dumps(ARGS)}]},
        {"role": "user", "parts": [
            {"type": "tool_call_response", "id": "c1", "name": "find", "result": "found"}]},
    ],
    "openai chat": [
        {"role": "user", "content": "find a"},
        {"role": "assistant", "content": None, "tool_calls": [{
            "id": "c1", "type": "function",
            "function": {"name": "find", "arguments": json.dumps(ARGS)}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "found"},
    ],
    "openai responses": [
        {"role": "user", "content": "find a"},
        {"type": "reasoning", "id": "rs1", "summary": []},
        {"type": "function_call", "id": "fc1", "call_id": "c1", "name": "find",
         "arguments": json.dumps(ARGS)},
        {"type": "function_call_output", "call_id": "c1", "output": "found"},
    ],
    "anthropic": [
        {"role": "user", "content": "find a"},
        {"role": "assistant", "content": [
            {"type": "text", "text": "on it"},
            {"type": "tool_use", "id": "c1", "name": "find", "input": ARGS}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1",
             "content": [{"type": "text", "text": "found"}]}]},
    ],
    "bedrock": [
        {"role": "assistant", "content": [
            {"toolUse": {"toolUseId": "c1", "name": "find", "input": ARGS}}]},
        {"role": "user", "content": [
            {"toolResult": {"toolUseId": "c1", "status": "success",
                            "content": [{"text": "found"}]}}]},
    ],
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("as_text", [False, True])
def test_shapes(shape: str, *, as_text: bool) -> None:
    said: object = json.dumps(SHAPES[shape]) if as_text else SHAPES[shape]
    assert messages.response(said).calls == (CALL,)
    assert messages.answers(said) == ((CALL, "found"),)


def test_only_the_newest_results_count() -> None:
    later = [
        *SHAPES["parts"],
        {"role": "assistant", "parts": [
            {"type": "tool_call", "id": "c2", "name": "find", "arguments": {"q": "b"}}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c2", "response": "no"}]},
    ]  # fmt: skip
    assert messages.answers(later) == ((Asked("c2", "find", {"q": "b"}), "no"),)
    answered = [*SHAPES["parts"], {"role": "assistant", "content": "done"}, USER]
    assert messages.answers(answered) == ()


def test_a_user_text_after_the_results_does_not_hide_them() -> None:
    assert messages.answers([*SHAPES["openai chat"], USER]) == ((CALL, "found"),)


def test_a_result_needs_a_call_id_and_a_tool() -> None:
    nameless = {"role": "tool", "tool_call_id": "c1", "content": "found"}
    assert messages.answers([USER, nameless]) == ()
    assert messages.answers([USER, {**nameless, "name": "find"}]) == (
        (Asked("c1", "find", MISSING), "found"),
    )
    assert messages.answers([USER, {"role": "tool", "name": "find", "content": "found"}]) == ()


def test_results_whose_ids_differ_from_their_calls_pair_in_order() -> None:
    def call(call_id: str, query: str) -> dict[str, object]:
        part = {"type": "tool_call", "id": call_id, "name": "find", "arguments": {"q": query}}
        return {"role": "assistant", "parts": [part]}

    def answer(call_id: str, found: str) -> dict[str, object]:
        part = {"type": "tool_call_response", "id": call_id, "response": found}
        return {"role": "tool", "parts": [part]}

    said = [USER, call("fc1", "a"), call("fc2", "b"), answer("c1", "A"), answer("c2", "B")]
    assert messages.answers(said) == (
        (Asked("c1", "find", {"q": "a"}), "A"),
        (Asked("c2", "find", {"q": "b"}), "B"),
    )
    assert messages.answers(said[:-1]) == (), "one result for two calls: nobody knows whose"


def test_arguments_that_are_no_json_stay_text_and_missing_ones_are_unknown() -> None:
    broken = {"type": "tool_call", "id": "c1", "name": "find", "arguments": '{"q": "a'}
    hidden = {"type": "tool_call", "id": "c2", "name": "find"}
    said = [{"role": "assistant", "parts": [broken, hidden, {"type": "tool_call", "id": "c3"}]}]
    assert messages.response(said).calls == (
        Asked("c1", "find", '{"q": "a'),
        Asked("c2", "find", MISSING),
    )


def test_text_is_one_roles_text() -> None:
    said = SHAPES["anthropic"]
    assert messages.text(said, "user") == "find a"
    assert messages.text(said, "assistant") == "on it"
    assert messages.text(SHAPES["parts"], "user") == "find a"
    assert messages.text(SHAPES["bedrock"], "user") is MISSING


@pytest.mark.parametrize("said", [None, "", "hello", 7, [[1], "x", None], {"role": "user"}, "[1"])
def test_what_is_no_list_of_messages_says_nothing(said: object) -> None:
    assert messages.response(said).calls == ()
    assert messages.answers(said) == ()
    assert messages.text(said, "user") is MISSING
