"""The healthy twins of stuck agents: they do alike things, get somewhere, and nothing is said.

Each twin is done by each kind of agent, sync and async, against the same script.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import anthropic
import openai
import pytest
from langchain.agents import create_agent
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import StructuredTool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

import otel_loopguard as loopguard
from examples.scripted_model import Call, Message, Reply, Scenario, ScriptedModel, Tool, Turn
from examples.scripted_model.scenarios import scenario_named
from tests.chat_models import chat_model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opentelemetry.sdk.trace import ReadableSpan

pytestmark = [
    # LangChain keeps its HTTP clients for ever.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

CONTRACT = {
    "loopguard.args_fingerprint", "loopguard.result_hash", "loopguard.result_length",
    "loopguard.consecutive_same_tool", "loopguard.same_args_seen", "loopguard.repeat_count",
    "loopguard.iteration", "loopguard.outcome", "loopguard.run_id", "loopguard.status",
    "gen_ai.operation.name", "gen_ai.tool.name",
}  # fmt: skip


class Shop:
    """The tools, with a state of their own for each run. Each takes one argument."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.looks = itertools.count(1)
        self.log = 0

    def list_orders(self, page: int) -> str:
        """List the orders, three a page."""
        return "\n".join(f"order {3 * page + n}: chairs, paid" for n in range(3))

    def find_order(self, word: str) -> str:
        """Find an order by a word."""
        return f"order 17 of {word}" if word.endswith(("-3", "-4")) else "[]"

    def export_status(self, export: str) -> str:
        """Say how far an export is."""
        return f"{export} is done" if next(self.looks) % 5 == 0 else f"{export} is pending"

    def export_progress(self, export: str) -> str:
        """Say how far an export is, in percent."""
        return f"{export}: {20 * next(self.looks)} percent"

    def convert_price(self, amount: str) -> str:
        """Convert a price to euros; the service is not always there."""
        if next(self.looks) < 3:
            return "error: the exchange service is not available"
        return f"{amount} is 12.50 euros"

    def tail_log(self, name: str) -> str:
        """Read a log that grows."""
        self.log += 1
        return "\n".join(f"{name}: line {n} of the log" for n in range(self.log))

    def read_notes(self, customer: str) -> str:
        """Read the notes on a customer."""
        return f"{len(self.notes)} notes on {customer}: " + "; ".join(self.notes)

    def write_note(self, text: str) -> str:
        """Write a note on a customer."""
        self.notes.append(text)
        return "saved"

    def send_mail(self, text: str) -> str:
        """Send a mail."""
        return "ok"

    @property
    def tools(self) -> dict[str, Callable[[Any], str]]:
        """All of them by name."""
        names = [name for name, value in vars(type(self)).items() if inspect.isfunction(value)]
        return {name: getattr(self, name) for name in names if name != "__init__"}


def schema(tool: Callable[[Any], str]) -> dict[str, Any]:
    """A tool's parameters as JSON schema."""
    ((name, kind), *_) = inspect.get_annotations(tool.__func__).items()
    of = {"str": "string", "int": "integer"}[kind]
    return {"type": "object", "properties": {name: {"type": of}}, "required": [name]}


def refine(turn: Turn) -> Reply:
    """Another word each time, and nothing found at first."""
    if turn.last_results and "order" in turn.last_results[-1]:
        return Reply("Found.")
    return Reply(calls=(Call("find_order", {"word": f"chairs-{turn.number + 1}"}),))


def explore(turn: Turn) -> Reply:
    """One tool after the other, twice, and each with something new to say."""
    plan = ["tail_log", "export_progress", "read_notes", "write_note"] * 2
    if turn.number == len(plan):
        return Reply("Done.")
    name = plan[turn.number]
    (argument,) = schema(getattr(Shop(), name))["properties"]
    value = f"note {turn.number}" if name == "write_note" else "Mrs Sample"
    return Reply(calls=(Call(name, {argument: value}),))


class Twin(NamedTuple):
    """What the model does, how often each tool runs, and how often the model is asked for that."""

    tools: dict[str, int]
    rounds: int
    scenario: Scenario | None = None


