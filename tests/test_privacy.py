"""No content leaves the process, unless OpenTelemetry's own setting asks for it.

Words that are nowhere else stand in all that an agent is given, does and says; none of them may be
in anything of ours that is exported or logged.
"""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypedDict

import anthropic
import openai
import pytest
from langchain.agents import create_agent
from langchain_core.tools import tool as langchain_tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Status, StatusCode

import otel_loopguard as loopguard
from examples.scripted_model import Reply, ScriptedModel, Turn, WireError
from tests.chat_models import chat_model
from tests.receiver import Receiver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from langchain_openai import ChatOpenAI

pytestmark = [
    # LangChain keeps its HTTP clients for ever.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

WORD = "kanarie"
"""In every word that is looked for, so that one search finds any of them."""
PROMPT, SYSTEM, RESULT, FAILURE, USER, KEY, VALUE, STATUS, INPUT = (
    f"{WORD}-{name}"
    for name in ("prompt", "system", "result", "failure", "user", "key", "value", "status", "input")
)
KEYED = f"{WORD}_key"
SCHEMA = {
    "type": "object",
    "properties": {KEYED: {"type": "string"}},
    "required": [KEYED],
    "additionalProperties": False,
}
FUNCTION = {"name": "search", "description": f"{WORD}-description", "parameters": SCHEMA}
SCENARIOS = ("loop-6+think", "ghost-6", "badjson-4", "badargs-4", "parallel-2x3", "broken")


def broken(_: Turn) -> Reply:
    raise WireError(400, "scripted_failure", f"the model fails with {FAILURE}")


@contextmanager
def telemetry(receiver: Receiver, **options: Any) -> Iterator[None]:
    """Watched, with all three signals on their way to a receiver; all has come when it is left."""
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(
        BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{receiver.url}/v1/traces"))
    )
    reader = PeriodicExportingMetricReader(
        OTLPMetricExporter(endpoint=f"{receiver.url}/v1/metrics")
    )
    meters = MeterProvider([reader], shutdown_on_exit=False)
    loggers = LoggerProvider(shutdown_on_exit=False)
    loggers.add_log_record_processor(
        BatchLogRecordProcessor(OTLPLogExporter(endpoint=f"{receiver.url}/v1/logs"))
    )
    loopguard.instrument(
        tracer_provider=tracers,
        meter_provider=meters,
        logger_provider=loggers,
        emit="span,metric,log",
        **options,
    )
    try:
        yield
    finally:
        loopguard.uninstrument()
        for provider in (tracers, meters, loggers):
            provider.shutdown()


def openai_chat(base_url: str) -> None:
    with openai.OpenAI(base_url=base_url, api_key=f"{WORD}-secret", max_retries=0) as client:
        for scenario in SCENARIOS:
            for stream in (False, True):
                with suppress(openai.APIError, ValueError):  # some arguments are no JSON
                    _chat(client, scenario, stream=stream)


def _chat(client: openai.OpenAI, scenario: str, *, stream: bool) -> None:
    history: list[Any] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "name": USER, "content": PROMPT},
    ]
    tools: Any = [{"type": "function", "function": {**FUNCTION, "strict": True}}]
    while True:
        asking: dict[str, Any] = {
            "model": scenario, "messages": history, "tools": tools, "user": USER,
            "metadata": {KEY: VALUE},
        }  # fmt: skip
        if stream:
            with client.chat.completions.stream(**asking) as events:
                message = events.get_final_completion().choices[0].message
        else:
            message = client.chat.completions.create(**asking).choices[0].message
        history.append(message.model_dump(exclude={"parsed"}, exclude_none=True))
        if not message.tool_calls:
            return
        history += [
            {"role": "tool", "tool_call_id": call.id, "content": f"{RESULT} {FAILURE}"}
            for call in message.tool_calls
        ]


