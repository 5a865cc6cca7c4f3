"""Loops written by hand over openai, with all the ways to keep a history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.frameworks.handwritten import NEXT, HandWritten
from tests.frameworks.openai_apis import Chat, Responses, connect
from tests.frameworks.support import USER, Telemetry, ask, maybe, of

if TYPE_CHECKING:
    from tests.frameworks.support import Said


class TestChat(HandWritten):
    api, connect = Chat(), staticmethod(connect)


class TestResponses(HandWritten):
    api, connect = Responses(), staticmethod(connect)

    async def go(self, client: Any, model: str, sent: list[Any], **where: Any) -> None:
        """A loop that sends only what is new; the server keeps the rest."""
        endpoint, said = self.api.endpoint(client), None
        while said is None or said.calls:
            request = {**self.api.request(model, sent), **where}
            response = await maybe(endpoint.create(**request))
            said = self.api.said(response)
            sent = self.api.answered(said, ["nothing"] * len(said.calls))
            if "conversation" not in where:
                where["previous_response_id"] = response.id

    async def test_a_history_that_the_server_keeps(self, telemetry: Telemetry, client: Any) -> None:
        await self.go(client, "loop-5", [USER])
        telemetry.assert_run(chats=6, tools=5)
        assert telemetry.patterns == [("hard_loop", "warning"), ("hard_loop", "critical")]

    async def test_a_conversation_of_the_server(self, telemetry: Telemetry, client: Any) -> None:
        if not hasattr(client, "conversations"):
            pytest.skip("this version has no conversations")
        conversation = await maybe(client.conversations.create())
        await self.go(client, "parallel-2x3", [USER], conversation=conversation.id)
        telemetry.assert_run(chats=4, tools=6)
        await self.go(client, "parallel-2x3", [NEXT], conversation=conversation.id)
        one, two = telemetry.agents
        assert of(one, "loopguard.run_id") == of(two, "loopguard.run_id")

    async def test_two_branches_of_one_response(self, telemetry: Telemetry, client: Any) -> None:
        request = self.api.request("loop", [USER])
        first = await maybe(client.responses.create(**request))
        said: Said = self.api.said(first)
        for result in ("one", "two"):
            request["input"] = self.api.answered(said, [result])
            await ask(self.api, client, "stream", {**request, "previous_response_id": first.id})
        telemetry.uninstrument()
        assert (len(telemetry.agents), len(telemetry.chats), len(telemetry.tools)) == (2, 3, 2)