TWINS = {
    "answer": Twin({}, 0),
    "paging-8+tool=list_orders": Twin({"list_orders": 8}, 8),
    "poll-20+tool=export_status": Twin({"export_status": 5}, 5),
    "loop-5+tool=export_progress": Twin({"export_progress": 5}, 5),
    "loop-6+tool=tail_log": Twin({"tail_log": 6}, 6),
    "retry-9+tool=convert_price": Twin({"convert_price": 3}, 3),
    "paging-5+tool=read_notes": Twin({"read_notes": 5}, 5),
    "paging-8+tool=send_mail": Twin({"send_mail": 8}, 8),
    "paging-8+tool=write_note": Twin({"write_note": 8}, 8),
    "parallel-5x1+tool=list_orders": Twin({"list_orders": 5}, 1),
    "write-read-4": Twin({"read_notes": 4, "write_note": 4}, 8),
    "refine": Twin({"find_order": 3}, 3, refine),
    "explore": Twin(
        {"tail_log": 2, "export_progress": 2, "read_notes": 2, "write_note": 2}, 8, explore
    ),
}
"""Paging, polling until done, progress in percent, a log that grows, a retry that succeeds, a batch
of different arguments, of mails, of notes, calls in parallel, the same call after a write in
between, another word until something is found, several tools in turn."""


def openai_tools(shop: Shop) -> list[Any]:
    return [
        {"type": "function", "function": {"name": name, "parameters": schema(tool)}}
        for name, tool in shop.tools.items()
    ]