def openai_without_tools_at_last(base_url: str) -> None:
    """The last requests offer no tools any more, as agents do that are to come to an end."""
    with openai.OpenAI(base_url=base_url, api_key="unused") as client:
        history: list[Any] = [{"role": "user", "content": PROMPT}]
        for number in range(8):
            offer: Any = {"tools": [{"type": "function", "function": FUNCTION}]}
            answer = client.chat.completions.create(
                model="ghost-6", messages=history, **(offer if number < 5 else {})
            )
            message = answer.choices[0].message
            history.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                break
            history += [
                {"role": "tool", "tool_call_id": call.id, "content": f"no such tool {RESULT}"}
                for call in message.tool_calls
            ]


def openai_responses(base_url: str) -> None:
    with openai.OpenAI(base_url=base_url, api_key="unused", max_retries=0) as client:
        for scenario in SCENARIOS:
            with suppress(openai.APIError):
                _respond(client, scenario)


def _respond(client: openai.OpenAI, scenario: str) -> None:
    sent: list[Any] = [{"role": "user", "content": PROMPT}]
    last: str | None = None
    while True:
        answer = client.responses.create(
            model=scenario,
            input=sent,
            instructions=SYSTEM,
            tools=[{"type": "function", **FUNCTION, "strict": True}],
            previous_response_id=last,
            user=USER,
        )
        last = answer.id
        sent = [
            {"type": "function_call_output", "call_id": item.call_id, "output": RESULT}
            for item in answer.output
            if item.type == "function_call"
        ]
        if not sent:
            return


def anthropic_messages(base_url: str) -> None:
    with anthropic.Anthropic(base_url=base_url, api_key="unused", max_retries=0) as client:
        for scenario in SCENARIOS:
            for stream in (False, True):
                with suppress(anthropic.APIError, ValueError):  # some arguments are no JSON
                    _message(client, scenario, stream=stream)


def _message(client: anthropic.Anthropic, scenario: str, *, stream: bool) -> None:
    history: list[Any] = [{"role": "user", "content": PROMPT}]
    while True:
        asking: dict[str, Any] = {
            "model": scenario,
            "max_tokens": 100,
            "system": SYSTEM,
            "messages": history,
            "tools": [{"name": "search", "input_schema": SCHEMA}],
            "metadata": {"user_id": USER},
        }
        if stream:
            with client.messages.stream(**asking) as events:
                message = events.get_final_message()
        else:
            message = client.messages.create(**asking)
        results = [
            {
                "type": "tool_result",
                "tool_use_id": block.id,
                "content": [{"type": "text", "text": RESULT}],
                "is_error": block.name != "search",
            }
            for block in message.content
            if block.type == "tool_use"
        ]
        history.append({"role": "assistant", "content": [b.to_dict() for b in message.content]})
        if not results:
            return
        history.append({"role": "user", "content": results})


@langchain_tool
def search(query: str) -> str:
    """Search."""
    return f"{RESULT} for {query}"


@langchain_tool
def fail(query: str) -> str:
    """Fail."""
    raise ValueError(f"{FAILURE} {query}")


@langchain_tool
async def look(query: str) -> dict[str, str]:
    """Look."""
    return {KEY: RESULT}


ASKED: Any = {"messages": [("system", SYSTEM), ("user", PROMPT)]}
THREAD: Any = {
    "configurable": {"thread_id": f"{WORD}-thread"},
    "metadata": {KEY: VALUE},
    "tags": [f"{WORD}-tag"],
}


def _model(base_url: str, scenario: str) -> ChatOpenAI:
    return chat_model(scenario, base_url, model_kwargs={"user": USER})


def langchain_agent(base_url: str) -> None:
    for scenario in SCENARIOS:
        for given in (search, fail):
            agent = create_agent(_model(base_url, scenario), [given], name="shop")
            with suppress(ValueError, openai.APIError):
                agent.invoke(ASKED, THREAD)
    for _ in range(6):
        with suppress(ValueError):
            fail.invoke({"query": VALUE})
    asyncio.run(_async_agents(base_url))


