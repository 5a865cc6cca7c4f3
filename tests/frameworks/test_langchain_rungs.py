"""langchain and langgraph: each loop ends on its own rung."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("langgraph.prebuilt")

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import ToolException, tool

import otel_loopguard as loopguard
from tests.frameworks.langchain_agents import (
    KINDS,
    QUIET,
    build,
    chat,
    left_clients_are_collected,  # noqa: F401 - a fixture
    run,
)
from tests.frameworks.rungs import (
    RUNGS,
    Deleting,
    Rung,
    answers,
    assert_answered,
    assert_asked,
    assert_recovered,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from examples.scripted_model import ScriptedModel
    from tests.frameworks.support import Telemetry

pytestmark = QUIET
AGENTS = [each for each in RUNGS if each.pattern != "reflection_paralysis"]
MUSING = next(each for each in RUNGS if each.pattern == "reflection_paralysis")


def tool_of(function: Callable[..., str]) -> Any:
    """A tool whose failures the model is told."""

    @wraps(function)
    def careful(**arguments: object) -> str:
        try:
            return function(**arguments)
        except ConnectionError as error:
            raise ToolException(str(error)) from error

    made = tool(careful)
    made.handle_tool_error = True
    return made


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "amessages"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rung", AGENTS, ids=[each.pattern for each in AGENTS])
async def test_a_loop_ends_on_its_rung(
    telemetry: Telemetry, server: ScriptedModel, rung: Rung, kind: str, way: str
) -> None:
    telemetry.instrument(action="nudge")
    graph = build(kind, chat(server, rung.model), [tool_of(each) for each in rung.tools])
    await run(graph, way)
    assert_recovered(telemetry, rung, server.requests)


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
async def test_who_only_talks_acts(telemetry: Telemetry, server: ScriptedModel, way: str) -> None:
    telemetry.instrument(action="nudge")
    model = chat(server, MUSING.model).bind_tools([tool_of(MUSING.tools[0])])
    history: list[Any] = [HumanMessage("Find it.")]
    with loopguard.run("talker"):
        for _ in range(10):
            if way == "invoke":
                text = model.invoke(history).content
            elif way == "ainvoke":
                text = (await model.ainvoke(history)).content
            elif way == "stream":
                text = "".join(chunk.content for chunk in model.stream(history))
            else:
                text = "".join([chunk.content async for chunk in model.astream(history)])
            history.append(AIMessage(text))
            if text.startswith("Finished"):
                break
    assert_recovered(telemetry, MUSING, server.requests)
    assert len(history) == 5
    assert sum(isinstance(each, HumanMessage) for each in history) == 1


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
@pytest.mark.parametrize("kind", KINDS)
async def test_who_is_refused_asks_a_human(
    telemetry: Telemetry, server: ScriptedModel, kind: str, way: str
) -> None:
    deleting = Deleting()

    def delete(query: str, page: int = 1) -> str:
        """Delete it."""
        return deleting.delete(query, page)

    telemetry.instrument(action="break", tools="delete:irreversible", escalate=deleting.ask)
    await run(build(kind, chat(server, "plead"), [tool(delete)]), way)
    assert_asked(telemetry, deleting)


@answers
@pytest.mark.parametrize("way", ["invoke", "ainvoke", "messages", "amessages"])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_human_says_whether_the_next_request_is_sent(
    telemetry: Telemetry, server: ScriptedModel, kind: str, way: str, answer: str
) -> None:
    deleting = Deleting(answer)

    def delete(query: str, page: int = 1) -> str:
        """Delete it."""
        return deleting.delete(query, page)

    telemetry.instrument(action="break", escalate=deleting.ask, escalate_timeout_s=1)
    graph = build(kind, chat(server, "plead"), [tool(delete)])
    await assert_answered(telemetry, server, deleting, answer, lambda: run(graph, way))