async def maybe(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


async def decorated(twin: str, shop: Shop, _: str, *, is_async: bool) -> None:
    """An agent without a model: it follows the script by itself."""
    known = scenario_named(twin, marker="")
    scenario = TWINS[twin].scenario or known
    assert scenario is not None
    tools: dict[str, Callable[[Any], Any]] = {}
    for name, tool in shop.tools.items():

        async def later(value: Any, tool: Any = tool) -> str:
            await asyncio.sleep(0)
            return tool(value)

        tools[name] = loopguard.tool(name=name)(later if is_async else tool)
    offered = tuple(Tool(name, schema(tool)) for name, tool in shop.tools.items())
    history = [Message("user", "Do it.")]
    with loopguard.run("shop"):
        while (reply := scenario(Turn(twin, offered, tuple(history)))).calls:
            history.append(Message("assistant", calls=reply.calls))
            for call in reply.calls:
                assert not isinstance(call.arguments, str)
                result = await maybe(tools[call.name](*call.arguments.values()))
                history.append(Message("tool", result, call_id=call.id or ""))


async def openai_chat(twin: str, shop: Shop, base_url: str, *, is_async: bool) -> None:
    kind = openai.AsyncOpenAI if is_async else openai.OpenAI
    client: Any = kind(base_url=base_url, api_key="unused")
    history: list[Any] = [{"role": "user", "content": "Do it."}]
    while True:
        answer = await maybe(
            client.chat.completions.create(model=twin, messages=history, tools=openai_tools(shop))
        )
        message = answer.choices[0].message
        history.append(message)
        for call in message.tool_calls or ():
            (value,) = json.loads(call.function.arguments).values()
            result = shop.tools[call.function.name](value)
            history.append({"role": "tool", "tool_call_id": call.id, "content": result})
        if not message.tool_calls:
            return await maybe(client.close())


async def openai_responses(twin: str, shop: Shop, base_url: str, *, is_async: bool) -> None:
    kind = openai.AsyncOpenAI if is_async else openai.OpenAI
    client: Any = kind(base_url=base_url, api_key="unused")
    tools = [{"type": "function", **tool["function"]} for tool in openai_tools(shop)]
    sent: list[Any] = [{"role": "user", "content": "Do it."}]
    last = None
    while sent:
        answer = await maybe(
            client.responses.create(model=twin, input=sent, tools=tools, previous_response_id=last)
        )
        last, sent = answer.id, []
        for item in answer.output:
            if item.type == "function_call":
                (value,) = json.loads(item.arguments).values()
                result = shop.tools[item.name](value)
                sent.append(
                    {"type": "function_call_output", "call_id": item.call_id, "output": result}
                )
    await maybe(client.close())


async def anthropic_messages(twin: str, shop: Shop, base_url: str, *, is_async: bool) -> None:
    kind = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
    client: Any = kind(base_url=base_url, api_key="unused")
    tools = [{"name": name, "input_schema": schema(tool)} for name, tool in shop.tools.items()]
    history: list[Any] = [{"role": "user", "content": "Do it."}]
    while True:
        answer = await maybe(
            client.messages.create(model=twin, max_tokens=100, messages=history, tools=tools)
        )
        history.append({"role": "assistant", "content": answer.content})
        results = [
            {
                "type": "tool_result",
                "tool_use_id": block.id,
                "content": shop.tools[block.name](*block.input.values()),
            }
            for block in answer.content
            if block.type == "tool_use"
        ]
        if not results:
            return await maybe(client.close())
        history.append({"role": "user", "content": results})


def langchain_tools(shop: Shop) -> list[StructuredTool]:
    return [StructuredTool.from_function(tool, name=name) for name, tool in shop.tools.items()]


async def langchain_agent(twin: str, shop: Shop, base_url: str, *, is_async: bool) -> None:
    agent = create_agent(chat_model(twin, base_url), langchain_tools(shop), name="shop")
    await run_graph(agent, is_async=is_async)


async def langgraph_graph(twin: str, shop: Shop, base_url: str, *, is_async: bool) -> None:
    tools = langchain_tools(shop)
    model = chat_model(twin, base_url).bind_tools(tools)

    def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    async def athink(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("think", RunnableLambda(think, athink))
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", tools_condition)
    graph.add_edge("tools", "think")
    await run_graph(graph.compile(name="shop"), is_async=is_async)


async def run_graph(graph: Any, *, is_async: bool) -> None:
    asked, limit = {"messages": [("user", "Do it.")]}, {"recursion_limit": 100}
    await maybe((graph.ainvoke if is_async else graph.invoke)(asked, limit))


AGENTS: dict[str, Any] = {
    "decorated": decorated,
    "openai chat": openai_chat,
    "openai responses": openai_responses,
    "anthropic": anthropic_messages,
    "langchain": langchain_agent,
    "langgraph": langgraph_graph,
}


@pytest.fixture
def base_url() -> Iterator[str]:
    """A new one each time: LangChain keeps its clients by it, beyond the end of an event loop."""
    named = {name: twin.scenario for name, twin in TWINS.items() if twin.scenario}
    with ScriptedModel(scenarios=named, log_size=0) as server:
        yield server.base_url


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("name", TWINS)
async def test_a_healthy_agent_is_left_alone(
    name: str, agent: str, is_async: bool, base_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    memory, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    reader = InMemoryMetricReader()
    meters = MeterProvider([reader], shutdown_on_exit=False)
    loopguard.instrument(tracer_provider=provider, meter_provider=meters)
    try:
        await AGENTS[agent](name, Shop(), base_url, is_async=is_async)
    finally:
        loopguard.uninstrument()
    check(list(memory.get_finished_spans()), TWINS[name], asks=agent != "decorated")
    assert not [r for r in caplog.records if r.name.startswith("otel_loopguard")]
    assert told(reader) == []


def check(spans: list[ReadableSpan], twin: Twin, *, asks: bool) -> None:
    """Nothing is said, and all is there."""
    assert not [event for span in spans for event in span.events]
    assert not [span.name for span in spans if span.status.status_code is StatusCode.ERROR]
    assert not [span.name for span in spans if "loopguard.deadlock" in (span.attributes or {})]

    tools, chats, agents = (
        [span for span in spans if attribute(span, "gen_ai.operation.name") == operation]
        for operation in ("execute_tool", "chat", "invoke_agent")
    )
    assert len(spans) == len(tools) + len(chats) + len(agents)
    assert Counter(attribute(span, "gen_ai.tool.name") for span in tools) == twin.tools
    assert len(chats) == (twin.rounds + 1 if asks else 0)
    assert len(agents) == 1
    assert {attribute(span, "loopguard.status") for span in [*tools, *chats]} <= {"healthy"}
    assert attribute(agents[0], "loopguard.status") in (None, "healthy")
    assert len({attribute(span, "loopguard.run_id") for span in spans}) == 1
    assert len({span.context.trace_id for span in spans}) == 1
    for span in tools:
        assert set(span.attributes or {}) >= CONTRACT
    iterations = sorted({attribute(span, "loopguard.iteration") for span in tools})
    assert iterations == list(range(1, twin.rounds + 1)) or (
        not asks and len(tools) == iterations[-1]
    )


def attribute(span: ReadableSpan, name: str) -> Any:
    """An attribute of a span, None without it."""
    return (span.attributes or {}).get(name)


def told(reader: InMemoryMetricReader) -> list[tuple[str, Any]]:
    """The deadlocks and stuck runs that the metrics tell of."""
    data = reader.get_metrics_data()
    return [
        (metric.name, point)
        for resource in (data.resource_metrics if data else ())
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name in ("loopguard.deadlocks", "loopguard.stuck_runs")
        for point in metric.data.data_points
        if point.value
    ]