async def _async_agents(base_url: str) -> None:
    for scenario in SCENARIOS:
        agent = create_agent(_model(base_url, scenario), [look], name="shop")
        with suppress(ValueError, openai.APIError):
            await agent.ainvoke(ASKED, THREAD)


def langgraph_graph(base_url: str) -> None:
    for scenario in SCENARIOS:
        for given in (search, fail):
            model = _model(base_url, scenario).bind_tools([given])
            graph = StateGraph(MessagesState)
            graph.add_node(
                "think", lambda s, model=model: {"messages": model.invoke(s["messages"])}
            )
            graph.add_node("tools", ToolNode([given], handle_tool_errors=True))
            graph.add_edge(START, "think")
            graph.add_conditional_edges("think", tools_condition)
            graph.add_edge("tools", "think")
            with suppress(ValueError, openai.APIError):
                list(graph.compile(name="shop").stream(ASKED, THREAD))
    _supervisor()


class Task(TypedDict):
    """A state with content in its keys and values."""

    task: Any


def _supervisor() -> None:
    """A graph that calls the same graph with the same task over and over."""
    inner = StateGraph(Task)
    inner.add_node("work", lambda _: {"task": {KEY: RESULT}})
    inner.add_edge(START, "work")
    worker = inner.compile(name="worker")
    outer = StateGraph(Task)
    outer.add_node("lead", lambda _: [worker.invoke({"task": {KEY: VALUE}}) for _ in range(6)][-1])
    outer.add_edge(START, "lead")
    outer.compile(name="lead").invoke({"task": INPUT})


def decorated(_: str) -> None:
    @loopguard.tool
    def find(query: str, **more: Any) -> dict[str, Any]:
        return {KEY: [RESULT, query]}

    @loopguard.tool
    def lose(query: str) -> None:
        raise ValueError(f"{FAILURE} {query}")

    @loopguard.tool
    def give(query: str) -> Iterator[str]:
        yield RESULT

    @loopguard.agent
    def helper(task: str) -> str:
        return f"{RESULT} {task}"

    @loopguard.agent(name="shop")
    def work(task: str) -> None:
        for _ in range(6):
            find(VALUE, **{KEYED: {KEY: VALUE}})
            with suppress(ValueError):
                lose(VALUE)
            list(give(VALUE))
        for _ in range(6):
            helper(INPUT)
        for _ in range(6):
            with suppress(ValueError):
                lose(VALUE)
        raise ValueError(FAILURE)

    with suppress(ValueError):
        work(PROMPT)
    with suppress(KeyError), loopguard.run("block"):
        raise KeyError(FAILURE)


AGENTS: dict[str, Callable[[str], None]] = {
    "openai chat": openai_chat,
    "openai without tools at last": openai_without_tools_at_last,
    "openai responses": openai_responses,
    "anthropic": anthropic_messages,
    "langchain": langchain_agent,
    "langgraph": langgraph_graph,
    "decorated": decorated,
}


@pytest.fixture
def base_url() -> Iterator[str]:
    with ScriptedModel(canary=WORD, scenarios={"broken": broken}, log_size=0) as server:
        yield server.base_url


@pytest.mark.parametrize("agent", AGENTS)
def test_no_content_is_exported_or_logged(
    agent: str,
    base_url: str,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG, "otel_loopguard")
    with Receiver() as receiver, telemetry(receiver):
        AGENTS[agent](base_url)
    assert receiver.severities, "nothing to tell means nothing to leak"
    assert {path for path, _ in receiver.bodies} == {"/v1/traces", "/v1/metrics", "/v1/logs"}
    assert found_in(receiver) == []
    assert ("execute_tool unknown_tool" in receiver.names) == (agent != "decorated")
    ours = [record for record in caplog.records if record.name.startswith("otel_loopguard")]
    assert ours
    assert not [record for record in ours if WORD in record.getMessage()]
    assert not [record for record in ours if record.exc_info or WORD in repr(record.args)]
    assert WORD not in "".join(capfd.readouterr())


