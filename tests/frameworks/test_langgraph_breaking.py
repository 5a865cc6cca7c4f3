"""langchain and langgraph: loops that are broken, in each kind of agent and each way to run it."""

from __future__ import annotations

import asyncio
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


@every_kind
async def test_observed_it_goes_on(telemetry: Telemetry, server: ScriptedModel, kind: str) -> None:
    telemetry.instrument(action="observe")
    counted = Counted()
    with pytest.raises(GraphRecursionError):
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
    await run(build(kind, chat(server, "nudge"), [tool_of(counted, is_async=is_async)]), way)
    assert_nudged(telemetry, server, counted)
    (agent,) = telemetry.agents
    assert of(agent, "loopguard.end_reason") == "answer"


@every_way
@every_kind
async def test_who_ignores_notes_is_stopped(
    telemetry: Telemetry, server: ScriptedModel, kind: str, way: str
) -> None:
    telemetry.instrument(action="break")
    counted = Counted()
    with pytest.raises(loopguard.DeadlockError):
        await run(build(kind, chat(server, "loop"), [tool_of(counted)]), way)
    await assert_broken(telemetry, server, counted)


async def test_what_there_is_can_be_read_after_a_stop(
    telemetry: Telemetry, server: ScriptedModel
) -> None:
    telemetry.instrument(action="break")
    graph = build("graph", chat(server, "loop"), [tool_of(Counted())], checkpointer=MemorySaver())
    config: dict[str, Any] = {"configurable": {"thread_id": "one"}}
    with pytest.raises(loopguard.DeadlockError):
        await run(graph, "invoke", config=config)
    messages = graph.get_state(config).values["messages"]
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


def test_without_a_model_a_call_gives_the_note_as_text(telemetry: Telemetry) -> None:
    telemetry.instrument(action="nudge")
    counted = Counted()
    search = tool_of(counted)
    with loopguard.run("by hand"):
        said = [search.invoke({"query": "x"}) for _ in range(4)]
    assert counted.made == 3
    assert MARKER in said[3]
