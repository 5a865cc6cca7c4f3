"""The scripted model seen through the real SDKs: sync and async, plain and streamed."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import anthropic
import openai
import pytest

from examples.scripted_model import Call, Message, Reply, ScriptedModel, Turn, Usage, WireError
from tests.model_apis import (
    APIS,
    KEY,
    USER,
    WAYS,
    Api,
    Messages,
    anthropic_client,
    ask,
    converse,
    openai_client,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]

every_api = pytest.mark.parametrize("api", APIS, ids=lambda api: type(api).__name__)
every_way = pytest.mark.parametrize("way", WAYS)


@pytest.fixture
def server() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


@every_way
@every_api
async def test_loop_is_the_same_call_under_new_ids(
    server: ScriptedModel, api: Api, way: str
) -> None:
    *loop, answer = await converse(server, api, way, "loop-3")
    calls = [call for turn in loop for call in turn.calls]
    assert [call.name for call in calls] == ["search"] * 3
    assert [json.loads(call.arguments) for call in calls] == [{"query": "sample", "page": 1}] * 3
    assert len({call.id for call in calls}) == 3
    assert answer.text == "Finished after 3 turns."
    assert [turn.finish for turn in (answer, loop[0])] == list(api.finish[:2])
    assert {turn.tokens for turn in (*loop, answer)} == {(100, 20)}


@every_way
@every_api
async def test_parallel_calls_and_thinking(server: ScriptedModel, api: Api, way: str) -> None:
    *rounds, _ = await converse(server, api, way, "parallel-2x2+think")
    pages = [[json.loads(call.arguments)["page"] for call in turn.calls] for turn in rounds]
    assert pages == [[1, 2], [1, 2]]
    assert {turn.thinking for turn in rounds} == {"Let me think about it."}


@every_api
async def test_results_and_history_reach_the_scenario(api: Api) -> None:
    turns: list[Turn] = []

    def scripted(turn: Turn) -> Reply:
        turns.append(turn)
        return Reply("Looking.", (Call("search", {"page": 7}),) * 2) if turn.number < 2 else Reply()

    with ScriptedModel(scenarios={"mine": scripted}) as server:
        spoken = await converse(server, api, "sync", "mine", result="row")
    last = turns[-1]
    assert [turn.number for turn in turns] == [0, 1, 2]
    assert [turn.last_results for turn in turns] == [(), ("row", "row"), ("row", "row")]
    assert last.results == ("row",) * 4
    assert [message.role for message in last.history] == [
        "user", *("assistant", "tool", "tool") * 2,
    ]  # fmt: skip
    assert last.history[0] == Message("user", "Find it.")
    assert last.history[1].text == "Looking."
    assert [call.id for call in last.history[1].calls] == [call.id for call in spoken[0].calls]
    assert [tool.name for tool in last.tools] == ["search"]


@every_api
async def test_a_reply_says_its_usage_and_finish(api: Api) -> None:
    reply = Reply("Cut of", usage=Usage(7, 3, cached=2, reasoning=1), finish="length")
    with ScriptedModel(scenarios={"cut": lambda _: reply}) as server:
        spoken = await ask(server, api, "sync", api.request("cut", [USER]))
    assert spoken.text == "Cut of"
    assert spoken.finish == api.finish[2]
    cached = 2 if isinstance(api, Messages) else 0  # there, the cached ones are counted apart
    assert spoken.tokens == (7 - cached, 3)


@every_api
async def test_concurrent_conversations_do_not_disturb_each_other(
    server: ScriptedModel, api: Api
) -> None:
    conversations = [converse(server, api, "async", f"paging-{n}") for n in (3, 5, 4)]
    for spoken, length in zip(await asyncio.gather(*conversations), (3, 5, 4), strict=True):
        pages = [json.loads(call.arguments)["page"] for turn in spoken for call in turn.calls]
        assert pages == list(range(1, length + 1))


@every_way
@every_api
async def test_failures_come_first_and_are_retried(api: Api, way: str) -> None:
    with ScriptedModel(failures=[429, 500]) as server:
        spoken = await ask(server, api, way, api.request("answer", [USER]))
        assert len(server.requests) == 3
    assert spoken.text


def test_a_failure_has_the_error_of_its_status() -> None:
    with ScriptedModel(failures=[429, 529]) as server:
        with openai_client(server) as client, pytest.raises(openai.RateLimitError):
            client.with_options(max_retries=0).responses.create(model="answer", input="Go.")
        with (
            anthropic_client(server) as other,
            pytest.raises(anthropic.APIStatusError, match="overloaded_error"),
        ):
            other.with_options(max_retries=0).messages.create(**Messages().request("loop", [USER]))


@every_api
async def test_a_scenario_can_fail_at_any_turn(api: Api) -> None:
    def scripted(turn: Turn) -> Reply:
        if turn.number == 1:
            raise WireError(409, "busy", "not now")
        return Reply(calls=(Call("search"),))

    with ScriptedModel(scenarios={"busy": scripted}) as server:
        with pytest.raises((openai.ConflictError, anthropic.ConflictError), match="not now"):
            await converse(server, api, "sync", "busy")
        assert len(server.requests) == 4  # the first call, then one with the two retries of the SDK


def broken(_: Turn) -> Reply:
    raise RuntimeError("the script is wrong")


@every_api
async def test_mistakes_are_told_and_not_retried(api: Api) -> None:
    with ScriptedModel(scenarios={"broken": broken}) as server:
        with pytest.raises((openai.NotFoundError, anthropic.NotFoundError), match="gpt-5"):
            await ask(server, api, "sync", api.request("gpt-5", [USER]))
        with pytest.raises(
            (openai.BadRequestError, anthropic.BadRequestError), match="the script is wrong"
        ):
            await ask(server, api, "sync", api.request("broken", [USER]))
        assert len(server.requests) == 2


@every_way
@every_api
async def test_the_canary_is_in_text_thinking_and_arguments(api: Api, way: str) -> None:
    with ScriptedModel(canary="K7") as server:
        loop, answer = await converse(server, api, way, "loop-1+think")
        (ghost, _) = await converse(server, api, way, "ghost-1")
    assert json.loads(loop.calls[0].arguments)["query"] == "sample K7-args"
    assert answer.text.endswith(" K7-text")
    assert loop.thinking.endswith(" K7-thinking")
    assert ghost.calls[0].name == "ghost_tool_K7"


def test_the_log_has_the_requests_but_no_credentials(server: ScriptedModel) -> None:
    headers = {"Traceparent": "00-1-2-01"}
    with openai_client(server) as client:
        client.responses.create(model="answer", input="Go.", extra_headers=headers)
    with anthropic_client(server) as other:
        other.messages.create(model="answer", max_tokens=9, messages=[USER], extra_headers=headers)
    assert [request["path"] for request in server.requests] == ["/responses", "/v1/messages"]
    assert server.requests[0]["body"]["input"] == "Go."
    assert {request["headers"]["traceparent"] for request in server.requests} == {"00-1-2-01"}
    assert KEY not in str(server.requests)


def test_models_and_token_counts() -> None:
    with ScriptedModel(scenarios={"mine": broken}) as server:
        with openai_client(server) as client:
            assert [model.id for model in client.models.list()] == ["mine"]
        with anthropic_client(server) as other:
            assert [model.id for model in other.models.list()] == ["mine"]
            assert other.messages.count_tokens(model="mine", messages=[USER]).input_tokens == 100


def test_closing_leaves_no_thread_behind() -> None:
    before = set(threading.enumerate())
    server = ScriptedModel(latency_s=3600)
    server.start()
    waiting = threading.Thread(target=_ask_and_ignore, args=(server,))
    waiting.start()
    while not server.requests:
        threading.Event().wait(0.01)
    server.close()
    waiting.join()
    assert set(threading.enumerate()) == before


def _ask_and_ignore(server: ScriptedModel) -> None:
    with openai_client(server) as client:
        try:
            client.with_options(max_retries=0).models.list()  # a connection that stays open
            client.with_options(max_retries=0).responses.create(model="answer", input="Go.")
        except openai.APIConnectionError:
            return


@pytest.mark.parametrize(
    "command", [["-m", "examples.scripted_model"], ["examples/scripted_model"]]
)
def test_as_a_process_of_its_own(command: list[str]) -> None:
    with subprocess.Popen(
        [sys.executable, *command, "--canary", "K7"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        address = process.stdout.readline().strip()
        with openai.OpenAI(base_url=address, api_key=KEY) as client:
            text = client.responses.create(model="answer", input="Go.").output_text
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
    assert text == "Finished after 0 turns. K7-text"
