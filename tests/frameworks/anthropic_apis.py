"""The endpoints of the anthropic SDK, as a hand-written agent uses them."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import anthropic

from tests.frameworks.support import KEY, PARAMETERS, Said


class Messages:
    """Messages."""

    final = "get_final_message"
    tools: ClassVar[list[Any]] = [{"name": "search", "input_schema": PARAMETERS}]
    forced: ClassVar[Any] = {"type": "tool", "name": "search"}

    def endpoint(self, client: Any) -> Any:
        return client.messages

    def request(self, model: str, history: list[Any]) -> dict[str, Any]:
        return {"model": model, "messages": history, "tools": self.tools, "max_tokens": 100}

    def said(self, response: Any) -> Said:
        uses = [block for block in response.content if block.type == "tool_use"]
        return Said(
            "".join(block.text for block in response.content if block.type == "text"),
            tuple((use.id, use.name, json.dumps(use.input)) for use in uses),
        )

    def gathered(self, events: list[Any]) -> Said:
        text, calls = "", {}
        for event in events:
            if event.type == "content_block_start" and event.content_block.type == "tool_use":
                calls[event.index] = (event.content_block.id, event.content_block.name, "")
            elif event.type == "content_block_delta":
                text += getattr(event.delta, "text", "")
                if event.index in calls:
                    use_id, name, args = calls[event.index]
                    calls[event.index] = (use_id, name, args + event.delta.partial_json)
        return Said(text, tuple(calls.values()))

    def written(self, said: Said, results: list[str]) -> list[Any]:
        uses = [
            {"type": "tool_use", "id": use_id, "name": name, "input": json.loads(args)}
            for use_id, name, args in said.calls
        ]
        texts = [{"type": "text", "text": said.text}] if said.text else []
        message = {"role": "assistant", "content": [*texts, *uses]}
        answers = [
            {"type": "tool_result", "tool_use_id": call[0], "content": result}
            for call, result in zip(said.calls, results, strict=True)
        ]
        return [message, *([{"role": "user", "content": answers}] if answers else [])]


class BetaMessages(Messages):
    """Messages of the beta endpoint."""

    def endpoint(self, client: Any) -> Any:
        return client.beta.messages


def connect(base_url: str, *, is_async: bool, **options: Any) -> Any:
    kind = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
    return kind(base_url=base_url, api_key=KEY, **options)
