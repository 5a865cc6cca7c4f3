"""Graphs built by hand with LangGraph, in every way of running and every trouble."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt

from tests.chat_models import chat_model
from tests.unharmed.apps import odd
from tests.unharmed.apps.said import ashow, given, show


class Free(TypedDict, total=False):
    value: Any
    many: Annotated[list[Any], lambda old, new: [*old, *new]]
    messages: Any


@tool
def search(query: str) -> str:
    """Search by a word."""
    return f"nothing on {query}"


@tool
def ask(query: str) -> str:
    """Ask a person."""
    return f"the person says {interrupt(query)}"


@tool
def hand_over(query: str) -> Any:
    """Go on somewhere else."""
    return Command(update={"messages": [ToolMessage("gone", tool_call_id="call-1")]}, goto=END)


@tool
def fail(query: str) -> str:
    """Fail."""
    raise ValueError(f"no {query}")


def graph(function: Any, state: Any = Free, **more: Any) -> Any:
    """One node."""
    built = StateGraph(state)
    built.add_node("node", function)
    built.add_edge(START, "node")
    return built.compile(**more)


def chat(model: str, *tools: Any, **more: Any) -> Any:
    offered = list(tools or [search])
    asked = chat_model(model).bind_tools(offered)

    async def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await asked.ainvoke(state["messages"])]}

    def think_now(state: MessagesState) -> dict[str, Any]:
        return {"messages": [asked.invoke(state["messages"])]}

    built = StateGraph(MessagesState)
    built.add_node("think", RunnableLambda(think_now, think))
    built.add_node("tools", ToolNode(offered))
    built.add_edge(START, "think")
    built.add_conditional_edges("think", tools_condition)
    built.add_edge("tools", "think")
    return built.compile(name="shop", **more)


ASKED: Any = {"messages": [("user", "Find it.")]}


def told(state: Any) -> list[tuple[str, str]]:
    return [(m.type, str(m.content)[:200]) for m in state["messages"]]


def nodes() -> None:
    """What nodes give back, and what states hold."""
    for name, value in odd.values().items():
        run = graph(lambda _, value=value: {"value": value})
        show(f"value {name}", lambda run=run: type(run.invoke({"value": 1})["value"]))
        run = graph(lambda _, value=value: {"messages": value})
        show(f"messages {name}", lambda run=run: type(run.invoke({"value": 1})["messages"]))
        show(f"given {name}", lambda run=run, value=value: sorted(run.invoke({"messages": value})))
        show(f"list {name}", lambda run=run, value=value: sorted(run.invoke({"messages": [value]})))
        show(f"asked {name}", lambda run=run, value=value: run.invoke(value))
    print("untouched", [name for name in odd.touched if "__class__" not in name])
    for messages in ([()], [[]], [{}], [None], (), {}, "text", [("user",)], 7):
        run = graph(lambda _, messages=messages: {"messages": messages})
        show(f"odd messages {messages}", partial(run.invoke, {"messages": messages}))
        for mode in ("values", "updates", "debug", "custom", ["values", "updates"]):
            show(f"{mode}", lambda run=run, mode=mode: len(list(run.stream({}, stream_mode=mode))))
    for error in (ValueError("node"), odd.OddError(), SystemExit(3), KeyboardInterrupt("x")):
        run = graph(partial(_raise, error))
        show(f"node {type(error).__name__}", lambda run=run: run.invoke({"value": 1}))
    show("nothing", lambda: graph(lambda _: None).invoke({"value": 1}))
    show("wrong", lambda: graph(lambda _: 7).invoke({"value": 1}))
    show("command", lambda: graph(lambda _: Command(update={"value": 2})).invoke({"value": 1}))
    large = graph(lambda _: {"value": "x" * 10_000_000})
    show("large", lambda: len(large.invoke({"value": "x" * 10_000_000})["value"]))
    cycle = odd.cyclic()
    show("same", lambda: graph(lambda _: {"value": cycle}).invoke({"value": 1})["value"] is cycle)


def _raise(error: BaseException, _: Any) -> None:
    raise error


def streams() -> None:
    stream = chat("loop").stream(ASKED)
    print(list(next(stream)))
    stream.close()
    stream = chat("loop").stream(ASKED)
    next(stream)
    show("throw", lambda: stream.throw(KeyError("half-way")))
    show("after", lambda: next(stream))
    show("subgraphs", lambda: len(list(chat("loop-2").stream(ASKED, subgraphs=True))))
    show(
        "sub",
        lambda: graph(lambda _: {"value": told(chat("loop-1").invoke(ASKED))}).invoke({"value": 0}),
    )


def chats() -> None:
    show("chat", lambda: told(chat("loop-6").invoke(ASKED)))
    show("parallel", lambda: told(chat("parallel-3x2").invoke(ASKED)))
    show("ghost", lambda: told(chat("ghost-2").invoke(ASKED)))
    show("bad args", lambda: told(chat("badargs-1").invoke(ASKED)))
    show("bad json", lambda: told(chat("badjson-1").invoke(ASKED)))
    show("fails", lambda: chat("loop-2", fail).invoke(ASKED))
    show("429", lambda: chat("fail-429").invoke(ASKED))
    show("limit", lambda: chat("loop").invoke(ASKED, {"recursion_limit": 9}))
    asking = AIMessage(
        "", tool_calls=[{"name": "hand_over", "args": {"query": "a"}, "id": "call-1"}]
    )
    show("hand over", lambda: given(ToolNode([hand_over]).invoke([asking])))


def interrupts() -> None:
    run = chat("loop-2", ask, checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    show("pause", lambda: [pause.value for pause in run.invoke(ASKED, thread)["__interrupt__"]])
    show("resume", lambda: told(run.invoke(Command(resume="yes"), thread)))
    show("resume again", lambda: told(run.invoke(Command(resume="no"), thread)))
    show("follow-up", lambda: len(told(run.invoke(ASKED, thread))))
    show("no thread", lambda: run.invoke(ASKED))
    show("state", lambda: len(run.get_state(thread).values["messages"]))


async def async_calls() -> None:
    await ashow("async chat", lambda: atold(chat("loop-6").ainvoke(ASKED)))
    await ashow("async stream", lambda: acount(chat("loop-2").astream(ASKED)))
    await ashow("async timeout", lambda: asyncio.wait_for(chat("slow").ainvoke(ASKED), 0.1))
    task = asyncio.ensure_future(chat("slow").ainvoke(ASKED))
    await asyncio.sleep(0.05)
    task.cancel()
    await ashow("async cancel", lambda: task)
    if hasattr(asyncio, "timeout"):
        await ashow("async block", in_time)
    many = [atold(chat("loop-2").ainvoke(ASKED)) for _ in range(3)]
    await ashow("async gather", lambda: asyncio.gather(*many))
    async for _ in chat("loop").astream(ASKED):
        break


async def in_time() -> None:
    run = chat("slow")  # takes its time, too
    async with asyncio.timeout(0.3):  # by when it waits for the answer, wherever that runs
        async for _ in run.astream(ASKED):
            pass


async def atold(state: Any) -> Any:
    return told(await state)


async def acount(items: Any) -> int:
    return len([item async for item in items])


def brief() -> None:
    """As much as shows each way of running."""
    show("chat", lambda: told(chat("loop-6").invoke(ASKED)))
    show("ghost", lambda: told(chat("ghost-2").invoke(ASKED)))
    show("fails", lambda: chat("loop-2", fail).invoke(ASKED))
    show("node fails", lambda: graph(partial(_raise, KeyError("node"))).invoke({"value": 1}))
    interrupts()
    asyncio.run(abrief())


async def abrief() -> None:
    await ashow("async chat", lambda: atold(chat("loop-2").ainvoke(ASKED)))
    await ashow("async stream", lambda: acount(chat("loop-2").astream(ASKED)))


def main() -> None:
    odd.touched.clear()
    nodes()
    streams()
    chats()
    interrupts()
    asyncio.run(async_calls())


if __name__ == "__main__":
    main()