def found_in(receiver: Receiver) -> list[str]:
    """The words that came, each with what stands before it."""
    found = []
    for path, body in receiver.bodies:
        for part in body.split(WORD.encode())[1:]:
            word = part[:12].decode("utf-8", "replace")
            before = body[: body.index(WORD.encode() + part[:12])][-60:]
            found.append(f"{path}: {WORD}{word!r} after {before!r}")
    return found


CAPTURED = {
    "openai chat": ("args", "result"),
    "openai responses": ("args", "result"),
    "anthropic": ("args", "result"),
    "langchain": ("args", "result"),
    "langgraph": ("args", "result"),
    "decorated": ("value", "key", "result"),
}


@pytest.mark.parametrize("agent", CAPTURED)
def test_arguments_and_results_are_exported_on_demand(
    agent: str, base_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_ONLY")
    with Receiver() as receiver, telemetry(receiver):
        AGENTS[agent](base_url)
    spans = b"".join(body for path, body in receiver.bodies if path == "/v1/traces")
    for word in CAPTURED[agent]:
        assert f"{WORD}-{word}".encode() in spans
    attributes = [a for span in receiver.spans for a in span.attributes]
    with_words = {a.key for a in attributes if WORD in a.value.string_value}
    allowed = {"gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "gen_ai.output.messages"}
    assert allowed >= with_words
    assert with_words
    others = b"".join(body for path, body in receiver.bodies if path != "/v1/traces")
    assert WORD.encode() not in others


Attributes = dict[str, Any]


def _genai(number: int) -> list[tuple[str, str, Attributes]]:
    call = {
        "type": "tool_call",
        "id": f"call-{number}",
        "name": f"ghost_{WORD}",
        "arguments": {KEY: VALUE},
    }
    result = {"type": "tool_call_response", "id": f"call-{number}", "result": RESULT}
    asked = {"role": "assistant", "parts": [call]}
    answer = {"role": "tool", "parts": [result]}
    user = {"role": "user", "parts": [{"type": "text", "content": PROMPT}]}
    return [
        (
            "opentelemetry.util.genai.handler",
            "chat gpt",
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": "gpt",
                "gen_ai.system_instructions": json.dumps([{"type": "text", "content": SYSTEM}]),
                "gen_ai.input.messages": json.dumps([user, asked, answer]),
                "gen_ai.output.messages": json.dumps([asked]),
                "gen_ai.tool.definitions": f"[{SCHEMA_TEXT}]",
                "enduser.id": USER,
            },
        ),
        (
            "opentelemetry.instrumentation.langchain",
            "execute_tool search",
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "search",
                "gen_ai.tool.call.arguments": json.dumps({KEY: VALUE}),
                "gen_ai.tool.call.result": RESULT,
            },
        ),
    ]


SCHEMA_TEXT = json.dumps({"type": "function", "function": FUNCTION})


def _openinference(number: int) -> list[tuple[str, str, Attributes]]:
    call = "llm.input_messages.1.message.tool_calls.0.tool_call."
    return [
        (
            "openinference.instrumentation.langchain",
            "search",
            {
                "openinference.span.kind": "TOOL",
                "tool.name": "search",
                "input.value": json.dumps({KEY: VALUE}),
                "output.value": RESULT,
                "user.id": USER,
            },
        ),
        (
            "openinference.instrumentation.openai",
            "ChatCompletion",
            {
                "openinference.span.kind": "LLM",
                "llm.model_name": "gpt",
                "input.value": PROMPT,
                "output.value": f"{WORD}-text",
                "llm.input_messages.0.message.role": "system",
                "llm.input_messages.0.message.content": SYSTEM,
                "llm.input_messages.1.message.role": "assistant",
                f"{call}id": f"call-{number}",
                f"{call}function.name": f"ghost_{WORD}",
                f"{call}function.arguments": json.dumps({KEY: VALUE}),
                "llm.input_messages.2.message.role": "tool",
                "llm.input_messages.2.message.tool_call_id": f"call-{number}",
                "llm.input_messages.2.message.content": RESULT,
                "llm.tools.0.tool.json_schema": SCHEMA_TEXT,
            },
        ),
    ]


