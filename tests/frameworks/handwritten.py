"""What holds for loops written by hand over any model SDK; one subclass an endpoint."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

import otel_loopguard as loopguard
from examples.scripted_model import ScriptedModel
from tests.frameworks.loops import assert_two_runs
from tests.frameworks.support import (
    USER,
    Api,
    Conversation,
    Telemetry,
    ask,
    assert_below,
    entered,
    of,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from opentelemetry.sdk.trace import ReadableSpan

NEXT = {"role": "user", "content": "And now the other one."}


@loopguard.tool
def search(query: str, page: int) -> str:
    return "nothing"


@loopguard.tool(name="search")
async def asearch(query: str, page: int) -> str:
    await asyncio.sleep(0)
    return "nothing"


def in_pool(args: str) -> str:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(copy_context().run, called, args).result()


def called(args: str) -> str:
    return search(**json.loads(args))


EXECUTIONS: dict[str, Callable[[str], str | Awaitable[str]]] = {
    "sync": called,
    "async": lambda args: asearch(**json.loads(args)),
    "thread": lambda args: asyncio.to_thread(called, args),
    "pool": in_pool,
}


class HandWritten:
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

    def loop(self, client: Any, model: str, **options: Any) -> Conversation:
        return Conversation(self.api, client, model, **options)

    async def test_ids_that_repeat_in_two_conversations(
        self, telemetry: Telemetry, client: Any
    ) -> None:
        loops = [self.loop(client, "same-id-3", history=[user]) for user in (USER, NEXT)]
        for _ in range(4):
            for loop in loops:
                await loop.step()
        assert_two_runs(telemetry, chats=4, tools=3)
        assert telemetry.patterns == [("hard_loop", "warning")] * 2

    async def test_ids_that_repeat_at_the_same_time(
        self, telemetry: Telemetry, server: ScriptedModel
    ) -> None:
        async with entered(type(self).connect(server.base_url, is_async=True)) as client:
            loops = [self.loop(client, "same-id-3") for _ in range(2)]
            await asyncio.gather(*(loop.go() for loop in loops))
        assert_two_runs(telemetry, chats=4, tools=3)

    @pytest.mark.parametrize("kept", ["summary", "last"])
    async def test_a_history_that_is_compacted(
        self, telemetry: Telemetry, client: Any, kept: str
    ) -> None:
        loop = self.loop(client, "loop")
        first = (
            {"role": "user", "content": "Summary: still looking."} if kept == "summary" else USER
        )
        for _ in range(5):
            said = await loop.ask()
            loop.history = [first, *self.api.written(said, ["nothing"])]
        await loop.ask()
        telemetry.uninstrument()
        telemetry.assert_run(chats=6, tools=5)
        assert telemetry.patterns == [("hard_loop", "warning"), ("hard_loop", "critical")]

    async def test_a_history_that_is_forked(self, telemetry: Telemetry, client: Any) -> None:
        """Each branch goes on by itself; what was before the fork happened once."""
        loop = self.loop(client, "loop-2")
        await loop.step()
        said = await loop.ask()
        base = loop.history
        for result in ("one", "two"):
            loop.history = [*deepcopy(base), *self.api.written(said, [result])]
            await loop.go()
        telemetry.uninstrument()
        assert len(telemetry.agents) == 2
        assert (len(telemetry.chats), len(telemetry.tools)) == (4, 3)
        assert telemetry.patterns == []

    async def test_a_response_that_is_generated_again(
        self, telemetry: Telemetry, client: Any
    ) -> None:
        """Calls whose result is never sent were not executed, for all we know."""
        loop = self.loop(client, "loop-3")
        await loop.step()
        for _ in range(3):
            said = await loop.ask()
        loop.history += self.api.written(said, ["nothing"])
        await loop.go()
        telemetry.assert_run(chats=6, tools=3)

    @pytest.mark.parametrize("way", EXECUTIONS)
    async def test_a_decorated_tool(self, telemetry: Telemetry, client: Any, way: str) -> None:
        await self.loop(client, "loop-3", tool=EXECUTIONS[way]).go()
        telemetry.assert_run(chats=4, tools=3)
        assert {of(span, "loopguard.span_origin") for span in telemetry.tools} == {None}
        assert len({of(span, "gen_ai.tool.call.id") for span in telemetry.tools}) == 3
        assert telemetry.patterns == [("hard_loop", "warning")]

    async def test_decorated_tools_in_parallel(
        self, telemetry: Telemetry, server: ScriptedModel
    ) -> None:
        async with entered(type(self).connect(server.base_url, is_async=True)) as client:
            loop = self.loop(client, "parallel-3x2")
            for _ in range(2):
                said = await loop.ask()
                calls = [asearch(**json.loads(args)) for _, _, args in said.calls]
                loop.history += self.api.written(said, await asyncio.gather(*calls))
            await loop.go()
        telemetry.assert_run(chats=3, tools=6)
        assert [of(span, "loopguard.iteration") for span in telemetry.tools] == [1] * 3 + [2] * 3
        assert {of(span, "loopguard.span_origin") for span in telemetry.tools} == {None}

    async def test_two_runs_with_decorated_tools(
        self, telemetry: Telemetry, server: ScriptedModel
    ) -> None:
        """Equal calls wait in both: the task says whose turn it is."""
        async with entered(type(self).connect(server.base_url, is_async=True)) as client:
            loops = [self.loop(client, "loop-3", tool=EXECUTIONS["async"]) for _ in range(2)]
            await asyncio.gather(*(loop.go() for loop in loops))
        assert_two_runs(telemetry, chats=4, tools=3)
        assert {of(span, "loopguard.span_origin") for span in telemetry.tools} == {None}

    async def test_each_attempt_is_a_span_and_all_are_one_step(
        self, telemetry: Telemetry, client: Any
    ) -> None:
        def stubborn(args: str) -> str:
            return [called(args) for _ in range(3)][-1]

        await self.loop(client, "paging-2", tool=stubborn).go()
        telemetry.assert_run(chats=3, tools=6)
        assert [of(span, "loopguard.iteration") for span in telemetry.tools] == [1] * 3 + [2] * 3
        ids = [of(span, "gen_ai.tool.call.id") for span in telemetry.tools]
        assert ids == [ids[0]] * 3 + [ids[3]] * 3
        assert "hard_loop" not in {pattern for pattern, _ in telemetry.patterns}

    async def test_tools_that_are_never_called(self, telemetry: Telemetry, client: Any) -> None:
        await self.loop(client, "answer").go()
        agent = telemetry.assert_run(chats=1, tools=0)
        assert of(agent, "loopguard.end_reason") == "answer"

    async def test_without_tools_there_is_no_agent(self, telemetry: Telemetry, client: Any) -> None:
        request = self.api.request("loop", [USER])
        del request["tools"]
        for _ in range(3):
            await ask(self.api, client, "create", request)
        assert [span.name for span in telemetry.spans] == ["chat loop"] * 3

    async def test_forced_extractions_are_not_runs(self, telemetry: Telemetry, client: Any) -> None:
        loop = self.loop(client, "loop", more={"tool_choice": self.api.forced})
        for _ in range(20):
            said = await loop.ask()
            assert said.calls
        telemetry.uninstrument()
        assert [span.name for span in telemetry.spans] == ["chat loop"] * 20
        assert telemetry.patterns == []

    async def test_a_user_turn_after_the_answer(self, telemetry: Telemetry, client: Any) -> None:
        loop = self.loop(client, "loop-2")
        await loop.go()
        loop.history.append(NEXT)
        await loop.go()
        one, two = telemetry.agents
        assert of(one, "loopguard.run_id") == of(two, "loopguard.run_id")
        assert [link.context.span_id for link in two.links] == [one.context.span_id]
        for agent, chats, tools in (
            (one, telemetry.chats[:3], telemetry.tools[:2]),
            (
                two,
                telemetry.chats[3:],
                telemetry.tools[2:],
            ),
        ):
            assert_below(agent, *chats, *tools)
        assert (len(telemetry.chats), len(telemetry.tools)) == (6, 4)
        assert telemetry.patterns == []  # two and two are not four: the user came between

    async def test_below_the_span_of_a_web_server(self, telemetry: Telemetry, client: Any) -> None:
        tracer = telemetry.provider.get_tracer("web")
        with tracer.start_as_current_span("POST /chat") as root:
            await self.loop(client, "loop-3").go()
            await self.loop(client, "loop-3").go()
        assert len(telemetry.agents) == 2
        assert len({of(agent, "loopguard.run_id") for agent in telemetry.agents}) == 2
        for agent in telemetry.agents:
            assert agent.parent is not None
            assert agent.parent.span_id == root.get_span_context().span_id
            mine = [s for s in telemetry.spans if s.parent and s.parent.span_id == below(agent)]
            assert len(mine) == 4 + 3
            assert_below(agent, *mine)
        assert len(telemetry.spans) == 1 + 2 * 8
        assert telemetry.patterns == [("hard_loop", "warning")] * 2

    async def test_inside_of_a_named_run(self, telemetry: Telemetry, client: Any) -> None:
        async with loopguard.run("planner"):
            await self.loop(client, "loop-3", tool=called).go()
            await self.loop(client, "paging-1").go()
        agent = telemetry.assert_run(chats=6, tools=4)
        assert agent.name == "invoke_agent planner"
        assert {of(span, "gen_ai.agent.name") for span in telemetry.chats} == {"planner"}

    async def test_a_loop_inside_of_a_tool_is_a_run_of_its_own(
        self, telemetry: Telemetry, client: Any
    ) -> None:
        @loopguard.tool(name="search")
        async def delegate(query: str, page: int) -> str:
            return await self.loop(client, "loop-2").go()

        outer = self.loop(client, "loop-2", tool=lambda args: delegate(**json.loads(args)))
        await outer.go()
        assert len({span.context.trace_id for span in telemetry.spans}) == 1
        boss, *helpers = telemetry.agents
        delegated = [s for s in telemetry.tools if s.parent and s.parent.span_id == below(boss)]
        assert [of(span, "loopguard.run_id") for span in delegated] == [run_id(boss)] * 2
        assert [s.parent and s.parent.span_id for s in helpers] == list(map(below, delegated))
        assert len({run_id(agent) for agent in telemetry.agents}) == 3
        assert (len(telemetry.chats), len(telemetry.tools)) == (3 + 2 * 3, 2 + 2 * 2)
        assert telemetry.patterns == []

    async def test_a_tool_that_does_not_exist(self, telemetry: Telemetry, client: Any) -> None:
        await self.loop(client, "ghost-2").go()
        telemetry.assert_run(chats=3, tools=2)
        assert {span.name for span in telemetry.tools} == {"execute_tool unknown_tool"}
        assert {of(span, "loopguard.outcome") for span in telemetry.tools} == {"unknown_tool"}
        assert "ghost_tool" not in everything(telemetry)

    async def test_no_content_is_exported(self, telemetry: Telemetry) -> None:
        with ScriptedModel(canary="K7") as server:
            async with entered(type(self).connect(server.base_url, is_async=False)) as client:
                await self.loop(client, "loop-5+think", tool=lambda _: "K7-result").go()
                await self.loop(client, "ghost-5", tool=lambda _: "K7-result").go()
            assert "K7-args" in str(server.requests)
        assert len(telemetry.patterns) >= 3
        assert "K7" not in everything(telemetry)

    async def test_with_no_span_recorded_nothing_changes(
        self, telemetry: Telemetry, client: Any
    ) -> None:
        telemetry.uninstrument()
        loopguard.instrument()  # there is no SDK
        assert await self.loop(client, "loop-5").go() == "Finished after 5 turns."
        loopguard.uninstrument()
        assert telemetry.spans == []

    @pytest.mark.parametrize("kind", ["answered", "streaming"])
    def test_a_run_that_is_unfinished_at_exit(self, kind: str) -> None:
        api = type(self.api)
        done = subprocess.run(
            [sys.executable, "-c", UNFINISHED, api.__module__, api.__name__, kind],
            env={**os.environ, "ANTHROPIC_OPEN_TELEMETRY": "false"},
            capture_output=True,
            text=True,
            check=True,
        )
        spans = [json.loads(line) for line in done.stdout.splitlines()]
        names = sorted(span["name"] for span in spans)
        tools = ["execute_tool search"] if kind == "answered" else []
        assert names == ["chat loop"] * (2 if tools else 1) + tools + ["invoke_agent"]
        (agent,) = (span for span in spans if span["name"] == "invoke_agent")
        assert agent["attributes"]["loopguard.end_reason"] == "exit"
        assert done.stderr == ""


UNFINISHED = """
import asyncio, importlib, json, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
import otel_loopguard
from examples.scripted_model import ScriptedModel
from tests.frameworks.support import USER, Conversation

exporter = ConsoleSpanExporter(formatter=lambda span: span.to_json(indent=None) + "\\n")
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(exporter))
trace.set_tracer_provider(provider)
otel_loopguard.instrument()
module = importlib.import_module(sys.argv[1])
api = getattr(module, sys.argv[2])()
with ScriptedModel() as server:
    client = module.connect(server.base_url, is_async=False)
    if sys.argv[3] == "answered":
        loop = Conversation(api, client, "loop")
        asyncio.run(loop.step())
        asyncio.run(loop.step())
    else:
        stream = api.endpoint(client).create(**api.request("loop", [USER]), stream=True)
        next(iter(stream))
"""


def below(span: ReadableSpan) -> int:
    """The id that the children of a span name."""
    return span.context.span_id


def run_id(span: ReadableSpan) -> str:
    return of(span, "loopguard.run_id")


def everything(telemetry: Telemetry) -> str:
    """All that was exported."""
    return "".join(span.to_json() for span in telemetry.spans)
