"""langgraph: N model calls and M tool calls are N chat and M execute_tool spans of one trace."""

from __future__ import annotations

import asyncio
import gc
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("langgraph.prebuilt")

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from opentelemetry import context as otel_context
from opentelemetry import trace

from examples.scripted_model import GHOST_TOOL
from tests.frameworks.langchain_agents import (
    KINDS,
    PREBUILT,
    QUIET,
    TASK,
    WAYS,
    asearch,
    build,
    chat,
    left_clients_are_collected,  # noqa: F401 - a fixture
    pages,
    run,
)
from tests.frameworks.support import Telemetry, assert_below, of

if TYPE_CHECKING:
    from examples.scripted_model import ScriptedModel

pytestmark = QUIET
every_kind = pytest.mark.parametrize("kind", KINDS)
every_way = pytest.mark.parametrize("way", WAYS)
THREAD: dict[str, Any] = {"configurable": {"thread_id": "one"}}


def health(telemetry: Telemetry) -> set[Any]:
    return {of(span, "loopguard.status") for span in (*telemetry.agents, *telemetry.tools)}


def numbers(telemetry: Telemetry, name: str) -> list[Any]:
    return [of(span, f"loopguard.{name}") for span in telemetry.tools]


@every_way
@every_kind
async def test_a_loop(telemetry: Telemetry, server: ScriptedModel, kind: str, way: str) -> None:
    await run(build(kind, chat(server, "loop-5")), way)
    agent = telemetry.assert_run(chats=6, tools=5)
    assert numbers(telemetry, "iteration") == [1, 2, 3, 4, 5]
    assert numbers(telemetry, "repeat_count") == [1, 2, 3, 4, 5]
    assert telemetry.patterns == [("hard_loop", "warning"), ("hard_loop", "critical")]
    third, fifth = telemetry.tools[2], telemetry.tools[4]
    assert (len(third.events), third.status.is_unset) == (1, True)
    assert (len(fifth.events), fifth.status.is_ok) == (1, False)
    assert of(agent, "loopguard.status") == "deadlocked"
    assert of(agent, "loopguard.end_reason") == "answer"


