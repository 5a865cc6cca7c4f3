"""langchain-core: tools and chat models by themselves, whatever calls them."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Annotated, Any

import pytest

pytest.importorskip("langgraph.prebuilt")

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolArg, StructuredTool, ToolException, tool
from opentelemetry import context as otel_context

import otel_loopguard
from otel_loopguard.instrumentation.langchain_values import thought_in
from tests.frameworks.langchain_agents import (
    QUIET,
    asearch,
    chat,
    left_clients_are_collected,  # noqa: F401 - a fixture
    search,
)
from tests.frameworks.support import KEY, Telemetry, of

if TYPE_CHECKING:
    from collections.abc import Callable

    from examples.scripted_model import ScriptedModel

pytestmark = QUIET
ASK = [HumanMessage("Find it.")]
ARGS = {"query": "it", "page": 1}


def outcomes(telemetry: Telemetry) -> list[Any]:
    return [of(span, "loopguard.outcome") for span in telemetry.tools]


def call(number: int, **args: Any) -> dict[str, Any]:
    """A tool call as a model's message holds it."""
    return {"type": "tool_call", "name": "search", "id": f"call_{number}", "args": args or ARGS}


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_a_model_call_is_one_span(telemetry: Telemetry, server: ScriptedModel, way: str) -> None:
    model = chat(server, "loop-1", stream_usage=True).bind_tools([search])
    with otel_loopguard.run("mine"):
        if way == "invoke":
            model.invoke(ASK)
        else:
            list(model.stream(ASK))
    telemetry.assert_run(chats=1, tools=0)
    (span,) = telemetry.chats
    assert span.name == "chat loop-1"
    assert of(span, "gen_ai.provider.name") == "openai"
    assert of(span, "gen_ai.request.model") == "loop-1"
    assert of(span, "gen_ai.usage.input_tokens") == 100
    assert of(span, "gen_ai.usage.output_tokens") == 20
    assert of(span, "gen_ai.response.finish_reasons") == ("tool_calls",)
    assert of(span, "gen_ai.response.model") == "loop-1"


@pytest.mark.parametrize("way", ["ainvoke", "astream"])
async def test_an_async_model_call_is_one_span(
    telemetry: Telemetry, server: ScriptedModel, way: str
) -> None:
    model = chat(server, "answer", stream_usage=True)
    async with otel_loopguard.run("mine"):
        if way == "ainvoke":
            await model.ainvoke(ASK)
        else:
            [chunk async for chunk in model.astream(ASK)]
    telemetry.assert_run(chats=1, tools=0)
    (span,) = telemetry.chats
    assert of(span, "gen_ai.usage.input_tokens") == 100


def test_each_prompt_of_a_batch_is_one_span(telemetry: Telemetry, server: ScriptedModel) -> None:
    with otel_loopguard.run("mine"):
        chat(server, "answer").batch([ASK, ASK, ASK])
    telemetry.assert_run(chats=3, tools=0)


@pytest.mark.filterwarnings("ignore:Unexpected type for token usage:UserWarning")
def test_several_prompts_at_once(telemetry: Telemetry, server: ScriptedModel) -> None:
    with otel_loopguard.run("mine"):
        chat(server, "answer").generate([ASK, ASK])
    telemetry.assert_run(chats=2, tools=0)


def test_a_model_without_streaming(telemetry: Telemetry, server: ScriptedModel) -> None:
    with otel_loopguard.run("mine"):
        (only,) = chat(server, "answer", disable_streaming=True).stream(ASK)
    assert only.content == "Finished after 0 turns."
    telemetry.assert_run(chats=1, tools=0)


def test_a_model_call_that_fails(telemetry: Telemetry, server: ScriptedModel) -> None:
    with otel_loopguard.run("mine"), pytest.raises(Exception, match="no_such"):
        chat(server, "no_such").invoke(ASK)
    (span,) = telemetry.chats
    assert not span.status.is_ok
    assert of(span, "error.type").endswith("NotFoundError")


