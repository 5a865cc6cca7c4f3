"""LangChain's tools, chat models and create_agent, in every way of calling and every trouble."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated, Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool, ToolException, tool

from tests.chat_models import chat_model
from tests.unharmed.apps import odd
from tests.unharmed.apps.said import ashow, given, show

LARGE = "x" * 10_000_000


@tool
def search(query: str) -> str:
    """Search by a word."""
    return f"nothing on {query}"


@tool
async def asearch(query: str) -> str:
    """Search by a word."""
    await asyncio.sleep(0)
    return f"nothing on {query}"


@tool
def fail(query: str) -> str:
    """Fail."""
    raise ValueError(f"no {query}")


@tool
def leave(query: str) -> str:
    """Leave."""
    raise SystemExit(query)


@tool(return_direct=True)
def direct(query: str) -> str:
    """Answer."""
    return f"this is all on {query}"


@tool(response_format="content_and_artifact")
def with_artifact(query: str) -> tuple[str, Any]:
    """Search with an artifact."""
    return query, odd.odd("__repr__")


@tool
def steps(query: str) -> Any:
    """Yield."""
    yield query
    yield "more"


@tool
def injected(query: str, secret: Annotated[Any, InjectedToolArg]) -> str:
    """Search with something that no model gives."""
    return f"{query} {type(secret).__name__}"


@tool
def large(query: str) -> str:
    """Say a lot."""
    return LARGE


class Plain(BaseTool):
    name: str = "plain"
    description: str = "A tool as a class."
    handle_tool_error: Any = True

    def _run(self, query: str) -> str:
        raise ToolException(f"handled {query}")


def give_odd(name: str) -> Any:
    """Give something odd."""
    return odd.values()[name]


def call(name: str, **args: Any) -> dict[str, Any]:
    return {"type": "tool_call", "name": name, "args": args, "id": "call-1"}


def direct_calls() -> None:
    for each in (search, fail, leave, direct, steps, large, Plain()):
        show(f"run {each.name}", partial(each.run, {"query": "chairs"}))
        show(f"invoke {each.name}", partial(each.invoke, call(each.name, query="chairs")))
    show("text", lambda: search.invoke("chairs"))
    show("wrong", lambda: search.invoke({"word": "chairs"}))
    show("nothing", lambda: search.invoke(None))
    show("injected", lambda: injected.invoke({"query": "a", "secret": odd.odd("__eq__")}))
    message = with_artifact.invoke(call("with_artifact", query="a"))
    print(message.content, given(message.artifact))
    odd_tool = StructuredTool.from_function(give_odd)
    for name in odd.values():
        show(f"odd {name}", lambda name=name: odd_tool.run({"name": name}))
        show(
            f"odd call {name}", lambda name=name: type(odd_tool.invoke(call("give_odd", name=name)))
        )
    print("untouched", odd.touched)
    show("called", lambda: search("chairs"))
    show("batch", lambda: search.batch(["a", "b"]))


def model_calls() -> None:
    model = chat_model("answer")
    show("model", lambda: model.invoke("Find it.").content)
    show("model batch", lambda: [m.content for m in model.batch(["a", "b", "c"])])
    show(
        "model generate",
        lambda: len(model.generate([[HumanMessage("a")], [HumanMessage("b")]]).generations),
    )
    show("model stream", lambda: [chunk.content for chunk in model.stream("Find it.")])
    show("model tools", lambda: named(chat_model("loop").bind_tools([search]).invoke("Find.")))
    for name in ("fail-429", "fail-500", "nobody"):
        broken = chat_model(name)
        show(name, partial(broken.invoke, "Find it."))
        show(f"{name} stream", lambda broken=broken: list(broken.stream("Find it.")))
    stream = model.stream("Find it.")
    print(next(stream).content)
    stream.close()
    show("wrong model input", lambda: model.invoke(7))


def named(message: AIMessage) -> list[tuple[str, Any]]:
    return [(asked["name"], asked["args"]) for asked in message.tool_calls]


def agent(model: str, *tools: Any) -> Any:
    return create_agent(chat_model(model), list(tools or [search]), name="shop")


def told(state: Any) -> list[tuple[str, str, Any]]:
    """The messages without what differs from run to run."""
    return [
        (m.type, str(m.content)[:200], m.status if isinstance(m, ToolMessage) else None)
        for m in state["messages"]
    ]


ASKED: Any = {"messages": [("user", "Find it.")]}


def agents() -> None:
    show("agent", lambda: told(agent("loop-6").invoke(ASKED)))
    show("agent stream", lambda: [list(part) for part in agent("loop-2").stream(ASKED)])
    show(
        "agent messages",
        lambda: sum(1 for _ in agent("loop-2").stream(ASKED, stream_mode="messages")),
    )
    show("agent parallel", lambda: told(agent("parallel-3x2").invoke(ASKED)))
    show("agent direct", lambda: told(agent("loop-2", direct).invoke(ASKED)))
    show("agent handled", lambda: told(agent("loop-2", Plain()).invoke(ASKED)))
    show(
        "agent large",
        lambda: [len(m.content) for m in agent("loop-1", large).invoke(ASKED)["messages"]],
    )
    show("agent fails", lambda: agent("loop-2", fail).invoke(ASKED))
    show("agent leaves", lambda: agent("loop-2", leave).invoke(ASKED))
    show("agent ghost", lambda: told(agent("ghost-1").invoke(ASKED)))
    show("agent bad args", lambda: told(agent("badargs-1").invoke(ASKED)))
    show("agent 500", lambda: agent("fail-500").invoke(ASKED))
    show("agent limit", lambda: agent("loop").invoke(ASKED, {"recursion_limit": 7}))
    stream = agent("loop").stream(ASKED)
    print(list(next(stream)))
    stream.close()
    del stream


async def async_calls() -> None:
    for each in (search, asearch, fail, steps):
        await ashow(f"async {each.name}", partial(each.ainvoke, {"query": "chairs"}))
    await ashow("async agent", lambda: atold(agent("loop-6", asearch).ainvoke(ASKED)))
    await ashow("async stream", lambda: acount(agent("loop-2").astream(ASKED)))
    await ashow("async events", lambda: acount(agent("loop-2").astream_events(ASKED)))
    await ashow("async timeout", lambda: asyncio.wait_for(agent("slow").ainvoke(ASKED), 0.1))
    task = asyncio.ensure_future(agent("slow").ainvoke(ASKED))
    await asyncio.sleep(0.05)
    task.cancel()
    await ashow("async cancel", lambda: task)
    many = [atold(agent("loop-2").ainvoke(ASKED)) for _ in range(3)]
    await ashow("async gather", lambda: asyncio.gather(*many))
    async for _ in agent("loop").astream(ASKED):
        break


async def atold(state: Any) -> Any:
    return told(await state)


async def acount(items: Any) -> int:
    return len([item async for item in items])


def brief() -> None:
    """As much as shows each way of calling."""
    for each in (search, fail, leave, Plain(), with_artifact):
        show(each.name, partial(each.run, {"query": "chairs"}))
    model = chat_model("answer")
    show("model", lambda: model.invoke("Find it.").content)
    show("model stream", lambda: [chunk.content for chunk in model.stream("Find it.")])
    show("model fails", lambda: chat_model("fail-500").invoke("Find it."))
    show("agent", lambda: told(agent("loop-6").invoke(ASKED)))
    show("agent fails", lambda: agent("loop-2", fail).invoke(ASKED))
    show("agent ghost", lambda: told(agent("ghost-1").invoke(ASKED)))
    asyncio.run(abrief())


async def abrief() -> None:
    await ashow("async fail", lambda: fail.ainvoke({"query": "chairs"}))
    await ashow("async agent", lambda: atold(agent("loop-2", asearch).ainvoke(ASKED)))
    await ashow("async stream", lambda: acount(agent("loop-2").astream(ASKED)))


def main() -> None:
    odd.touched.clear()
    direct_calls()
    model_calls()
    agents()
    asyncio.run(async_calls())


if __name__ == "__main__":
    main()