@every_way
async def test_the_same_answer_again_and_again(
    telemetry: Telemetry, server: ScriptedModel, way: str
) -> None:
    model = chat(server, "answer")
    graph = StateGraph(MessagesState)
    graph.add_node("talk", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_edge(START, "talk")
    graph.add_conditional_edges(
        "talk", lambda state: "talk" if len(state["messages"]) < 6 else "__end__"
    )
    await run(graph.compile(), way)
    telemetry.assert_run(chats=5, tools=0)
    assert telemetry.patterns == [
        ("reflection_paralysis", "warning"),
        ("reflection_paralysis", "critical"),
    ]
    assert [len(span.events) for span in telemetry.chats] == [0, 0, 1, 0, 1]
    assert "Finished after" not in "".join(span.to_json() for span in telemetry.spans)


@every_way
@every_kind
async def test_paging_is_no_loop(
    telemetry: Telemetry, server: ScriptedModel, kind: str, way: str
) -> None:
    await run(build(kind, chat(server, "paging-5"), [pages]), way)
    telemetry.assert_run(chats=6, tools=5)
    assert telemetry.patterns == []
    assert all(span.status.is_unset for span in telemetry.spans)
    assert {of(span, "loopguard.status") for span in telemetry.tools} == {"healthy"}


@pytest.mark.parametrize("way", ["ainvoke", "astream", "amessages"])
async def test_async_tools(telemetry: Telemetry, server: ScriptedModel, way: str) -> None:
    await run(build(PREBUILT, chat(server, "loop-3"), [asearch]), way)
    telemetry.assert_run(chats=4, tools=3)
    assert telemetry.patterns == [("hard_loop", "warning")]


@every_way
@every_kind
async def test_parallel_calls_are_one_round(
    telemetry: Telemetry, server: ScriptedModel, kind: str, way: str
) -> None:
    await run(build(kind, chat(server, "parallel-3x2")), way)
    telemetry.assert_run(chats=3, tools=6)
    assert numbers(telemetry, "iteration") == [1, 1, 1, 2, 2, 2]
    assert numbers(telemetry, "repeat_count") == [1, 1, 1, 2, 2, 2]
    assert telemetry.patterns == []


@every_kind
async def test_two_runs_in_one_loop(telemetry: Telemetry, server: ScriptedModel, kind: str) -> None:
    one, other = (
        build(kind, chat(server, model)) for model in ("loop-4+same-id", "paging-2+same-id")
    )
    await asyncio.gather(run(one, "ainvoke"), run(other, "astream"))
    agents = telemetry.agents
    assert len(agents) == 2
    assert len({agent.context.trace_id for agent in agents}) == 2
    sizes: list[tuple[int, int]] = []
    for agent in agents:
        below = [
            [span for span in spans if span.context.trace_id == agent.context.trace_id]
            for spans in (telemetry.chats, telemetry.tools)
        ]
        assert_below(agent, *below[0], *below[1])
        sizes.append((len(below[0]), len(below[1])))
    assert sorted(sizes) == [(3, 2), (5, 4)]
    assert telemetry.patterns == [("hard_loop", "warning")]


@every_kind
async def test_polling_until_done(telemetry: Telemetry, server: ScriptedModel, kind: str) -> None:
    asked = count(1)

    @tool
    def status(job: str) -> str:
        """How the job is doing."""
        return '{"status": "running"}' if next(asked) < 6 else '{"status": "done"}'

    await run(build(kind, chat(server, "poll-9"), [status]), "invoke")
    telemetry.assert_run(chats=7, tools=6)
    assert telemetry.patterns == []


async def test_retry_that_succeeds(telemetry: Telemetry, server: ScriptedModel) -> None:
    asked = count(1)

    @tool
    def fetch(url: str) -> str:
        """Fetch a page."""
        return "error: try again" if next(asked) == 1 else "the page"

    await run(build("graph", chat(server, "retry-5"), [fetch]), "invoke")
    telemetry.assert_run(chats=3, tools=2)
    assert telemetry.patterns == []


async def test_reading_after_each_write(telemetry: Telemetry, server: ScriptedModel) -> None:
    rows: list[str] = []

    @tool
    def read_rows(table: str) -> str:
        """All rows."""
        return f"{len(rows)} rows"

    @tool
    def write_row(row: int) -> str:
        """Add a row."""
        rows.append(str(row))
        return f"row {len(rows)} written"

    await run(build("graph", chat(server, "write-read-4"), [read_rows, write_row]), "invoke")
    telemetry.assert_run(chats=9, tools=8)
    assert telemetry.patterns == []


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
@every_kind
async def test_resumed_interrupt_is_one_run(
    telemetry: Telemetry, server: ScriptedModel, kind: str, way: str
) -> None:
    types = pytest.importorskip("langgraph.types")
    if not hasattr(types, "interrupt"):
        pytest.skip("this version has no interrupt()")

    @tool
    def buy(query: str) -> str:
        """Buy it, if somebody agrees."""
        return f"bought: {types.interrupt('Really?')}"

    graph = build(kind, chat(server, "loop-1"), [buy], checkpointer=MemorySaver())
    await run(graph, way, TASK, THREAD)
    (asking,) = telemetry.tools
    assert of(asking, "loopguard.outcome") == "pending"
    assert asking.status.is_unset
    await run(graph, way, types.Command(resume="yes"), THREAD)
    before, after = telemetry.agents
    assert (len(telemetry.chats), len(telemetry.tools), len(telemetry.spans)) == (2, 2, 6)
    assert of(before, "loopguard.run_id") == of(after, "loopguard.run_id")
    assert [link.context.span_id for link in after.links] == [before.context.span_id]
    assert numbers(telemetry, "iteration") == [1, 1]
    assert numbers(telemetry, "consecutive_same_tool") == [1, 1]
    assert numbers(telemetry, "outcome") == ["pending", "ok"]
    assert len({of(span, "gen_ai.tool.call.id") for span in telemetry.tools}) == 1


async def test_several_interrupts_are_one_run(telemetry: Telemetry, server: ScriptedModel) -> None:
    types = pytest.importorskip("langgraph.types")
    if not hasattr(types, "interrupt"):
        pytest.skip("this version has no interrupt()")

    @tool
    def ask(query: str) -> str:
        """Ask somebody."""
        return types.interrupt("What now?")

    graph = build("graph", chat(server, "loop-3"), [ask], checkpointer=MemorySaver())
    await run(graph, "invoke", TASK, THREAD)
    for _ in range(3):
        await run(graph, "invoke", types.Command(resume="I do not know"), THREAD)
    assert (len(telemetry.chats), len(telemetry.tools)) == (4, 6)
    assert numbers(telemetry, "iteration") == [1, 1, 2, 2, 3, 3]
    assert len({of(agent, "loopguard.run_id") for agent in telemetry.agents}) == 1


async def test_another_question_on_a_thread_is_another_run(
    telemetry: Telemetry, server: ScriptedModel
) -> None:
    graph = build("graph", chat(server, "loop-2"), checkpointer=MemorySaver())
    await run(graph, "invoke", TASK, THREAD)
    await run(graph, "invoke", TASK, THREAD)
    assert len({of(agent, "loopguard.run_id") for agent in telemetry.agents}) == 2
    assert numbers(telemetry, "iteration") == [1, 2, 1, 2]
    assert telemetry.patterns == []


async def test_attempts_of_one_call_are_one_step(
    telemetry: Telemetry, server: ScriptedModel
) -> None:
    middleware = pytest.importorskip("langchain.agents.middleware")
    asked = count(1)

    @tool
    def flaky(query: str) -> str:
        """Fails twice."""
        if next(asked) < 3:
            raise ConnectionError("gone")
        return "found"

    from langchain.agents import create_agent  # noqa: PLC0415

    retry = middleware.ToolRetryMiddleware(max_retries=3, initial_delay=0, jitter=False)
    graph = create_agent(chat(server, "loop-1"), [flaky], middleware=[retry])
    await run(graph, "invoke")
    telemetry.assert_run(chats=2, tools=3)
    assert numbers(telemetry, "iteration") == [1, 1, 1]
    assert numbers(telemetry, "consecutive_same_tool") == [1, 1, 1]
    assert numbers(telemetry, "outcome") == ["error", "error", "ok"]
    assert telemetry.patterns == []


async def test_tool_that_raises(telemetry: Telemetry, server: ScriptedModel) -> None:
    @tool
    def broken(query: str) -> str:
        """Always fails."""
        raise RuntimeError("canary text")

    with pytest.raises(RuntimeError, match="canary text"):
        await run(build("graph", chat(server, "loop-9"), [broken], strict=True), "invoke")
    (span,) = telemetry.tools
    (agent,) = telemetry.agents
    assert (span.status.is_ok, of(span, "error.type")) == (False, "RuntimeError")
    assert (of(agent, "loopguard.end_reason"), agent.status.is_ok) == ("error", False)
    assert "canary text" not in "".join(span.to_json() for span in telemetry.spans)


async def test_tool_that_raises_into_a_message(telemetry: Telemetry, server: ScriptedModel) -> None:
    @tool
    def broken(query: str) -> str:
        """Always fails."""
        raise RuntimeError("canary text")

    await run(build("graph", chat(server, "loop-5"), [broken]), "invoke")
    telemetry.assert_run(chats=6, tools=5)
    assert telemetry.patterns == [("retry_storm", "warning"), ("retry_storm", "critical")]
    assert {of(span, "error.type") for span in telemetry.tools} == {"RuntimeError"}
    assert numbers(telemetry, "repeat_count") == [1, 2, 3, 4, 5]
    assert "canary text" not in "".join(span.to_json() for span in telemetry.spans)


@every_kind
async def test_tools_that_do_not_exist(
    telemetry: Telemetry, server: ScriptedModel, kind: str
) -> None:
    await run(build(kind, chat(server, "ghost-3")), "invoke")
    telemetry.assert_run(chats=4, tools=3)
    assert {span.name for span in telemetry.tools} == {"execute_tool unknown_tool"}
    assert set(numbers(telemetry, "outcome")) == {"unknown_tool"}
    assert telemetry.patterns == [("tool_hallucination", "warning")]
    assert GHOST_TOOL not in "".join(span.to_json() for span in telemetry.spans)


@every_kind
async def test_arguments_that_do_not_fit(
    telemetry: Telemetry, server: ScriptedModel, kind: str
) -> None:
    await run(build(kind, chat(server, "badargs-3")), "invoke")
    telemetry.assert_run(chats=4, tools=3)
    assert set(numbers(telemetry, "outcome")) == {"invalid_args"}
    assert numbers(telemetry, "repeat_count") == [1, 2, 3]
    assert telemetry.patterns == [("tool_hallucination", "warning")]


@every_kind
async def test_refusals_in_ever_new_words(
    telemetry: Telemetry, server: ScriptedModel, kind: str
) -> None:
    """Each asks for another page, so that each refusal but the first counts half."""
    reasons = ("Permission denied.", "You are not allowed to run this.", "Zugriff verweigert.")
    left = count()

    @tool
    def shell(query: str) -> str:
        """Run it."""
        number = next(left)
        return f"{reasons[number % 3]} Rule {number} says so."

    await run(build(kind, chat(server, "paging-9"), [shell]), "invoke")
    assert set(numbers(telemetry, "outcome")) == {"refused"}
    assert telemetry.patterns == [("guardrail_loop", "warning"), ("guardrail_loop", "critical")]
    assert "Zugriff" not in "".join(span.to_json() for span in telemetry.spans)


@every_kind
async def test_two_refusals_and_a_call_that_is_let_through(
    telemetry: Telemetry, server: ScriptedModel, kind: str
) -> None:
    left = count(1)

    @tool
    def shell(query: str) -> str:
        """Run it."""
        return f"rows of {query}" if next(left) % 3 == 0 else "Permission denied."

    await run(build(kind, chat(server, "paging-9"), [shell]), "invoke")
    assert telemetry.patterns == []


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream"])
async def test_a_supervisor_that_asks_the_same_in_other_words(
    telemetry: Telemetry, way: str
) -> None:
    asked = [
        f"{words} the invoice 4711 was paid before the end of March."
        for words in ("Verify whether", "Please verify if", "Verify for me whether", "Verify that")
    ]

    def ask(state: MessagesState) -> Any:
        return {"messages": [HumanMessage(asked[len(state["messages"]) // 2])]}

    def answer(state: MessagesState) -> Any:
        return {"messages": [AIMessage(f"After {len(state['messages'])} messages: unknown.")]}

    inner = StateGraph(MessagesState)
    inner.add_node("answer", answer)
    inner.add_edge(START, "answer")
    outer = StateGraph(MessagesState)
    outer.add_node("ask", ask)
    outer.add_node("expert", inner.compile())
    outer.add_edge(START, "ask")
    outer.add_edge("ask", "expert")
    outer.add_conditional_edges(
        "expert", lambda state: "ask" if len(state["messages"]) < 8 else "__end__"
    )
    await run(outer.compile(), way, {"messages": []})
    assert telemetry.patterns == [("delegation_loop", "warning")]


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "astream"])
async def test_agent_as_a_tool_is_one_step(
    telemetry: Telemetry, server: ScriptedModel, way: str
) -> None:
    helper = build("graph", chat(server, "loop-1"))

    @tool
    def delegate(task: str) -> str:
        """Let the helper do it."""
        return helper.invoke({"messages": [HumanMessage(task)]})["messages"][-1].content

    await run(build(PREBUILT, chat(server, "loop-3"), [delegate]), way)
    outer = telemetry.agents[0]
    helpers = telemetry.agents[1:]
    delegations = [span for span in telemetry.tools if span.name == "execute_tool delegate"]
    assert (len(helpers), len(delegations)) == (3, 3)
    assert len({of(agent, "loopguard.run_id") for agent in telemetry.agents}) == 4
    assert {span.context.trace_id for span in telemetry.spans} == {outer.context.trace_id}
    assert {span.parent.span_id for span in helpers if span.parent} == {
        span.context.span_id for span in delegations
    }
    assert [of(span, "loopguard.iteration") for span in delegations] == [1, 2, 3]
    assert of(outer, "loopguard.iteration") == 3
    assert telemetry.patterns == [("hard_loop", "warning")]
    assert [len(span.events) for span in delegations] == [0, 0, 1]


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream"])
async def test_subgraph_as_a_node_is_one_step(telemetry: Telemetry, way: str) -> None:
    def answer(_: MessagesState) -> Any:
        return {"messages": [AIMessage("I cannot tell.")]}

    inner = StateGraph(MessagesState)
    inner.add_node("answer", answer)
    inner.add_edge(START, "answer")
    outer = StateGraph(MessagesState)
    outer.add_node("expert", inner.compile())
    outer.add_edge(START, "expert")
    outer.add_conditional_edges(
        "expert", lambda state: "expert" if len(state["messages"]) < 4 else "__end__"
    )
    await run(outer.compile(), way)
    supervisor, *experts = telemetry.agents
    assert [span.name for span in experts] == ["invoke_agent expert"] * 3
    assert_below_trace = {span.parent.span_id for span in experts if span.parent}
    assert assert_below_trace == {supervisor.context.span_id}
    assert [of(span, "loopguard.repeat_count") for span in experts] == [1, 2, 3]
    assert of(supervisor, "loopguard.iteration") == 3
    assert telemetry.patterns == [("hard_loop", "warning")]
    assert [len(span.events) for span in experts] == [0, 0, 1]


async def test_interrupt_in_a_subgraph(telemetry: Telemetry) -> None:
    types = pytest.importorskip("langgraph.types")
    if not hasattr(types, "interrupt"):
        pytest.skip("this version has no interrupt()")

    def ask(_: MessagesState) -> Any:
        return {"messages": [AIMessage(types.interrupt("Well?"))]}

    inner = StateGraph(MessagesState)
    inner.add_node("ask", ask)
    inner.add_edge(START, "ask")
    outer = StateGraph(MessagesState)
    outer.add_node("expert", inner.compile())
    outer.add_edge(START, "expert")
    graph = outer.compile(checkpointer=MemorySaver())
    await run(graph, "invoke", TASK, THREAD)
    assert [of(span, "loopguard.end_reason") for span in telemetry.agents] == ["interrupted"] * 2
    assert all(span.status.is_unset for span in telemetry.agents)
    await run(graph, "invoke", types.Command(resume="yes"), THREAD)
    outer_runs = [span for span in telemetry.agents if "expert" not in span.name]
    experts = [span for span in telemetry.agents if "expert" in span.name]
    for spans in (outer_runs, experts):
        assert len(spans) == 2
        assert len({of(span, "loopguard.run_id") for span in spans}) == 1
    assert of(outer_runs[1], "loopguard.iteration") == 1


@pytest.mark.parametrize("mode", ["updates", "values"])
def test_abandoned_stream(telemetry: Telemetry, server: ScriptedModel, mode: str) -> None:
    graph = build("graph", chat(server, "loop"))
    for _ in graph.stream(TASK, stream_mode=mode):
        break
    gc.collect()
    assert otel_context.get_current() == otel_context.Context()
    (agent,) = telemetry.agents
    assert of(agent, "loopguard.end_reason") == "closed"
    assert agent.status.is_unset


async def test_abandoned_async_stream(telemetry: Telemetry, server: ScriptedModel) -> None:
    graph = build("graph", chat(server, "loop"))
    stream = graph.astream(TASK)
    async for _ in stream:
        break
    assert not trace.get_current_span().get_span_context().is_valid
    await stream.aclose()
    assert otel_context.get_current() == otel_context.Context()
    (agent,) = telemetry.agents
    assert of(agent, "loopguard.end_reason") == "closed"


def test_names(telemetry: Telemetry, server: ScriptedModel) -> None:
    def nothing(_: MessagesState) -> Any:
        return {"messages": []}

    graph = StateGraph(MessagesState)
    graph.add_node("nothing", nothing)
    graph.add_edge(START, "nothing")
    graph.compile().invoke(TASK)
    named = graph.compile()
    named.name = "planner"
    named.invoke(TASK)
    assert [span.name for span in telemetry.agents] == [
        "invoke_agent LangGraph",
        "invoke_agent planner",
    ]


def test_uninstrument_restores_the_same_objects() -> None:
    from langchain_core.language_models.chat_models import BaseChatModel  # noqa: PLC0415
    from langchain_core.tools import BaseTool, base  # noqa: PLC0415
    from langgraph.prebuilt.tool_node import ToolNode  # noqa: PLC0415
    from langgraph.pregel import Pregel  # noqa: PLC0415

    hooked: list[tuple[Any, str]] = [
        *((BaseTool, name) for name in ("run", "arun")),
        (base, "_format_output"),
        *((BaseChatModel, name) for name in ("generate", "agenerate", "stream", "astream")),
        *((Pregel, name) for name in ("stream", "astream")),
        (ToolNode, "_validate_tool_call"),
    ]
    before = [vars(owner)[name] for owner, name in hooked]
    telemetry = Telemetry()
    telemetry.instrument()
    during = [vars(owner)[name] for owner, name in hooked]
    assert not any(one is other for one, other in zip(before, during, strict=True))
    telemetry.uninstrument()
    after = [vars(owner)[name] for owner, name in hooked]
    assert all(one is other for one, other in zip(before, after, strict=True))
