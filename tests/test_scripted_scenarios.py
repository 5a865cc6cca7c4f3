"""The scenarios of the scripted model, without the wire."""

from __future__ import annotations

import json
from dataclasses import replace
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from examples.scripted_model import GHOST_TOOL, Call, Message, Reply, Tool, Turn
from examples.scripted_model.arguments import example
from examples.scripted_model.canary import planted
from examples.scripted_model.scenarios import scenario_named
from examples.scripted_model.wire import Memory, pieces

SEARCH = Tool(
    "search",
    {
        "type": "object",
        "properties": {"query": {"type": "string"}, "page": {"type": "integer"}},
        "required": ["query", "page"],
    },
)
READ = Tool("read_file", {"type": "object", "properties": {"path": {"type": "string"}}})
WRITE = Tool("write_file", {"type": "object", "properties": {"text": {"type": "string"}}})


class Conversation:
    """An agent's side of a conversation with a scenario."""

    def __init__(self, name: str, *tools: Tool, marker: str = "loopguard") -> None:
        scenario = scenario_named(name, marker=marker)
        assert scenario is not None
        self.scenario = scenario
        self.turn = Turn(name, tools or (SEARCH,), (Message("user", "Go."),))

    def ask(self) -> Reply:
        return self.scenario(self.turn)

    def play(self, *results: str) -> list[tuple[Call, ...]]:
        """The calls of each turn while the given results last, one result for each turn."""
        turns = []
        for result in results:
            reply = self.ask()
            if not reply.calls:
                break
            turns.append(reply.calls)
            answers = [Message("tool", result) for _ in reply.calls]
            said = Message("assistant", reply.text, reply.calls)
            self.turn = replace(self.turn, history=(*self.turn.history, said, *answers))
        return turns


def names(turns: list[tuple[Call, ...]]) -> list[str]:
    return [call.name for calls in turns for call in calls]


def pages(turns: list[tuple[Call, ...]]) -> list[object]:
    return [call.arguments["page"] for calls in turns for call in calls]


def test_loop_repeats_one_call_and_then_answers() -> None:
    conversation = Conversation("loop-4")
    turns = conversation.play(*["same"] * 9)
    assert turns == [(Call("search", {"query": "sample", "page": 1}),)] * 4
    assert conversation.ask().text == "Finished after 4 turns."


def test_loop_without_a_count_never_ends() -> None:
    assert len(Conversation("loop").play(*["same"] * 200)) == 200


@pytest.mark.parametrize("name", ["openai/loop-2", "anthropic:loop-2", "a/b:loop-2"])
def test_a_provider_before_the_name_is_ignored(name: str) -> None:
    assert len(Conversation(name).play(*["same"] * 5)) == 2


@pytest.mark.parametrize("name", ["", "gpt-5", "loop-", "loop+shout", "Loop-2", "loop-2-3", "nope"])
def test_a_name_outside_the_grammar_is_no_scenario(name: str) -> None:
    assert scenario_named(name, marker="x") is None


def test_paging_changes_only_the_page() -> None:
    turns = Conversation("paging-5").play(*["rows"] * 9)
    assert pages(turns) == [1, 2, 3, 4, 5]
    assert {call.arguments["query"] for (call,) in turns} == {"sample"}


def test_cycle_alternates_over_the_tools() -> None:
    turns = Conversation("cycle-2", READ, WRITE).play(*["x"] * 6)
    assert turns[:2] * 3 == turns
    assert names(turns[:2]) == ["read_file", "write_file"]


def test_a_cycle_longer_than_the_tools_varies_the_arguments() -> None:
    turns = Conversation("cycle-3x7").play(*["x"] * 20)
    assert pages(turns) == [1, 2, 3, 1, 2, 3, 1]


def test_parallel_asks_for_different_calls_at_once() -> None:
    turns = Conversation("parallel-2x3").play(*["x"] * 9)
    assert [pages([calls]) for calls in turns] == [[1, 2]] * 3


def test_write_read_writes_something_new_between_equal_reads() -> None:
    turns = Conversation("write-read-3", WRITE, READ).play(*["x"] * 20)
    assert names(turns) == ["read_file", "write_file"] * 3
    assert len({str(calls) for calls in turns[::2]}) == 1
    assert len({str(calls) for calls in turns[1::2]}) == 3


def test_poll_stops_when_the_result_says_done() -> None:
    assert len(Conversation("poll-9").play("pending", "pending", "Done: 3 rows", "x")) == 3
    assert len(Conversation("poll-2").play(*["pending"] * 9)) == 2


def test_retry_stops_when_the_call_succeeds() -> None:
    assert len(Conversation("retry-9").play("Error: busy", "error", "42 rows", "x")) == 3
    assert len(Conversation("retry-2").play(*["error"] * 9)) == 2


