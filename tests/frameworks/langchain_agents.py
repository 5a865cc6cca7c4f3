"""LangChain agents for the tests: each way to build one, and each way to run one."""

from __future__ import annotations

import asyncio
import contextvars
import gc
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from tests.chat_models import chat_model
from tests.frameworks.support import KEY, USER

try:
    from langchain.agents import create_agent

    PREBUILT = "create_agent"
except ImportError:  # before langchain 1.0
    from langgraph.prebuilt import create_react_agent as create_agent

    PREBUILT = "create_react_agent"

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_openai import ChatOpenAI

    from examples.scripted_model import ScriptedModel

QUIET = [
    pytest.mark.filterwarnings(warning)
    for warning in (
        "ignore:unclosed:ResourceWarning",  # LangChain keeps its HTTP clients for ever
        # The oldest langchain-core with the newest pydantic:
        "ignore:Accessing the 'model_fields' attribute on the instance:DeprecationWarning",
    )
]
KINDS = (PREBUILT, "graph")
"""How an agent is built."""
WAYS = ("invoke", "ainvoke", "stream", "astream", "messages", "amessages", "events", "thread")
"""How an agent is run: with `stream`, in its mode `messages`, in a thread with copied context."""
TASK: dict[str, Any] = {"messages": [USER]}


@pytest.fixture(autouse=True, scope="module")
def left_clients_are_collected() -> Iterator[None]:
    """Collect the clients that were left open while their warnings are still filtered."""
    yield
    gc.collect()


def chat(server: ScriptedModel, model: str, **options: Any) -> ChatOpenAI:
    """A chat model that asks the scripted one."""
    return chat_model(model, server.base_url, api_key=KEY, **options)


@tool
def search(query: str, page: int = 1) -> str:
    """Find it."""
    return "nothing"


@tool
def pages(query: str, page: int = 1) -> str:
    """Find it, on another page each time."""
    return f"row {page} of {query}"


@tool
async def asearch(query: str, page: int = 1) -> str:
    """Find it, asynchronously."""
    await asyncio.sleep(0)
    return "nothing"


def build(
    kind: str,
    model: Any,
    tools: Sequence[Any] = (search,),
    *,
    strict: bool = False,
    **compiled: Any,
) -> Any:
    """An agent of a kind; a strict graph lets the exceptions of tools out."""
    if kind != "graph":
        return create_agent(model, list(tools), **compiled)
    bound = model.bind_tools(list(tools))

    def think(state: MessagesState) -> Any:
        return {"messages": [bound.invoke(state["messages"])]}

    async def athink(state: MessagesState) -> Any:
        return {"messages": [await bound.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("think", RunnableLambda(think, athink))
    graph.add_node("tools", ToolNode(list(tools), handle_tool_errors=not strict))
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", tools_condition)
    graph.add_edge("tools", "think")
    return graph.compile(**compiled)


async def run(graph: Any, way: str, given: Any = TASK, config: Any = None) -> None:
    """Run an agent to its end, in one of the ways."""
    config = {"recursion_limit": 50, **(config or {})}
    if way == "invoke":
        graph.invoke(given, config)
    elif way == "ainvoke":
        await graph.ainvoke(given, config)
    elif way == "stream":
        list(graph.stream(given, config))
    elif way == "astream":
        [item async for item in graph.astream(given, config)]
    elif way == "messages":
        list(graph.stream(given, config, stream_mode="messages"))
    elif way == "amessages":
        [item async for item in graph.astream(given, config, stream_mode="messages")]
    elif way == "events":
        [event async for event in graph.astream_events(given, config, version="v2")]
    else:
        with ThreadPoolExecutor(1) as pool:
            context = contextvars.copy_context()
            pool.submit(context.run, graph.invoke, given, config).result()
