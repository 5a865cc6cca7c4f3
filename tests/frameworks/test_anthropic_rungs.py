"""anthropic: each loop ends on its own rung."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.frameworks.anthropic_apis import BetaMessages, Messages, connect
from tests.frameworks.rungs import (
    RUNGS,
    Agent,
    Deleting,
    Rung,
    answers,
    assert_answered,
    assert_asked,
    assert_recovered,
    parameters,
)
from tests.frameworks.support import Telemetry, entered

if TYPE_CHECKING:
    from examples.scripted_model import ScriptedModel


@pytest.mark.parametrize("way", ["create", "stream"])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("api", [Messages(), BetaMessages()], ids=["messages", "beta"])
@pytest.mark.parametrize("rung", RUNGS, ids=[each.pattern for each in RUNGS])
async def test_a_loop_ends_on_its_rung(
    telemetry: Telemetry, server: ScriptedModel, rung: Rung, api: Any, way: str, *, is_async: bool
) -> None:
    telemetry.instrument(action="nudge")
    tools = [{"name": each.__name__, "input_schema": parameters(each)} for each in rung.tools]
    async with entered(connect(server.base_url, is_async=is_async)) as client:
        agent = Agent(api, client, rung.model, way, most=20, more={"tools": tools})
        agent.functions = rung.tools
        assert (await agent.go()).startswith("Finished")
    assert agent.spoken == ["Find it."]
    assert_recovered(telemetry, rung, server.requests)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_who_is_refused_asks_a_human(
    telemetry: Telemetry, server: ScriptedModel, *, is_async: bool
) -> None:
    deleting = Deleting()
    telemetry.instrument(action="break", tools="delete:irreversible", escalate=deleting.ask)
    tools = [{"name": "delete", "input_schema": parameters(deleting.delete)}]
    async with entered(connect(server.base_url, is_async=is_async)) as client:
        agent = Agent(Messages(), client, "plead", most=20, more={"tools": tools})
        agent.functions = (deleting.delete,)
        assert (await agent.go()).startswith("Finished")
    assert_asked(telemetry, deleting)


@answers
@pytest.mark.parametrize("way", ["create", "stream"])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_a_human_says_whether_the_next_request_is_sent(
    telemetry: Telemetry, server: ScriptedModel, way: str, answer: str, *, is_async: bool
) -> None:
    deleting = Deleting(answer)
    telemetry.instrument(action="break", escalate=deleting.ask, escalate_timeout_s=1)
    tools = [{"name": "delete", "input_schema": parameters(deleting.delete)}]
    async with entered(connect(server.base_url, is_async=is_async)) as client:
        agent = Agent(Messages(), client, "plead", way, most=20, more={"tools": tools})
        agent.functions = (deleting.delete,)
        await assert_answered(telemetry, server, deleting, answer, agent.go)
