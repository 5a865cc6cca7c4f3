"""anthropic: N model calls and M tools are N chat and M execute_tool spans of one trace, each way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.frameworks.anthropic_apis import BetaMessages, Messages, client
from tests.frameworks.support import (
    WAYS,
    Conversation,
    Telemetry,
    entered,
    of,
    offers,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from examples.scripted_model import ScriptedModel

APIS = (Messages(), BetaMessages())
every_api = pytest.mark.parametrize("api", APIS, ids=lambda api: type(api).__name__)
every_way = pytest.mark.parametrize("way", WAYS)


@pytest.fixture(params=[False, True], ids=["sync", "async"])
async def asked(request: pytest.FixtureRequest, server: ScriptedModel) -> AsyncIterator[Any]:
    """A client, sync or async."""
    async with entered(client(server.base_url, is_async=request.param)) as value:
        yield value


@every_way
@every_api
async def test_a_loop(telemetry: Telemetry, asked: Any, api: Any, way: str) -> None:
    if not offers(api, asked, way):
        pytest.skip(f"this version cannot {way}")
    answer = await Conversation(api, asked, "loop-5", way).go()
    assert answer == "Finished after 5 turns."
    agent = telemetry.assert_run(chats=6, tools=5)
    assert {span.name for span in telemetry.chats} == {"chat loop-5"}
    assert {span.name for span in telemetry.tools} == {"execute_tool search"}
    assert {of(span, "loopguard.span_origin") for span in telemetry.tools} == {"messages"}
    assert of(agent, "loopguard.end_reason") == "answer"
    assert telemetry.patterns == [("hard_loop", "warning"), ("hard_loop", "critical")]
    third, fifth = telemetry.tools[2], telemetry.tools[4]
    assert [event.name for span in (third, fifth) for event in span.events] == [
        "loopguard.deadlock"
    ] * 2
    assert (third.status.is_unset, fifth.status.is_ok) == (True, False)