def test_an_abandoned_stream_of_a_model(telemetry: Telemetry, server: ScriptedModel) -> None:
    with otel_loopguard.run("mine"):
        inside = otel_context.get_current()
        for _ in chat(server, "answer").stream(ASK):
            break
        gc.collect()
        assert otel_context.get_current() is inside
    telemetry.assert_run(chats=1, tools=0)
    assert telemetry.chats[0].status.is_unset


def test_anthropic(telemetry: Telemetry, server: ScriptedModel) -> None:
    anthropic = pytest.importorskip("langchain_anthropic")
    model = anthropic.ChatAnthropic(
        model="loop-1", base_url=server.base_url.removesuffix("/v1"), api_key=KEY, max_retries=0
    ).bind_tools([search])
    with otel_loopguard.run("mine"):
        asked = model.invoke(ASK)
        list(model.stream(ASK))
        search.invoke(asked.tool_calls[0])
    telemetry.assert_run(chats=2, tools=1)
    assert of(telemetry.chats[0], "gen_ai.usage.input_tokens") == 100
    for span in telemetry.chats:
        assert of(span, "gen_ai.provider.name") == "anthropic"
        assert of(span, "gen_ai.usage.output_tokens") == 20
        assert of(span, "gen_ai.response.finish_reasons") == ("tool_use",)


@pytest.mark.parametrize("given", [lambda _: ARGS, call], ids=["args", "call"])
def test_a_loop_over_a_tool(telemetry: Telemetry, given: Callable[[int], Any]) -> None:
    with otel_loopguard.run("mine"):
        results = [search.invoke(given(number)) for number in range(5)]
    assert {getattr(result, "content", result) for result in results} == {"nothing"}
    telemetry.assert_run(chats=0, tools=5)
    assert telemetry.patterns == [("hard_loop", "warning"), ("hard_loop", "critical")]
    assert [of(span, "loopguard.repeat_count") for span in telemetry.tools] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("used", [search, asearch], ids=["sync", "async"])
async def test_an_async_call_of_a_tool_is_one_span(telemetry: Telemetry, used: Any) -> None:
    async with otel_loopguard.run("mine"):
        for number in range(3):
            await used.ainvoke(call(number))
    telemetry.assert_run(chats=0, tools=3)
    assert telemetry.patterns == [("hard_loop", "warning")]


async def test_parallel_tools_in_one_loop(telemetry: Telemetry) -> None:
    async with otel_loopguard.run("mine"):
        for turn in range(2):
            await asyncio.gather(
                *(asearch.ainvoke(call(2 * turn + n, query="it", page=n)) for n in range(2))
            )
    telemetry.assert_run(chats=0, tools=4)
    assert [of(span, "loopguard.iteration") for span in telemetry.tools] == [1, 1, 2, 2]


def test_equal_results_under_new_call_ids_are_equal(telemetry: Telemetry) -> None:
    with otel_loopguard.run("mine"):
        for number in range(2):
            message = search.invoke(call(number))
            assert isinstance(message, ToolMessage)
            assert message.tool_call_id == f"call_{number}"
    hashes = {of(span, "loopguard.result_hash") for span in telemetry.tools}
    assert len(hashes) == 1
    assert {of(span, "loopguard.result_length") for span in telemetry.tools} == {len("nothing")}


def test_what_is_injected_is_no_argument(telemetry: Telemetry) -> None:
    @tool
    def lookup(query: str, state: Annotated[Any, InjectedToolArg]) -> str:
        """Look it up."""
        return "nothing"

    with otel_loopguard.run("mine"):
        for number in range(3):
            lookup.invoke({"query": "it", "state": {"messages": [number]}})
    assert len({of(span, "loopguard.args_fingerprint") for span in telemetry.tools}) == 1
    assert telemetry.patterns == [("hard_loop", "warning")]


