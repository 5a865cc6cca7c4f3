"""openai: each loop ends on its own rung."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.frameworks.openai_apis import Chat, Responses, connect
from tests.frameworks.rungs import (
    RUNGS,
    Agent,
    Deleting,
    Rung,
    assert_asked,
    assert_recovered,
    parameters,
)
from tests.frameworks.support import Telemetry, entered

if TYPE_CHECKING:
    from examples.scripted_model import ScriptedModel


def tools_of(api: Any, rung: Rung) -> list[dict[str, Any]]:
    """The tools of a loop, as an endpoint wants them."""
    told = [{"name": each.__name__, "parameters": parameters(each)} for each in rung.tools]
    if isinstance(api, Chat):
        return [{"type": "function", "function": each} for each in told]
    return [{"type": "function", **each} for each in told]


@pytest.mark.parametrize("way", ["create", "stream"])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("api", [Chat(), Responses()], ids=["chat", "responses"])
@pytest.mark.parametrize("rung", RUNGS, ids=[each.pattern for each in RUNGS])
async def test_a_loop_ends_on_its_rung(
    telemetry: Telemetry, server: ScriptedModel, rung: Rung, api: Any, way: str, *, is_async: bool
) -> None:
    telemetry.instrument(action="nudge")
    async with entered(connect(server.base_url, is_async=is_async)) as client:
        agent = Agent(api, client, rung.model, way, most=20, more={"tools": tools_of(api, rung)})
        agent.functions = rung.tools
        assert (await agent.go()).startswith("Finished")
    assert_recovered(telemetry, rung, server.requests)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("api", [Chat(), Responses()], ids=["chat", "responses"])
async def test_who_is_refused_asks_a_human(
    telemetry: Telemetry, server: ScriptedModel, api: Any, *, is_async: bool
) -> None:
    deleting = Deleting()
    telemetry.instrument(action="break", tools="delete:irreversible", escalate=deleting.ask)
    rung = Rung(deleting.pattern, "plead", (deleting.delete,), ("escalate_to_human", 3), True)
    async with entered(connect(server.base_url, is_async=is_async)) as client:
        agent = Agent(api, client, rung.model, most=20, more={"tools": tools_of(api, rung)})
        agent.functions = rung.tools
        assert (await agent.go()).startswith("Finished")
    assert_asked(telemetry, deleting)
