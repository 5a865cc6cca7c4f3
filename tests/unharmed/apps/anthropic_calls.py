"""Loops by hand over the Anthropic SDK, in every way of asking and every trouble."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any

import anthropic
from anthropic import beta_tool

from tests.unharmed.apps import odd
from tests.unharmed.apps.said import ashow, show

TOOLS: list[Any] = [
    {
        "name": "search",
        "input_schema": {
            "type": "object",
            "properties": {"query": {"type": "string"}},
            "required": ["query"],
        },
    }
]
TASK: list[Any] = [{"role": "user", "content": "Find it."}]
LARGE = "x" * 10_000_000


def asked(model: str, **more: Any) -> dict[str, Any]:
    return {"model": model, "max_tokens": 100, "messages": TASK, "tools": TOOLS, **more}


def answered(history: list[Any], message: Any, result: str) -> list[Any]:
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": result}
        for block in message.content
        if block.type == "tool_use"
    ]
    said = [*history, {"role": "assistant", "content": message.content}]
    return [*said, {"role": "user", "content": results}] if results else said


def told(message: Any, history: list[Any]) -> tuple[str, int]:
    return "".join(b.text for b in message.content if b.type == "text"), len(history)


def loop(client: Any, model: str, result: str = "nothing") -> tuple[str, int]:
    history = TASK
    while True:
        message = client.messages.create(**asked(model, messages=history))
        history = answered(history, message, result)
        if message.stop_reason != "tool_use":
            return told(message, history)


async def aloop(client: Any, model: str) -> tuple[str, int]:
    history = TASK
    while True:
        message = await client.messages.create(**asked(model, messages=history))
        history = answered(history, message, "nothing")
        if message.stop_reason != "tool_use":
            return told(message, history)


def stream_loop(client: Any, model: str) -> tuple[str, int]:
    history = TASK
    while True:
        with client.messages.stream(**asked(model, messages=history)) as stream:
            kinds = [event.type for event in stream]
            message = stream.get_final_message()
        history = answered(history, message, "nothing")
        if message.stop_reason != "tool_use":
            text, length = told(message, history)
            return text, length + len(kinds)


def kinds(events: Any) -> list[str]:
    return [event.type for event in events]


def sync_calls(client: anthropic.Anthropic) -> None:
    create = client.messages.create
    show("loop", lambda: loop(client, "loop-6"))
    show("large", lambda: loop(client, "loop-1", LARGE))
    show("stream loop", lambda: stream_loop(client, "loop-6"))
    show("thinking", lambda: loop(client, "loop-3+think"))
    show("parallel", lambda: loop(client, "parallel-3x2"))
    show("stream", lambda: kinds(create(**asked("answer"), stream=True)))
    show("text stream", lambda: text_stream(client))
    show("iterator", lambda: create(**asked("answer", messages=iter(TASK))).stop_reason)
    show("no arguments", create)
    show("count", lambda: client.messages.count_tokens(model="answer", messages=TASK).input_tokens)
    for name, value in odd.values().items():
        if name not in ("once", "generator"):
            body = [{"role": "user", "content": value}]
            show(f"odd {name}", lambda body=body: type(create(**asked("answer", messages=body))))


def text_stream(client: anthropic.Anthropic) -> list[str]:
    with client.messages.stream(**asked("answer")) as stream:
        return list(stream.text_stream)


def raw_calls(client: anthropic.Anthropic) -> None:
    raw = client.messages.with_raw_response.create(**asked("answer"))
    look(raw)
    print(raw.parse() is raw.parse(), raw.parse().stop_reason)
    raw = client.messages.with_raw_response.create(**asked("answer"), stream=True)
    look(raw)
    print(kinds(raw.parse()))
    with client.messages.with_streaming_response.create(**asked("answer")) as raw:
        look(raw)
        print(len(raw.read()) > 0, raw.parse().stop_reason)
    with client.messages.with_streaming_response.create(**asked("answer"), stream=True) as raw:
        look(raw)
        print(sum(1 for _ in raw.iter_lines()))


def look(raw: Any) -> None:
    print(
        raw.status_code, raw.headers["content-type"], raw.__class__.__name__, str(raw) == repr(raw)
    )
    print(repr(raw), bool(raw), hasattr(raw, "nothing"), hasattr(raw, "__enter__"))


def streams(client: anthropic.Anthropic) -> None:
    stream = client.messages.create(**asked("loop"), stream=True)
    print(
        stream.__class__.__name__, isinstance(stream, anthropic.Stream), stream.response.status_code
    )
    print(repr(stream).partition(" at ")[0], next(stream).type)
    for _ in stream:
        break
    del stream
    stream = client.messages.create(**asked("loop"), stream=True)
    next(stream)
    stream.close()
    show("left", lambda: leave(client))
    stream = client.messages.create(**asked("loop"), stream=True)
    show("to the end", lambda: kinds(stream))
    show("beyond", lambda: next(stream))


def leave(client: anthropic.Anthropic) -> None:
    with client.messages.stream(**asked("loop")) as stream:
        next(iter(stream))
        raise KeyError("half-way")


@beta_tool
def search(query: str) -> str:
    """Search.

    Args:
        query: the words.
    """
    return "nothing"


@beta_tool
def fail(query: str) -> str:
    """Fail.

    Args:
        query: the words.
    """
    raise ValueError("no such order")


@beta_tool
def leave_all(query: str) -> str:
    """Leave.

    Args:
        query: the words.
    """
    raise SystemExit(4)


def runners(client: anthropic.Anthropic) -> None:
    runner = client.beta.messages.tool_runner
    for tool in (search, fail, leave_all):
        asking = {"model": "loop-4", "max_tokens": 100, "messages": TASK, "tools": [tool]}
        show(f"runner {tool.name}", lambda asking=asking: [m.stop_reason for m in runner(**asking)])


def failures(client: anthropic.Anthropic) -> None:
    eager = client.with_options(max_retries=1)
    for model in ("fail-429", "fail-500", "fail-400", "nobody"):
        show(model, partial(loop, client, model))
        show(f"{model} stream", partial(stream_loop, client, model))
    show("flaky", lambda: loop(client, "flaky"))
    show("flaky again", lambda: loop(client, "flaky"))
    show("flaky with retry", lambda: loop(eager, "flaky"))
    nowhere = client.with_options(base_url="http://127.0.0.1:9")
    show("refused", lambda: loop(nowhere, "answer"))
    late = client.with_options(timeout=0.05)
    show("too late", lambda: loop(late, "slow"))


async def async_calls() -> None:
    async with anthropic.AsyncAnthropic(max_retries=0) as client:
        create = client.messages.create
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
        print(stream.__class__.__name__, isinstance(stream, anthropic.AsyncStream))
        async for _ in stream:
            break
        await stream.close()
        async with client.messages.stream(**asked("loop-1")) as helper:
            print([event.type async for event in helper])
        task = asyncio.ensure_future(_read(await create(**asked("loop"), stream=True)))
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        raw = await client.messages.with_raw_response.create(**asked("answer"))
        print(raw.status_code, repr(raw), raw.__class__.__name__)
        async with client.messages.with_streaming_response.create(**asked("answer")) as raw:
            print(repr(raw), (await raw.parse()).stop_reason)


async def _read(stream: Any) -> int:
    return len([event async for event in stream])


def brief() -> None:
    """As much as shows each way of asking."""
    with anthropic.Anthropic(max_retries=0) as client:
        show("loop", lambda: loop(client, "loop-6"))
        show("stream loop", lambda: stream_loop(client, "loop-6"))
        show("fails", lambda: loop(client, "fail-500"))
        raw_calls(client)
        streams(client)
        runners(client)
    asyncio.run(abrief())


async def abrief() -> None:
    async with anthropic.AsyncAnthropic(max_retries=0) as client:
        await ashow("async", lambda: aloop(client, "loop-6"))
        stream = await client.messages.create(**asked("answer"), stream=True)
        await ashow("async stream", lambda: _read(stream))


def main() -> None:
    with anthropic.Anthropic(max_retries=0) as client:
        sync_calls(client)
        raw_calls(client)
        streams(client)
        runners(client)
        failures(client)
    asyncio.run(async_calls())


if __name__ == "__main__":
    main()
