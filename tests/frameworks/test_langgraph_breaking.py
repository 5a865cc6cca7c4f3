"""langchain and langgraph: loops that are broken, in each kind of agent and each way to run it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("langgraph.prebuilt")

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import MemorySaver
from langgraph.errors import GraphRecursionError

import otel_loopguard as loopguard
from tests.frameworks.breaking import (
    EVER,
    Counted,
    assert_broken,
    assert_nudged,
    held,
)
from tests.frameworks.declared import Declared
from tests.frameworks.langchain_agents import (
    KINDS,
    QUIET,
    WAYS,
    build,
    chat,
    left_clients_are_collected,  # noqa: F401 - a fixture
    run,
)
from tests.frameworks.support import MARKER, Telemetry, of

if TYPE_CHECKING:
    from examples.scripted_model import ScriptedModel

pytestmark = QUIET
every_kind = pytest.mark.parametrize("kind", KINDS)
every_way = pytest.mark.parametrize("way", WAYS)


def tool_of(counted: Counted, *, is_async: bool = False) -> Any:
    """A tool that counts how often it ran."""

    def search(query: str, page: int = 1) -> str:
        """Find it."""
        return counted.look()

    async def asearch(query: str, page: int = 1) -> str:
        """Find it."""
        await asyncio.sleep(0)
        return counted.look()

    return tool("search")(asearch) if is_async else tool(search)


CONFIG: dict[str, Any] = {"configurable": {"thread_id": "one"}}


def remembering(kind: str, model: Any, tool: Any) -> Any:
    """An agent with a checkpointer."""
    return build(kind, model, [tool], checkpointer=MemorySaver())


def so_far(graph: Any) -> list[Any]:
    """The messages that there are."""
    return graph.get_state(CONFIG).values["messages"]


@every_kind
async def test_observed_it_goes_on(telemetry: Telemetry, server: ScriptedModel, kind: str) -> None:
    telemetry.instrument(action="observe")
    counted = Counted()
    with suppress(GraphRecursionError):  # some versions end without it
        await run(
            build(kind, chat(server, "nudge"), [tool_of(counted)]),
            "invoke",
            config={"recursion_limit": 2 * EVER},
        )
    assert counted.made >= EVER - 1


@every_way
@every_kind
async def test_a_note_ends_it(
    telemetry: Telemetry, server: ScriptedModel, kind: str, way: str
) -> None:
    telemetry.instrument(action="nudge")
    counted = Counted()
    is_async = way.startswith(("a", "events")) and kind != "graph"
    graph = remembering(kind, chat(server, "nudge"), tool_of(counted, is_async=is_async))
    await run(graph, way, config=CONFIG)
    assert_nudged(telemetry, server, counted)
    assert so_far(graph)[-1].content == "Finished after 4 turns."
    (agent,) = telemetry.agents
    assert of(agent, "loopguard.end_reason") == "answer"


@every_way
@every_kind
async def test_who_ignores_notes_is_stopped(
    telemetry: Telemetry, server: ScriptedModel, kind: str, way: str
) -> None:
    """And what there is so far can be read."""
    telemetry.instrument(action="break")
    counted = Counted()
    graph = remembering(kind, chat(server, "loop+deaf"), tool_of(counted))
    with pytest.raises(loopguard.DeadlockError):
        await run(graph, way, config=CONFIG)
    await assert_broken(telemetry, server, counted)
    messages = so_far(graph)
    told = [each for each in messages if isinstance(each, ToolMessage)]
    assert [each.status for each in told] == ["success"] * 3 + ["error"] * 2
    asked = [
        call["id"] for each in messages if isinstance(each, AIMessage) for call in each.tool_calls
    ]
    assert [each.tool_call_id for each in told] == asked[:5]


@every_kind
@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream"])
async def test_calls_at_once_are_decided_each_for_itself(
    telemetry: Telemetry, server: ScriptedModel, kind: str, way: str
) -> None:
    telemetry.instrument(action="nudge")
    counted = Counted()
    await run(build(kind, chat(server, "parallel-2x6"), [tool_of(counted)]), way)
    assert counted.made == 6
    assert len(held(telemetry)) == 6


@every_kind
@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
async def test_calls_at_once_are_stopped(
    telemetry: Telemetry, server: ScriptedModel, kind: str, way: str
) -> None:
    telemetry.instrument(action="break")
    counted = Counted()
    is_async = way.startswith("a")
    with pytest.raises(loopguard.DeadlockError):
        await run(
            build(kind, chat(server, "parallel-2+deaf"), [tool_of(counted, is_async=is_async)]), way
        )
    await assert_broken(telemetry, server, counted, at_once=2)


def test_without_a_model_a_call_gives_the_note_as_text(telemetry: Telemetry) -> None:
    telemetry.instrument(action="nudge")
    counted = Counted()
    search = tool_of(counted)
    with loopguard.run("by hand"):
        said = [search.invoke({"query": "x"}) for _ in range(4)]
    assert counted.made == 3
    assert MARKER in said[3]


class TestDeclaredTools(Declared):
    """Tools of somebody else, declared by the settings."""

    @pytest.fixture(params=[(kind, way) for kind in KINDS for way in ("invoke", "ainvoke")])
    def way(self, request: pytest.FixtureRequest) -> Any:
        return request.param

    async def go(self, server: ScriptedModel, tool: Counted, model: str, way: Any) -> Any:
        kind, how = way
        is_async = how == "ainvoke" and kind != "graph"
        await run(build(kind, chat(server, model), [tool_of(tool, is_async=is_async)]), how)


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_a_function_may_be_declared_below_the_framework_s_own_tool(
    telemetry: Telemetry, server: ScriptedModel, how: str
) -> None:
    """Its limit holds from the first call on."""
    telemetry.instrument(action="nudge")
    counted = Counted()

    @tool
    @loopguard.tool(max_repeats=1)
    def search(query: str, page: int = 1) -> str:
        """Find it."""
        return f"{counted.look()}, and not in place {counted.made} either"

    for _ in range(2):
        before = counted.made
        await run(build(KINDS[0], chat(server, "nudge"), [search]), how)
        assert counted.made == before + 1
    assert len(held(telemetry)) == 2
