"""`held` and `call_tool`: a call that a loop makes by hand, decided about before it is made."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

import openai
import pytest

import otel_loopguard
from examples.scripted_model import ScriptedModel
from otel_loopguard import call_tool, held
from otel_loopguard.instrumentation import wiring
from otel_loopguard.runtime import boundary
from tests.signals import Signals, attributes

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = "a page without any needle, though it is long and has been read with great care by all"
ARGS = '{"query": "the needle in the haystack"}'
NOTE = "This call was not made: search was called 3 times"


@pytest.fixture
def signals() -> Signals:
    return Signals()


@pytest.fixture
def client() -> Iterator[openai.OpenAI]:
    with (
        ScriptedModel() as server,
        openai.OpenAI(base_url=server.base_url, api_key="unused") as client,
    ):
        yield client


class Tool:
    """A tool, as a function of each kind, which counts its calls."""

    def __init__(self) -> None:
        self.made = 0

    def plain(self, query: str) -> str:
        self.made += 1
        return PAGE

    async def coroutine(self, query: str) -> str:
        await asyncio.sleep(0)
        return self.plain(query)

    async def __call__(self, query: str) -> str:
        return await self.coroutine(query)


async def called(function: Any, times: int, args: Any = ARGS) -> list[Any]:
    """What the calls gave, of a function that may be async."""
    results = [call_tool(function, "search", args) for _ in range(times)]
    return [await each if asyncio.iscoroutine(each) else each for each in results]


@pytest.mark.parametrize("kind", ["plain", "coroutine", "object", "partial"])
async def test_a_call_of_each_kind_of_function(signals: Signals, kind: str) -> None:
    tool = Tool()
    kinds: dict[str, Any] = {
        "plain": tool.plain,
        "coroutine": tool.coroutine,
        "object": tool,
        "partial": partial(tool.coroutine),
    }
    with signals.instrumented(action="nudge"), otel_loopguard.run("finder"):
        results = await called(kinds[kind], 4)
    assert tool.made == 3
    assert results[:3] == [PAGE] * 3
    assert results[3].startswith(NOTE)
    spans = signals.named("execute_tool search")
    assert len(spans) == 4
    (agent,) = signals.named("invoke_agent finder")
    assert {span.parent and span.parent.span_id for span in spans} == {agent.context.span_id}


async def test_arguments_may_be_text_or_a_mapping(signals: Signals) -> None:
    tool = Tool()
    query = {"query": "the needle in the haystack"}
    with signals.instrumented(action="nudge"), otel_loopguard.run("finder"):
        await called(tool.plain, 2)
        results = await called(tool.plain, 2, query)
    assert results[1].startswith(NOTE)


def test_what_is_no_json_raises_as_it_would(signals: Signals) -> None:
    with signals.instrumented(action="break"), pytest.raises(ValueError, match="Expecting"):
        call_tool(Tool().plain, "search", "query = 1")


def test_what_the_tool_raises_goes_on(signals: Signals) -> None:
    def fail(query: str) -> str:
        raise LookupError(query)

    with (
        signals.instrumented(),
        otel_loopguard.run("finder"),
        pytest.raises(LookupError, match="needle"),
    ):
        call_tool(fail, "search", ARGS, "call-1")
    span = signals.span("execute_tool search")
    assert attributes(span)["error.type"] == "LookupError"
    assert attributes(span)["gen_ai.tool.call.id"] == "call-1"


def test_the_result_may_be_of_ones_own_kind(signals: Signals) -> None:
    with signals.instrumented(action="nudge"), otel_loopguard.run("finder"):
        for _ in range(4):
            result = call_tool(Tool().plain, "search", ARGS, on_loop=lambda note: [note])
    assert result[0].startswith(NOTE)


def test_a_decorated_function_is_one_call_still(signals: Signals) -> None:
    search = otel_loopguard.tool(Tool().plain, name="search")
    with signals.instrumented(), otel_loopguard.run("finder"):
        call_tool(search, "search", ARGS, "call-1")
    assert len(signals.named("execute_tool search")) == 1


def test_switched_off_it_is_a_mere_call() -> None:
    tool = Tool()
    wiring.disconnect()
    for _ in range(10):
        assert held("search", ARGS) is None
        assert call_tool(tool.plain, "search", ARGS) == PAGE
    assert tool.made == 10


async def test_switched_off_it_is_a_mere_call_of_a_coroutine() -> None:
    wiring.disconnect()
    assert await called(Tool().coroutine, 5) == [PAGE] * 5


def test_outside_of_every_run_nothing_is_held_back(signals: Signals) -> None:
    with signals.instrumented(action="break"):
        for _ in range(10):
            assert held("search", ARGS) is None
            assert call_tool(Tool().plain, "search", ARGS) == PAGE


def test_calls_that_another_instrumentation_shows_can_be_held_back(signals: Signals) -> None:
    """The guard has their spans; who makes the calls asks it."""
    tracer = signals.tracer_provider.get_tracer("theirs")
    asked = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search",
        "gen_ai.tool.call.arguments": ARGS,
        "gen_ai.tool.call.result": PAGE,
    }
    notes = []
    with signals.instrumented(action="nudge"), otel_loopguard.run("finder"):
        for n in range(5):
            notes.append(held("search", ARGS))
            if notes[-1] is None:
                with tracer.start_as_current_span("execute_tool search", attributes=asked) as span:
                    span.set_attribute("gen_ai.tool.call.id", f"call-{n}")
                    assert held("search", ARGS) is None or n > 3
    assert [note is not None for note in notes] == [False] * 3 + [True] * 2
    spans = signals.named("execute_tool search")
    assert ["loopguard.intervention" in attributes(span) for span in spans] == [False] * 3 + [
        True
    ] * 2


def test_in_a_shadow_calls_that_others_show_are_counted(signals: Signals) -> None:
    search = otel_loopguard.tool(Tool().plain, name="search")
    with signals.instrumented(action="shadow"), otel_loopguard.run("finder"):
        for _ in range(3):
            search(query="the needle in the haystack")
        assert held("search", ARGS) is None
        counted = signals.points("loopguard.interventions")
    assert counted[("finder", "inject_correction", "shadow", "hard_loop")] == 1


def test_inside_of_the_call_itself_there_is_nothing_to_decide(signals: Signals) -> None:
    asked = []

    @otel_loopguard.tool
    def search(query: str) -> str:
        asked.append(held("search", ARGS))
        return PAGE

    with signals.instrumented(action="nudge"), otel_loopguard.run("finder"):
        for _ in range(4):
            last = search("the needle in the haystack")
    assert asked == [None] * 3
    assert last.startswith(NOTE)


class Loop:
    """A loop over the openai SDK, for what the tests of that framework do not look at."""

    def __init__(self, client: openai.OpenAI, model: str) -> None:
        self.client, self.model = client, model
        self.messages: list[Any] = [{"role": "user", "content": "Find it."}]
        schema = {"type": "object", "properties": {"query": {"type": "string"}}}
        self.tools = [{"type": "function", "function": {"name": "search", "parameters": schema}}]

    def ask(self) -> Any:
        answer = self.client.chat.completions.create(
            model=self.model, messages=self.messages, tools=self.tools
        )
        message = answer.choices[0].message
        self.messages.append(message)
        return (message.tool_calls or [None])[0]

    def answer(self, call: Any, result: str) -> None:
        self.messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


@pytest.mark.parametrize("helper", ["held", "call_tool"])
def test_a_tool_that_does_not_exist_is_never_named(
    signals: Signals, client: openai.OpenAI, helper: str
) -> None:
    loop, said = Loop(client, "ghost"), []
    with signals.instrumented(action="nudge"):
        while len(said) < 6:
            call = loop.ask()
            asked = (call.function.name, call.function.arguments, call.id)
            if helper == "held":
                note = held(*asked)
                said.append("There is no such tool." if note is None else note)
            else:
                said.append(call_tool(lambda **_: "There is no such tool.", *asked))
            loop.answer(call, said[-1])
    assert [each.startswith("This call was not made") for each in said] == [False] * 3 + [True] * 3
    shown = [span for span in signals.spans if span.name.startswith("execute_tool")]
    assert len(shown) == 6
    assert "ghost_tool" not in "".join(span.to_json() for span in signals.spans)


def test_asked_twice_about_one_call_it_says_the_same_and_tells_once(
    signals: Signals, client: openai.OpenAI
) -> None:
    loop, made = Loop(client, "loop+deaf"), 0
    with signals.instrumented(action="break"):
        while True:
            call = loop.ask()
            asked = (call.function.name, call.function.arguments, call.id)
            try:
                notes = {held(*asked) for _ in range(3)}
            except otel_loopguard.DeadlockError:
                with pytest.raises(otel_loopguard.DeadlockError):
                    held(*asked)
                break
            assert len(notes) == 1
            made += notes == {None}
            loop.answer(call, notes.pop() or PAGE)
    assert made == 3
    told = [event for span in signals.spans for event in span.events]
    assert [event.name for event in told].count("loopguard.intervention") == 4


def test_a_fault_of_ours_lets_the_call_go(
    signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(boundary, "reraise", False)
    with signals.instrumented(action="break") as wired, otel_loopguard.run("finder"):
        monkeypatch.setattr(wired, "claim", fail)
        assert held("search", ARGS) is None
        assert call_tool(Tool().plain, "search", ARGS) == PAGE
    assert boundary.faults == {"question before a call": 1, "start of a dispatched call": 1}
    boundary.faults.clear()
