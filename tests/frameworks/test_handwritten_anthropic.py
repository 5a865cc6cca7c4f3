"""Loops written by hand over anthropic, with all the ways to keep a history."""

from __future__ import annotations

from typing import Any

from tests.frameworks.anthropic_apis import BetaMessages, Messages, connect
from tests.frameworks.handwritten import HandWritten
from tests.frameworks.support import USER, Telemetry, maybe, of


class TestMessages(HandWritten):
    api, connect = Messages(), staticmethod(connect)

    async def test_a_thread_that_the_server_keeps(self, telemetry: Telemetry, client: Any) -> None:
        request = self.api.request("parallel-2x5", [USER])
        thread: dict[str, Any] = {"type": "new"}
        while True:
            response = await maybe(client.messages.create(**request, extra_body={"thread": thread}))
            said = self.api.said(response)
            if not said.calls:
                break
            _, results = self.api.written(said, ["nothing"] * 2)
            request = {"model": "parallel-2x5", "max_tokens": 100, "messages": [results]}
            thread = {"type": "continue", "previous_message_id": response.id}
        telemetry.assert_run(chats=6, tools=10)
        assert {severity for _, severity in telemetry.patterns} == {"warning", "critical"}

    async def test_results_that_are_marked_as_errors(
        self, telemetry: Telemetry, client: Any
    ) -> None:
        loop = self.loop(client, "loop-3")
        for _ in range(3):
            said = await loop.ask()
            written = self.api.written(said, ["it broke"])
            written[-1]["content"][0]["is_error"] = True
            loop.history += written
        await loop.go()
        telemetry.assert_run(chats=4, tools=3)
        assert {of(span, "loopguard.outcome") for span in telemetry.tools} == {"error"}
        assert {of(span, "error.type") for span in telemetry.tools} == {"tool_error"}
        assert not any(span.status.is_ok for span in telemetry.tools)
        assert [pattern for pattern, _ in telemetry.patterns] == ["retry_storm"]


class TestBetaMessages(HandWritten):
    api, connect = BetaMessages(), staticmethod(connect)
