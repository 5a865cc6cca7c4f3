"""What holds for a loop over any model SDK, however it asks; one subclass an endpoint."""

from __future__ import annotations

import asyncio
import gc
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from opentelemetry import context as otel_context

import otel_loopguard as loopguard
from examples.scripted_model import ScriptedModel
from otel_loopguard import runtime
from otel_loopguard.instrumentation import wiring
from tests.frameworks.support import (
    USER,
    WAYS,
    Api,
    Conversation,
    Telemetry,
    assert_below,
    drained,
    entered,
    maybe,
    of,
    offers,
)
from tests.frameworks.torn import torn_model

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

every_way = pytest.mark.parametrize("way", WAYS)
STREAMS = ("stream", "raw-stream", "reading-stream")
ASKED = (
    "__enter__", "__aenter__", "__iter__", "__aiter__", "__next__", "__anext__", "close", "aclose",
    "read", "json", "parse", "__len__", "__await__",
)  # fmt: skip
"""What an application may look for."""
every_stream = pytest.mark.parametrize("way", STREAMS)


class Loops:
    """The tests; a subclass names the endpoint."""

    api: ClassVar[Api]
    connect: ClassVar[Callable[..., Any]]

    @pytest.fixture(params=[False, True], ids=["sync", "async"])
    async def client(
        self, request: pytest.FixtureRequest, server: ScriptedModel
    ) -> AsyncIterator[Any]:
        """A client, sync or async."""
        connected = type(self).connect(server.base_url, is_async=request.param)
        async with entered(connected) as client:
            yield client

    @pytest.fixture
    async def aclient(self, server: ScriptedModel) -> AsyncIterator[Any]:
        """An async client."""
        async with entered(type(self).connect(server.base_url, is_async=True)) as client:
            yield client

    def loop(self, client: Any, model: str, way: str = "create", **options: Any) -> Conversation:
        if not offers(self.api, client, way):
            pytest.skip(f"this version cannot {way}")
        return Conversation(self.api, client, model, way, **options)

    @every_way
    async def test_a_loop(self, telemetry: Telemetry, client: Any, way: str) -> None:
        answer = await self.loop(client, "loop-5", way).go()
        assert answer == "Finished after 5 turns."
        agent = telemetry.assert_run(chats=6, tools=5)
        assert {span.name for span in telemetry.chats} == {"chat loop-5"}
        assert {span.name for span in telemetry.tools} == {"execute_tool search"}
        assert {of(span, "loopguard.span_origin") for span in telemetry.tools} == {"messages"}
        assert of(agent, "loopguard.end_reason") == "answer"
        assert telemetry.patterns == [("hard_loop", "warning"), ("hard_loop", "critical")]
        third, fifth = telemetry.tools[2], telemetry.tools[4]
        assert [[event.name for event in span.events] for span in (third, fifth)] == [
            ["loopguard.deadlock"],
            ["loopguard.deadlock"],
        ]
        assert [span.status.is_unset for span in telemetry.tools] == [True] * 4 + [False]
        assert fifth.status.description == "deadlock: hard_loop"

    @every_way
    async def test_the_same_answer_again_and_again(
        self, telemetry: Telemetry, client: Any, way: str
    ) -> None:
        """An agent that talks and does nothing; what it says stays in the process."""
        loop = self.loop(client, "answer+think", way)
        with loopguard.run("talker"):
            answers = {(await loop.step()).text for _ in range(5)}
        assert answers == {"Finished after 0 turns."}
        assert telemetry.patterns == [
            ("reflection_paralysis", "warning"),
            ("reflection_paralysis", "critical"),
        ]
        assert [len(span.events) for span in telemetry.chats] == [0, 0, 1, 0, 1]
        assert telemetry.chats[4].status.description == "deadlock: reflection_paralysis"
        exported = "".join(span.to_json() for span in telemetry.spans)
        assert "Finished after" not in exported
        assert "Let me think" not in exported

    @every_way
    async def test_parallel_calls_are_one_round(
        self, telemetry: Telemetry, client: Any, way: str
    ) -> None:
        await self.loop(client, "parallel-3x2", way).go()
        telemetry.assert_run(chats=3, tools=6)
        assert [of(span, "loopguard.iteration") for span in telemetry.tools] == [1] * 3 + [2] * 3
        asked = [span.end_time for span in telemetry.chats[:2]]
        assert [span.start_time >= asked[i // 3] for i, span in enumerate(telemetry.tools)]
        assert telemetry.patterns == []

    @pytest.mark.parametrize("way", ["create", "stream", "helper", "raw"])
    async def test_two_runs_in_one_event_loop(
        self, telemetry: Telemetry, aclient: Any, way: str
    ) -> None:
        def tool(args: str) -> Any:
            return asyncio.sleep(0, "nothing")

        loops = [self.loop(aclient, "loop-4", way, tool=tool) for _ in range(2)]
        await asyncio.gather(*(loop.go() for loop in loops))
        assert_two_runs(telemetry, chats=5, tools=4)

    @pytest.mark.parametrize("way", ["create", "stream"])
    async def test_two_runs_that_take_turns_in_one_task(
        self, telemetry: Telemetry, client: Any, way: str
    ) -> None:
        loops = [self.loop(client, "loop-3", way) for _ in range(2)]
        for _ in range(4):
            for loop in loops:
                await loop.step()
        assert_two_runs(telemetry, chats=4, tools=3)

    def test_runs_in_a_thread_pool(self, telemetry: Telemetry, server: ScriptedModel) -> None:
        def work() -> str:
            with type(self).connect(server.base_url, is_async=False) as client:
                return asyncio.run(self.loop(client, "loop-3").go())

        with ThreadPoolExecutor(4) as pool:
            jobs = [pool.submit(copy_context().run, work) for _ in range(6)]
            assert {job.result() for job in jobs} == {"Finished after 3 turns."}
        assert len(telemetry.agents) == 6
        for agent in telemetry.agents:
            mine = [s for s in telemetry.spans if s.context.trace_id == agent.context.trace_id]
            assert len(mine) == 1 + 4 + 3
            assert_below(agent, *(span for span in mine if span is not agent))

    def test_threads_inside_of_one_run(self, telemetry: Telemetry, server: ScriptedModel) -> None:
        def work() -> None:
            with type(self).connect(server.base_url, is_async=False) as client:
                asyncio.run(self.loop(client, "paging-2").go())

        with ThreadPoolExecutor(2) as pool, loopguard.run("batch"):
            jobs = [pool.submit(copy_context().run, work) for _ in range(2)]
            for job in jobs:
                job.result()
        agent = telemetry.assert_run(chats=6, tools=4)
        assert agent.name == "invoke_agent batch"

    @pytest.mark.parametrize("way", ["create", "stream", "raw"])
    async def test_a_retry_inside_the_sdk_is_one_call(self, telemetry: Telemetry, way: str) -> None:
        with ScriptedModel(failures=[429, 500]) as server:
            async with entered(type(self).connect(server.base_url, is_async=True)) as client:
                await self.loop(client, "loop-1", way).go()
            assert len(server.requests) == 4
        telemetry.assert_run(chats=2, tools=1)

    @every_way
    async def test_a_failure_is_the_applications(self, telemetry: Telemetry, way: str) -> None:
        raised: list[BaseException] = []
        for watched in (True, False):
            if not watched:
                telemetry.uninstrument()
            with ScriptedModel(failures=[400]) as server:
                async with entered(type(self).connect(server.base_url, is_async=False)) as client:
                    with pytest.raises(Exception, match="this request fails") as caught:
                        await self.loop(client, "loop-1", way).go()
            raised.append(caught.value)
        assert len({type(error) for error in raised}) == 1
        assert len({str(error).split("'request_id'")[0] for error in raised}) == 1
        (chat,) = telemetry.chats
        assert not chat.status.is_ok
        name = type(raised[0])
        assert of(chat, "error.type") == f"{name.__module__}.{name.__qualname__}"
        assert chat.events == ()

    @pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
    @pytest.mark.parametrize("way", ["stream", "helper", "raw-stream", "reading-stream"])
    async def test_a_stream_that_breaks(
        self, telemetry: Telemetry, way: str, *, is_async: bool
    ) -> None:
        raised: list[BaseException] = []
        for watched in (True, False):
            if not watched:
                telemetry.uninstrument()
            with torn_model() as base_url:
                async with entered(type(self).connect(base_url, is_async=is_async)) as client:
                    with pytest.raises(Exception) as caught:
                        await self.loop(client, "loop-1", way).go()
            raised.append(caught.value)
        assert repr(raised[0]) == repr(raised[1])
        (chat,) = telemetry.chats
        name = type(raised[0])
        assert of(chat, "error.type") == f"{name.__module__}.{name.__qualname__}"
        assert of(chat, "gen_ai.response.model") == "loop-1"  # what had come until then

    async def test_a_cancelled_call_has_not_failed(self, telemetry: Telemetry) -> None:
        with ScriptedModel(latency_s=60) as server:
            async with entered(type(self).connect(server.base_url, is_async=True)) as client:
                task = asyncio.create_task(self.loop(client, "loop-1").go())
                while not server.requests:  # noqa: ASYNC110 - another thread adds them
                    await asyncio.sleep(0.01)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
        (chat,) = telemetry.chats
        assert chat.status.is_unset

    @every_stream
    async def test_a_stream_that_is_left_and_dropped(
        self, telemetry: Telemetry, client: Any, way: str
    ) -> None:
        before = otel_context.get_current()
        await self.left(client, way, "loop-1")
        gc.collect()
        await asyncio.sleep(0)  # the event loop closes what async generators are left
        tick()
        (chat,) = telemetry.chats
        assert chat.status.is_unset
        assert otel_context.get_current() == before

    def test_collecting_a_stream_takes_no_lock(
        self, telemetry: Telemetry, server: ScriptedModel
    ) -> None:
        """The garbage collector may run wherever a lock is held."""
        with type(self).connect(server.base_url, is_async=False) as client:
            stream = self.api.endpoint(client).create(
                **self.api.request("loop-1", [USER]), stream=True
            )
            next(iter(stream))
            with runtime.get().guard._lock:
                del stream
                gc.collect()
        assert telemetry.chats == []
        tick()
        (chat,) = telemetry.chats
        assert chat.status.is_unset

    @every_stream
    async def test_a_stream_that_is_closed(
        self, telemetry: Telemetry, client: Any, way: str
    ) -> None:
        async with entered(await self.opened(client, way, "loop-1")) as stream:
            if way != "reading-stream":
                await maybe(stream.close())
        (chat,) = telemetry.chats
        assert chat.status.is_unset
        tick()
        assert len(telemetry.chats) == 1

    async def test_a_stream_that_is_closed_where_it_is_made(
        self, telemetry: Telemetry, client: Any
    ) -> None:
        stream = self.opened(client, "stream", "loop-1")
        await maybe((await stream).close())
        assert len(telemetry.chats) == 1

    async def test_a_helper_that_is_left(self, telemetry: Telemetry, client: Any) -> None:
        loop = self.loop(client, "loop-1", "helper")
        endpoint, request = self.api.endpoint(client), self.api.request("loop-1", loop.history)
        async with entered(endpoint.stream(**request)) as stream:
            await first(stream)
        tick()
        assert len(telemetry.chats) == 1

    async def test_a_stream_that_is_taken_up_again(self, telemetry: Telemetry, client: Any) -> None:
        loop = self.loop(client, "loop-3", "stream")
        stream = await self.opened(client, "stream", "loop-3")
        events = [await first(stream)]
        await asyncio.sleep(0)
        events += await drained(stream)
        said = self.api.gathered(events)
        loop.history += self.api.written(said, ["nothing"])
        await loop.go()
        telemetry.assert_run(chats=4, tools=3)

    async def test_a_loop_over_streams_that_are_left(
        self, telemetry: Telemetry, client: Any
    ) -> None:
        """What the stream did not tell, the next request does."""
        loop = self.loop(client, "loop-2", "create")
        said = await loop.ask()
        await self.left(client, "stream", "loop-2")
        loop.history += self.api.written(said, ["nothing"])
        await loop.go()
        telemetry.uninstrument()
        assert (len(telemetry.chats), len(telemetry.tools)) == (4, 2)

    async def test_what_the_application_gets_is_the_same(
        self, telemetry: Telemetry, client: Any
    ) -> None:
        request = self.api.request("loop-1", [USER])
        endpoint = self.api.endpoint(client)
        looks: list[Any] = []
        for watched in (True, False):
            if not watched:
                telemetry.uninstrument()
            whole = await maybe(endpoint.create(**request))
            stream = await maybe(endpoint.create(**request, stream=True))
            raw = await maybe(endpoint.with_raw_response.create(**request, stream=True))
            parsed = await maybe(raw.parse())
            assert await maybe(raw.parse()) is parsed
            events = [event for each in (stream, parsed) for event in await drained(each)]
            values = [whole, stream, stream.response, raw, raw.http_response, parsed, *events]
            has = [[hasattr(value, a) for a in ASKED] for value in (whole, stream, parsed)]
            looks.append([[value.__class__ for value in values], has])
            assert all(isinstance(value, value.__class__) for value in values)
            assert [type(value) for value in (stream, parsed)] == [parsed.__class__] * 2
        assert looks[0] == looks[1]

    async def test_the_body_that_is_sent_is_the_same(
        self, telemetry: Telemetry, client: Any, server: ScriptedModel
    ) -> None:
        for watched in (True, False):
            if not watched:
                telemetry.uninstrument()
            await drained(await self.opened(client, "stream", "loop-1"))
        one, other = (request["body"] for request in server.requests)
        assert one == other

    async def opened(self, client: Any, way: str, model: str) -> Any:
        """A stream, or what it is read through."""
        endpoint = self.api.endpoint(client)
        request = {**self.api.request(model, [USER]), "stream": True}
        if way == "stream":
            return await maybe(endpoint.create(**request))
        if way == "raw-stream":
            response = await maybe(endpoint.with_raw_response.create(**request))
            return await maybe(response.parse())
        return endpoint.with_streaming_response.create(**request)

    async def left(self, client: Any, way: str, model: str) -> None:
        """Begin to read a stream, and forget it."""
        stream = await self.opened(client, way, model)
        if way == "reading-stream":
            async with entered(stream) as response:
                await first(await maybe(response.parse()))
        else:
            await first(stream)
            if hasattr(stream, "__aiter__"):  # dropped open, it would leave a socket to the loop
                await stream.response.aclose()


def assert_two_runs(telemetry: Telemetry, *, chats: int, tools: int) -> None:
    """Two runs of equal size, each with a trace of its own."""
    assert len(telemetry.agents) == 2
    assert (len(telemetry.chats), len(telemetry.tools)) == (2 * chats, 2 * tools)
    for agent in telemetry.agents:
        mine = [s for s in telemetry.spans if s.context.trace_id == agent.context.trace_id]
        assert len(mine) == 1 + chats + tools
        assert_below(agent, *(span for span in mine if span is not agent))
    one, other = telemetry.agents
    assert of(one, "loopguard.run_id") != of(other, "loopguard.run_id")


async def first(stream: Any) -> Any:
    """The first event of a stream that is then left."""
    if hasattr(stream, "__aiter__"):
        async for event in stream:
            return event
    for event in stream:
        return event
    return None


def tick() -> None:
    """What the thread does every few seconds."""
    wired = wiring.current()
    assert wired is not None
    wired.handwritten.expire(0)
