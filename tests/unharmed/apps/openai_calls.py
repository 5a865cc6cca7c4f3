"""Loops by hand over the OpenAI SDK, in every way of asking and every trouble."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from functools import partial
from typing import Any

import openai
from pydantic import BaseModel

from tests.unharmed.apps import odd
from tests.unharmed.apps.said import ashow, show

SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
FUNCTION = {"name": "search", "parameters": SCHEMA, "strict": True}
CHAT_TOOLS: list[Any] = [{"type": "function", "function": FUNCTION}]
TOOLS: list[Any] = [{"type": "function", **FUNCTION}]
TASK: list[Any] = [{"role": "user", "content": "Find it."}]
LARGE = "x" * 10_000_000


class Found(BaseModel):
    word: str


def search(query: str) -> str:
    return f"nothing on {query}"


def asked(model: str, **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": TASK, "tools": CHAT_TOOLS, **more}


def answered(history: list[Any], message: Any, result: str | None = None) -> list[Any]:
    """The history with a message and the results of its calls."""
    calls = message.tool_calls or ()
    results = [
        {
            "role": "tool",
            "tool_call_id": call.id,
            "content": result or search(**json.loads(call.function.arguments)),
        }
        for call in calls
    ]
    return [*history, message, *results]


def loop(client: Any, model: str, result: str | None = None) -> tuple[str, int]:
    history = TASK
    while True:
        message = client.chat.completions.create(**asked(model, messages=history)).choices[0]
        history = answered(history, message.message, result)
        if not message.message.tool_calls:
            return message.message.content, len(history)


async def aloop(client: Any, model: str) -> tuple[str, int]:
    history = TASK
    while True:
        answer = await client.chat.completions.create(**asked(model, messages=history))
        history = answered(history, answer.choices[0].message)
        if not answer.choices[0].message.tool_calls:
            return answer.choices[0].message.content, len(history)


def responses_loop(client: Any, model: str) -> tuple[str, int]:
    history: list[Any] = TASK
    while True:
        answer = client.responses.create(model=model, input=history, tools=TOOLS)
        calls = [item for item in answer.output if item.type == "function_call"]
        results = [
            {"type": "function_call_output", "call_id": call.call_id, "output": "nothing"}
            for call in calls
        ]
        history = [*history, *answer.output, *results]
        if not calls:
            return answer.output_text, len(history)


def stream_loop(client: Any, model: str) -> tuple[str, int]:
    history = TASK
    while True:
        with client.chat.completions.stream(**asked(model, messages=history)) as stream:
            kinds = [event.type for event in stream]
            message = stream.get_final_completion().choices[0].message
        history = answered(history, message)
        if not message.tool_calls:
            return message.content, len(history) + len(kinds)


def texts(chunks: Any) -> list[str]:
    return [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]


def sync_calls(client: openai.OpenAI) -> None:
    create = client.chat.completions.create
    show("loop", lambda: loop(client, "loop-6"))
    show("large", lambda: loop(client, "loop-1", LARGE))
    show("responses", lambda: responses_loop(client, "loop-6"))
    show("stream loop", lambda: stream_loop(client, "loop-6"))
    show("parallel", lambda: loop(client, "parallel-3x2"))
    show("stream", lambda: texts(create(**asked("answer"), stream=True)))
    show("parse", lambda: parsed(client))
    show(
        "iterator", lambda: create(**asked("answer", messages=iter(TASK))).choices[0].finish_reason
    )
    show("no arguments", create)
    show("no tools", lambda: create(model="loop", messages=TASK).choices[0].message.content)
    for name, value in odd.values().items():
        if name not in ("once", "generator"):
            for body in ([value], [{"role": "user", "content": value}]):
                show(
                    f"odd {name}", lambda body=body: type(create(**asked("answer", messages=body)))
                )
    show("legacy", lambda: client.completions.create(model="answer", prompt="x"))
    show("models", lambda: [model.id for model in client.models.list()])


def parsed(client: openai.OpenAI) -> str:
    answer = client.chat.completions.parse(model="answer", messages=TASK, response_format=Found)
    return answer.choices[0].message.parsed.word


def raw_calls(client: openai.OpenAI) -> None:
    raw = client.chat.completions.with_raw_response.create(**asked("answer"))
    look(raw)
    print(raw.parse() is raw.parse(), raw.parse().choices[0].message.content)
    raw = client.chat.completions.with_raw_response.create(**asked("answer"), stream=True)
    look(raw)
    print(texts(raw.parse()))
    streaming = client.chat.completions.with_streaming_response
    with streaming.create(**asked("answer")) as raw:
        look(raw)
        print(len(raw.read()), raw.parse().choices[0].message.content)
    with streaming.create(**asked("answer"), stream=True) as raw:
        look(raw)
        print(sum(1 for _ in raw.iter_lines()))


def look(raw: Any) -> None:
    print(
        raw.status_code, raw.headers["content-type"], raw.__class__.__name__, str(raw) == repr(raw)
    )
    print(repr(raw), bool(raw), isinstance(raw, openai.APIResponse), hasattr(raw, "nothing"))
    show("no attribute", lambda: raw.nothing)


def streams(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(**asked("loop"), stream=True)
    print(stream.__class__.__name__, isinstance(stream, openai.Stream), stream.response.status_code)
    print(repr(stream).partition(" at ")[0], next(stream).choices[0].index)
    for _ in stream:
        break
    del stream
    stream = client.chat.completions.create(**asked("loop"), stream=True)
    next(stream)
    stream.close()
    show("left", lambda: leave(client))
    stream = client.chat.completions.create(**asked("loop"), stream=True)
    show("to the end", lambda: sum(1 for _ in stream))
    show("beyond", lambda: next(stream))
    show("again", lambda: list(stream))


def leave(client: openai.OpenAI) -> None:
    with client.chat.completions.create(**asked("loop"), stream=True) as stream:
        next(stream)
        raise KeyError("half-way")


def failures(client: openai.OpenAI) -> None:
    eager = client.with_options(max_retries=1)
    for model in ("fail-429", "fail-500", "fail-400", "nobody"):
        show(model, partial(loop, client, model))
        show(f"{model} stream", lambda model=model: texts(
            client.chat.completions.create(**asked(model), stream=True)))  # fmt: skip
    show("flaky", lambda: loop(client, "flaky"))
    show("flaky again", lambda: loop(client, "flaky"))
    show("flaky with retry", lambda: loop(eager, "flaky"))
    nowhere = client.with_options(base_url="http://127.0.0.1:9/v1")
    show("refused", lambda: loop(nowhere, "answer"))
    late = client.with_options(timeout=0.05)
    show("too late", lambda: loop(late, "slow"))


async def async_calls() -> None:
    async with openai.AsyncOpenAI(max_retries=0) as client:
        create = client.chat.completions.create
        await ashow("async", lambda: aloop(client, "loop-6"))
        many = [aloop(client, "loop-3") for _ in range(4)]
        await ashow("gather", lambda: asyncio.gather(*many))
        await ashow("async 500", lambda: aloop(client, "fail-500"))
        await ashow("async timeout", lambda: asyncio.wait_for(aloop(client, "slow"), 0.05))
        task = asyncio.ensure_future(aloop(client, "slow"))
        await asyncio.sleep(0.02)
        task.cancel()
        await ashow("async cancel", lambda: task)
        stream = await create(**asked("loop"), stream=True)
        print(stream.__class__.__name__, isinstance(stream, openai.AsyncStream))
        async for _ in stream:
            break
        await stream.close()
        stream = await create(**asked("answer"), stream=True)
        print([chunk.choices[0].delta.content async for chunk in stream if chunk.choices])
        async with client.chat.completions.stream(**asked("loop-1")) as helper:
            print([event.type async for event in helper])
        task = asyncio.ensure_future(_read(await create(**asked("loop"), stream=True)))
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        raw = await client.chat.completions.with_raw_response.create(**asked("answer"))
        print(raw.status_code, repr(raw), raw.parse().choices[0].message.content)
        async with client.chat.completions.with_streaming_response.create(**asked("loop")) as raw:
            print(repr(raw), len(await raw.read()) > 0, (await raw.parse()).object)


async def _read(stream: Any) -> int:
    return len([chunk async for chunk in stream])


def brief() -> None:
    """As much as shows each way of asking."""
    with openai.OpenAI(max_retries=0) as client:
        show("loop", lambda: loop(client, "loop-6"))
        show("responses", lambda: responses_loop(client, "loop-6"))
        show("stream loop", lambda: stream_loop(client, "loop-6"))
        show("fails", lambda: loop(client, "fail-500"))
        raw_calls(client)
        streams(client)
    asyncio.run(abrief())


async def abrief() -> None:
    async with openai.AsyncOpenAI(max_retries=0) as client:
        await ashow("async", lambda: aloop(client, "loop-6"))
        stream = await client.chat.completions.create(**asked("answer"), stream=True)
        await ashow("async stream", lambda: _read(stream))


def main() -> None:
    with openai.OpenAI(max_retries=0) as client:
        sync_calls(client)
        raw_calls(client)
        streams(client)
        failures(client)
    asyncio.run(async_calls())


if __name__ == "__main__":
    main()
