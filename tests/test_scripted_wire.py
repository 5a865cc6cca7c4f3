"""What the scripted model sends and keeps, API by API, against the real SDKs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest
from pydantic import BaseModel

from examples.scripted_model import Call, Reply, ScriptedModel
from tests.model_apis import (
    USER,
    WAYS,
    Chat,
    Messages,
    Responses,
    anthropic_client,
    ask,
    openai_client,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def server() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


def test_chat_stream_splits_arguments_and_gives_usage_only_on_request(
    server: ScriptedModel,
) -> None:
    request = Chat().request("loop", [USER])
    with openai_client(server) as client:
        bare = list(client.chat.completions.create(**request, stream=True))
        options = {"include_usage": True}
        full = list(client.chat.completions.create(**request, stream=True, stream_options=options))
    deltas = [chunk.choices[0].delta for chunk in bare]
    arguments = [d.tool_calls[0].function.arguments for d in deltas if d.tool_calls]
    assert len([part for part in arguments if part]) > 1
    assert json.loads("".join(arguments)) == {"query": "sample", "page": 1}
    assert all(chunk.usage is None for chunk in (*bare, *full[:-1]))
    assert full[-1].usage.total_tokens == 120
    assert full[-1].choices == []


def test_responses_stream_has_the_events_of_the_real_service() -> None:
    reply = Reply("One two three", (Call("search", {"page": 1}),), "Hm.")
    with (
        ScriptedModel(scenarios={"m": lambda _: reply}) as server,
        openai_client(server) as client,
    ):
        events = list(client.responses.create(**Responses().request("m", [USER]), stream=True))
    kinds = [event.type.removeprefix("response.") for event in events]
    assert list(dict.fromkeys(kinds)) == [
        "created", "in_progress", "output_item.added",
        "reasoning_summary_part.added", "reasoning_summary_text.delta",
        "reasoning_summary_text.done", "reasoning_summary_part.done", "output_item.done",
        "content_part.added", "output_text.delta", "output_text.done", "content_part.done",
        "function_call_arguments.delta", "function_call_arguments.done", "completed",
    ]  # fmt: skip
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert len({event.response.id for event in events if hasattr(event, "response")}) == 1


def test_a_truncated_response_is_incomplete() -> None:
    cut = Reply("Cut of", finish="length")
    with (
        ScriptedModel(scenarios={"cut": lambda _: cut}) as server,
        openai_client(server) as client,
    ):
        *_, last = client.responses.create(model="cut", input="Go.", stream=True)
    assert last.type == "response.incomplete"
    assert last.response.incomplete_details.reason == "max_output_tokens"


def test_messages_stream_has_the_events_of_the_real_service(server: ScriptedModel) -> None:
    request = Messages().request("loop+think", [USER])
    with anthropic_client(server) as client:
        events = list(client.messages.create(**request, stream=True))
    deltas = [e.delta.type for e in events if e.type == "content_block_delta"]
    assert list(dict.fromkeys(e.type for e in events)) == [
        "message_start", "content_block_start", "content_block_delta", "content_block_stop",
        "message_delta", "message_stop",
    ]  # fmt: skip
    assert list(dict.fromkeys(deltas)) == ["thinking_delta", "signature_delta", "input_json_delta"]
    assert deltas.count("input_json_delta") > 1
    assert [e.index for e in events if e.type == "content_block_stop"] == [0, 1]


@pytest.mark.parametrize("way", WAYS)
async def test_previous_response_id_continues_on_the_server(
    server: ScriptedModel, way: str
) -> None:
    api = Responses()
    first = await ask(server, api, way, api.request("paging-2", [USER]))
    pages = []
    for _ in range(2):  # both forks of the first response see the same past
        request = api.request("paging-2", api.answers(first, "row"))
        request["previous_response_id"] = first.raw.id
        second = await ask(server, api, way, request)
        pages.append(json.loads(second.calls[0].arguments)["page"])
    assert pages == [2, 2]
    request = api.request("paging-2", api.answers(second, "row"))
    third = await ask(server, api, way, {**request, "previous_response_id": second.raw.id})
    assert third.text == "Finished after 2 turns."


def test_a_conversation_continues_on_the_server(server: ScriptedModel) -> None:
    api = Responses()
    with openai_client(server) as client:
        if not hasattr(client, "conversations"):
            pytest.skip("this SDK is older than conversations")
        conversation = client.conversations.create(items=[{"type": "message", **USER}])
        request = {**api.request("loop-1", []), "conversation": conversation.id}
        first = api.read(client.responses.create(**request))
        request["input"] = api.answers(first, "row")
        second = api.read(client.responses.create(**request))
    assert [len(first.calls), len(second.calls)] == [1, 0]
    assert second.raw.conversation.id == conversation.id


@pytest.mark.parametrize("forgotten", [{"store": False}, {}])
def test_what_was_not_stored_cannot_be_continued(
    server: ScriptedModel, forgotten: dict[str, Any]
) -> None:
    request = Responses().request("loop", [USER])
    with openai_client(server) as client:
        first = client.responses.create(**request, **forgotten)
        previous = first.id if forgotten else "resp_unknown"
        with pytest.raises(openai.BadRequestError) as error:
            client.responses.create(**request, previous_response_id=previous)
    assert error.value.code == "previous_response_not_found"


@pytest.mark.parametrize("is_stream", [False, True])
def test_openai_tool_runner(server: ScriptedModel, *, is_stream: bool) -> None:
    runners = pytest.importorskip("openai.lib.responses_tool_runner")
    called: list[Any] = []

    def search(arguments: dict[str, Any]) -> str:
        called.append(arguments["page"])
        return "row"

    (tool,) = Responses.tools
    runner = runners.ResponsesToolRunner(functions=[runners.RegisteredFunction(tool, search)])
    request = {"model": "parallel-2x2+think", "input": [USER]}
    with openai_client(server) as client:
        last = runner.run(client, request, stream=is_stream)
    assert called == [1, 2, 1, 2]
    assert last.output_text == "Finished after 2 turns."


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("options", [{}, {"thread": False}], ids=["default", "no-thread"])
def test_anthropic_tool_runner(
    server: ScriptedModel, options: dict[str, Any], *, is_stream: bool
) -> None:
    beta_tool = pytest.importorskip("anthropic", "2.3").beta_tool
    pages: list[int] = []

    @beta_tool
    def search(page: int) -> str:
        """Search a page."""
        pages.append(page)
        return "row"

    with anthropic_client(server) as client:
        runner = client.beta.messages.tool_runner(
            model="paging-3", max_tokens=100, messages=[USER], tools=[search],
            stream=is_stream, **options,
        )  # fmt: skip
        for message in runner:
            last = message.get_final_message() if is_stream else message
    assert pages == [1, 2, 3]
    assert last.content[0].text == "Finished after 3 turns."
    lengths = [len(request["body"]["messages"]) for request in server.requests]
    assert lengths == ([1, 3, 5, 7] if options else [1, 1, 1, 1])


def test_an_unknown_thread_is_told_as_the_sdk_expects(server: ScriptedModel) -> None:
    request = Messages().request("loop", [USER])
    thread = {"type": "continue", "previous_message_id": "msg_unknown"}
    with anthropic_client(server) as client, pytest.raises(anthropic.NotFoundError) as error:
        client.messages.create(**request, extra_body={"thread": thread})
    assert error.value.body["error"]["details"] == {"error_code": "thread_not_found"}


class Answer(BaseModel):
    """An answer in a form of its own."""

    title: str
    pages: list[int]


def test_structured_answers_satisfy_their_schema(server: ScriptedModel) -> None:
    expected = Answer(title="sample", pages=[1])
    with openai_client(server) as client:
        chat = client.chat if hasattr(client.chat.completions, "parse") else client.beta.chat
        completion = chat.completions.parse(model="answer", messages=[USER], response_format=Answer)
        assert completion.choices[0].message.parsed == expected
        response = client.responses.parse(model="answer", input="Go.", text_format=Answer)
        assert response.output_parsed == expected
    with anthropic_client(server) as other:
        if not hasattr(other.messages, "parse"):
            pytest.skip("this SDK is older than structured answers")
        request = {"model": "answer", "max_tokens": 9, "messages": [USER]}
        assert other.messages.parse(**request, output_format=Answer).parsed_output == expected