def _openllmetry(number: int) -> list[tuple[str, str, Attributes]]:
    return [
        (
            "opentelemetry.instrumentation.openai",
            "openai.chat",
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": "gpt",
                "gen_ai.input.messages": _genai(number)[0][2]["gen_ai.input.messages"],
                "llm.request.functions.0.name": "search",
                "llm.request.functions.0.description": f"{WORD}-description",
            },
        ),
        (
            "opentelemetry.instrumentation.langchain",
            "search.tool",
            {
                "traceloop.span.kind": "tool",
                "traceloop.entity.name": "search",
                "traceloop.entity.input": json.dumps({"inputs": {KEY: VALUE}}),
                "traceloop.entity.output": json.dumps({"output": RESULT}),
                "traceloop.association.properties.user": USER,
            },
        ),
    ]


FOREIGN = {"genai": _genai, "openinference": _openinference, "openllmetry": _openllmetry}


@pytest.mark.parametrize("failing", [False, True])
@pytest.mark.parametrize("convention", FOREIGN)
def test_the_processor_copies_no_content_of_foreign_spans(
    convention: str,
    failing: bool,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("otel_loopguard.runtime._current", None)
    with Receiver() as receiver:
        provider = TracerProvider(shutdown_on_exit=False)
        exporter = OTLPSpanExporter(endpoint=f"{receiver.url}/v1/traces")
        provider.add_span_processor(loopguard.LoopGuardSpanProcessor(provider))
        provider.add_span_processor(BatchSpanProcessor(exporter))
        for nth in range(len(FOREIGN[convention](0))):
            outer = provider.get_tracer("app").start_span(f"work on {PROMPT}")
            context = trace.set_span_in_context(outer)
            for number in range(8):
                scope, name, attributes = FOREIGN[convention](number)[nth]
                span = provider.get_tracer(scope).start_span(name, context, attributes=attributes)
                if failing:
                    span.record_exception(ValueError(FAILURE))
                    span.set_status(Status(StatusCode.ERROR, STATUS))
                span.end()
            outer.end()
        provider.shutdown()
        assert receiver.severities
        ours = list(_ours(receiver))
    assert not [part for part in ours if WORD.encode() in part]
    assert WORD not in caplog.text


def _ours(receiver: Receiver) -> Iterator[bytes]:
    """What is of our making: our spans, and what we add to the others."""
    for scope in receiver.scopes:
        for span in scope.spans:
            if scope.scope.name == "otel_loopguard":
                yield span.SerializeToString()
                continue
            for part in (*span.attributes, *span.events):
                name = getattr(part, "key", None) or part.name
                if name.startswith("loopguard."):
                    yield part.SerializeToString()


DIGEST = """
import otel_loopguard as loopguard
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

memory, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(memory))
loopguard.instrument(tracer_provider=provider)

@loopguard.tool
def unlock(pin: int) -> bool:
    return pin == 7

unlock(7)
(span,) = memory.get_finished_spans()
print(span.attributes["loopguard.args_fingerprint"])
"""


def test_what_is_easily_guessed_cannot_be_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_LOOPGUARD_HASH_KEY", raising=False)
    one, other = _digests(2)
    assert one != other
    monkeypatch.setenv("OTEL_LOOPGUARD_HASH_KEY", "a key")
    same, again = _digests(2)
    assert same == again
    assert same not in (one, other)
    assert len(same) == 16


def _digests(processes: int) -> list[str]:
    command = [sys.executable, "-c", DIGEST]
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)
    ]
    return [process.communicate(timeout=60)[0].strip() for process in started]