def test_nudge_stops_when_the_marker_appears() -> None:
    nudged = Conversation("nudge", marker="STOP-IT")
    assert len(nudged.play("same", "same", "please stop-it now", "same")) == 3
    assert nudged.ask().text


def test_ghost_calls_a_tool_that_was_not_offered() -> None:
    assert names(Conversation("ghost-2").play(*["no such tool"] * 9)) == [GHOST_TOOL] * 2


def test_badargs_are_unknown_to_the_schema() -> None:
    ((call,),) = Conversation("badargs-1").play("invalid")
    assert isinstance(call.arguments, dict)
    assert not SEARCH.schema["properties"].keys() & call.arguments.keys()


def test_badjson_is_not_json() -> None:
    ((call,),) = Conversation("badjson-1").play("invalid")
    with pytest.raises(json.JSONDecodeError):
        json.loads(call.arguments)


def test_same_id_repeats_the_ids_of_each_turn() -> None:
    turns = Conversation("same-id-2").play(*["x"] * 5)
    assert [calls[0].id for calls in turns] == ["call_0", "call_0"]
    (both,) = Conversation("parallel-2x1+same-id").play("x")
    assert [call.id for call in both] == ["call_0", "call_1"]


def test_options_combine() -> None:
    reply = Conversation("loop-2+tool=write_file+think", READ, WRITE).ask()
    assert reply.thinking
    assert reply.calls[0].name == "write_file"


def test_the_count_starts_again_at_a_user_message() -> None:
    conversation = Conversation("loop-2")
    assert len(conversation.play(*["x"] * 5)) == 2
    history = (*conversation.turn.history, Message("assistant", "Done."), Message("user", "More."))
    conversation.turn = replace(conversation.turn, history=history)
    assert len(conversation.play(*["x"] * 5)) == 2


@pytest.mark.parametrize("choice", ["none", {"type": "none"}])
def test_without_tools_to_call_it_answers(choice: object) -> None:
    conversation = Conversation("loop")
    conversation.turn = replace(conversation.turn, choice=choice)
    assert not conversation.ask().calls


@pytest.mark.parametrize(
    "choice",
    [
        {"type": "function", "function": {"name": "write_file"}},
        {"type": "function", "name": "write_file"},
        {"type": "tool", "name": "write_file"},
    ],
)
def test_a_forced_tool_is_called(choice: object) -> None:
    conversation = Conversation("loop", READ, WRITE)
    conversation.turn = replace(conversation.turn, choice=choice)
    assert conversation.ask().calls[0].name == "write_file"


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Part(BaseModel):
    colour: Colour
    weight: float


class Order(BaseModel):
    """A schema with all that a tool's arguments usually have."""

    part: Part
    others: list[Part]
    note: str | None
    urgent: bool
    quantity: int = Field(ge=5)
    comment: str = "none"


@given(st.integers(1, 50))
def test_arguments_satisfy_the_schema(number: int) -> None:
    made = example(Order.model_json_schema(), number)
    assert Order.model_validate(made).model_dump(mode="json", exclude={"comment"}) == made


def test_another_number_makes_other_arguments() -> None:
    schema = Order.model_json_schema()
    assert len({str(example(schema, number)) for number in range(1, 20)}) == 19


@given(st.text())
def test_pieces_are_the_whole_text(text: str) -> None:
    parts = list(pieces(text))
    assert "".join(parts) == text
    assert len(parts) <= 3
    assert len(parts) > 1 or len(text) < 2


def test_the_memory_of_the_server_is_bounded() -> None:
    memory: Memory[str] = Memory(capacity=10)
    for key in "abcd":
        memory.keep(key, key.upper(), 4)
    assert [memory.get(key) for key in "abcd"] == [None, None, "C", "D"]
    memory.keep("d", "again", 6)
    assert [memory.get(key) for key in "cd"] == ["C", "again"]
    memory.keep("huge", "HUGE", 99)
    assert [memory.get(key) for key in ("c", "d", "huge")] == [None, None, "HUGE"]


def test_a_canary_is_in_everything_that_only_the_model_knows() -> None:
    turn = Turn("m", (SEARCH,), ())
    calls = (Call("search", {"q": ["a", {"b": "c"}], "n": 1}), Call("ghost", '{"x'))
    reply = planted(Reply("Hello.", calls, "Hm."), turn, "K7")
    assert reply.text == "Hello. K7-text"
    assert reply.thinking == "Hm. K7-thinking"
    assert reply.calls == (
        Call("search", {"q": ["a K7-args", {"b": "c K7-args"}], "n": 1}),
        Call("ghost_K7", '{"x K7-args'),
    )
    assert planted(Reply(), turn, "K7") == Reply()
