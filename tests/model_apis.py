"""The three model APIs behind one face, each through its real SDK, as a raw loop uses it."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import anthropic
import openai

from examples.scripted_model import Call, ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "page": {"type": "integer"}},
    "required": ["query", "page"],
    "additionalProperties": False,
}
FUNCTION = {"name": "search", "parameters": SCHEMA, "strict": True}
KEY = "secret-key"
USER = {"role": "user", "content": "Find it."}


@dataclass(frozen=True)
class Spoken:
    """A response of any API."""

    calls: list[Call]
    text: str
    thinking: str
    finish: str
    tokens: tuple[int, int]
    raw: Any


class Chat:
    """OpenAI's chat completions, as a hand-written agent uses them."""

    sync_client, async_client = openai.OpenAI, openai.AsyncOpenAI
    finish = ("stop", "tool_calls", "length")
    final = "get_final_completion"
    tools: ClassVar[list[Any]] = [{"type": "function", "function": FUNCTION}]

    def request(self, model: str, history: list[Any]) -> dict[str, Any]:
        return {"model": model, "messages": history, "tools": self.tools}

    def plain(self, client: Any, request: dict[str, Any]) -> Any:
        return client.chat.completions.create(**request)

    def stream(self, client: Any, request: dict[str, Any]) -> Any:
        chat = client.chat if hasattr(client.chat.completions, "stream") else client.beta.chat
        return chat.completions.stream(**request, stream_options={"include_usage": True})

    def read(self, raw: Any) -> Spoken:
        message = raw.choices[0].message
        return Spoken(
            [
                Call(call.function.name, call.function.arguments, call.id)
                for call in message.tool_calls or ()
            ],
            message.content or "",
            getattr(message, "reasoning_content", None) or "",
            raw.choices[0].finish_reason,
            (raw.usage.prompt_tokens, raw.usage.completion_tokens),
            raw,
        )

    def next_history(self, history: list[Any], spoken: Spoken, result: str) -> list[Any]:
        said: dict[str, Any] = {"role": "assistant", "content": spoken.text}
        if spoken.calls:
            said["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in spoken.calls
            ]
        answers = [{"role": "tool", "tool_call_id": c.id, "content": result} for c in spoken.calls]
        return [*history, said, *answers]


class Responses:
    """OpenAI's responses, with the whole history in each request."""

    sync_client, async_client = openai.OpenAI, openai.AsyncOpenAI
    finish = ("completed", "completed", "incomplete")
    final = "get_final_response"
    tools: ClassVar[list[Any]] = [{"type": "function", **FUNCTION}]

    def request(self, model: str, history: list[Any]) -> dict[str, Any]:
        return {"model": model, "input": history, "tools": self.tools}

    def plain(self, client: Any, request: dict[str, Any]) -> Any:
        return client.responses.create(**request)

    def stream(self, client: Any, request: dict[str, Any]) -> Any:
        return client.responses.stream(**request)

    def read(self, raw: Any) -> Spoken:
        thinking = [item.summary[0].text for item in raw.output if item.type == "reasoning"]
        return Spoken(
            [
                Call(item.name, item.arguments, item.call_id)
                for item in raw.output
                if item.type == "function_call"
            ],
            raw.output_text,
            "".join(thinking),
            raw.status,
            (raw.usage.input_tokens, raw.usage.output_tokens),
            raw,
        )

    def next_history(self, history: list[Any], spoken: Spoken, result: str) -> list[Any]:
        said = [item.to_dict() for item in spoken.raw.output]
        for item in said:
            item.pop("parsed_arguments", None)
        return [*history, *said, *self.answers(spoken, result)]

    def answers(self, spoken: Spoken, result: str) -> list[Any]:
        return [
            {"type": "function_call_output", "call_id": call.id, "output": result}
            for call in spoken.calls
        ]


class Messages:
    """Anthropic's messages."""

    sync_client, async_client = anthropic.Anthropic, anthropic.AsyncAnthropic
    finish = ("end_turn", "tool_use", "max_tokens")
    final = "get_final_message"
    tools: ClassVar[list[Any]] = [{"name": "search", "input_schema": SCHEMA}]

    def request(self, model: str, history: list[Any]) -> dict[str, Any]:
        return {"model": model, "messages": history, "tools": self.tools, "max_tokens": 100}

    def plain(self, client: Any, request: dict[str, Any]) -> Any:
        return client.messages.create(**request)

    def stream(self, client: Any, request: dict[str, Any]) -> Any:
        return client.messages.stream(**request)

    def read(self, raw: Any) -> Spoken:
        return Spoken(
            [
                Call(block.name, json.dumps(block.input), block.id)
                for block in raw.content
                if block.type == "tool_use"
            ],
            "".join(block.text for block in raw.content if block.type == "text"),
            "".join(block.thinking for block in raw.content if block.type == "thinking"),
            raw.stop_reason,
            (raw.usage.input_tokens, raw.usage.output_tokens),
            raw,
        )

    def next_history(self, history: list[Any], spoken: Spoken, result: str) -> list[Any]:
        answers = [
            {"type": "tool_result", "tool_use_id": call.id, "content": result}
            for call in spoken.calls
        ]
        said = {"role": "assistant", "content": [b.to_dict() for b in spoken.raw.content]}
        return [*history, said, {"role": "user", "content": answers}]


Api: TypeAlias = Chat | Responses | Messages
APIS: tuple[Api, ...] = (Chat(), Responses(), Messages())
WAYS = ("sync", "sync-stream", "async", "async-stream")


async def ask(server: ScriptedModel, api: Api, way: str, request: dict[str, Any]) -> Spoken:
    """One model call in one of the four ways."""
    is_async, is_stream = way.startswith("async"), way.endswith("stream")
    client = (api.async_client if is_async else api.sync_client)(
        base_url=server.base_url, api_key=KEY
    )
    send = api.stream if is_stream else api.plain
    if is_async:
        async with client:
            if not is_stream:
                return api.read(await send(client, request))
            async with send(client, request) as stream:
                return api.read(await getattr(stream, api.final)())
    with client:
        if not is_stream:
            return api.read(send(client, request))
        with send(client, request) as stream:
            return api.read(getattr(stream, api.final)())


async def converse(
    server: ScriptedModel, api: Api, way: str, model: str, result: str = "nothing", most: int = 12
) -> list[Spoken]:
    """All that the model says until it answers, or until it has said `most` things."""
    history: list[Any] = [USER]
    spoken: list[Spoken] = []
    while len(spoken) < most and (not spoken or spoken[-1].calls):
        spoken.append(await ask(server, api, way, api.request(model, history)))
        history = api.next_history(history, spoken[-1], result)
    return spoken


@contextmanager
def openai_client(server: ScriptedModel) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server.base_url, api_key=KEY) as client:
        yield client


@contextmanager
def anthropic_client(server: ScriptedModel) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=server.base_url, api_key=KEY) as client:
        yield client