def test_a_runtime_is_no_argument(telemetry: Telemetry) -> None:
    runtime = pytest.importorskip("langchain.tools").ToolRuntime

    def lookup(query: str, runtime: Any) -> str:
        """Look it up."""
        return "nothing"

    lookup.__annotations__["runtime"] = runtime
    looking = tool(lookup)
    with otel_loopguard.run("mine"):
        for number in range(2):
            given = runtime({"n": number}, None, {}, lambda _: None, f"call_{number}", None)
            looking.invoke({"query": "it", "runtime": given})
    assert len({of(span, "loopguard.args_fingerprint") for span in telemetry.tools}) == 1


def test_a_schema_that_is_json(telemetry: Telemetry) -> None:
    schema = {"type": "object", "properties": {"query": {"type": "string"}}}
    try:
        plain = StructuredTool.from_function(
            lambda query: "nothing", name="plain", description="Find it.", args_schema=schema
        )
    except TypeError:
        pytest.skip("this version takes no JSON schema")
    with otel_loopguard.run("mine"):
        plain.invoke({"query": "it"})
    telemetry.assert_run(chats=0, tools=1)


def test_an_error_that_the_tool_turns_into_a_message(telemetry: Telemetry) -> None:
    def fail(query: str) -> str:
        raise ToolException("canary text")

    failing = StructuredTool.from_function(
        fail, name="failing", description="Fails.", handle_tool_error=True
    )
    with otel_loopguard.run("mine"):
        message = failing.invoke({**call(1, query="it"), "name": "failing"})
    assert message.content == "canary text"
    (span,) = telemetry.tools
    assert outcomes(telemetry) == ["error"]
    assert (of(span, "error.type"), span.status.is_ok) == ("tool_error", False)
    assert "canary text" not in span.to_json()


def test_a_tool_that_calls_a_tool(telemetry: Telemetry) -> None:
    @tool
    def wrapper(query: str) -> str:
        """Search, by another tool."""
        return search.invoke({"query": query})

    with otel_loopguard.run("mine"):
        wrapper.invoke({"query": "it"})
    outer, inner = telemetry.tools
    assert (outer.name, inner.name) == ("execute_tool wrapper", "execute_tool search")
    assert inner.parent is not None
    assert inner.parent.span_id == outer.context.span_id


def test_a_decorated_tool_is_one_span(telemetry: Telemetry) -> None:
    @tool
    @otel_loopguard.tool
    def lookup(query: str) -> str:
        """Look it up."""
        return "nothing"

    with otel_loopguard.run("mine"):
        lookup.invoke({"query": "it"})
    telemetry.assert_run(chats=0, tools=1)


def test_a_command_that_a_tool_returns(telemetry: Telemetry) -> None:
    types = pytest.importorskip("langgraph.types")

    def plan(number: int) -> Any:
        message = ToolMessage("planned", tool_call_id=f"call_{number}", id=f"random-{number}")
        return types.Command(update={"messages": [message], "steps": ["look"]}, goto="other")

    @tool
    def make_plan(query: str) -> Any:
        """Plan it."""
        return plan(len(telemetry.tools))

    with otel_loopguard.run("mine"):
        for _ in range(2):
            make_plan.invoke({"query": "it"})
    assert len({of(span, "loopguard.result_hash") for span in telemetry.tools}) == 1


@pytest.mark.parametrize(
    ("message", "thought"),
    [
        (AIMessage("Found."), ""),
        (AIMessage("Found.", additional_kwargs={"reasoning_content": "Well."}), "Well."),
        (AIMessage([{"type": "thinking", "thinking": "Well."}, "Found."]), "Well."),
        (AIMessage([{"type": "reasoning", "reasoning": "Well."}, "Found."]), "Well."),
        (AIMessage([{"type": "reasoning", "reasoning": None}]), ""),
    ],
)  # fmt: skip
def test_the_reasoning_of_a_message(message: AIMessage, thought: str) -> None:
    assert thought_in(message) == thought
