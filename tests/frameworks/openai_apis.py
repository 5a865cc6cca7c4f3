"""The endpoints of the openai SDK, as a hand-written agent uses them."""

from __future__ import annotations

from typing import Any, ClassVar

import openai

from tests.frameworks.support import KEY, PARAMETERS, Said

FUNCTION = {"name": "search", "parameters": PARAMETERS, "strict": True}


class Chat:
    """Chat completions."""

    final = "get_final_completion"
    tools: ClassVar[list[Any]] = [{"type": "function", "function": FUNCTION}]
    forced: ClassVar[Any] = {"type": "function", "function": {"name": "search"}}

    def endpoint(self, client: Any) -> Any:
        completions = client.chat.completions
        return completions if hasattr(completions, "parse") else _Before192(client)

    def request(self, model: str, history: list[Any]) -> dict[str, Any]:
        return {"model": model, "messages": history, "tools": self.tools}

    def said(self, response: Any) -> Said:
        message = response.choices[0].message
        calls = message.tool_calls or ()
        return Said(
            message.content or "",
            tuple((call.id, call.function.name, call.function.arguments) for call in calls),
        )

    def gathered(self, events: list[Any]) -> Said:
        text, calls = "", {}
        for delta in (event.choices[0].delta for event in events if event.choices):
            text += delta.content or ""
            for call in delta.tool_calls or ():
                before = calls.get(call.index, (call.id, call.function.name, ""))
                calls[call.index] = (*before[:2], before[2] + (call.function.arguments or ""))
        return Said(text, tuple(calls.values()))

    def written(self, said: Said, results: list[str]) -> list[Any]:
        message: dict[str, Any] = {"role": "assistant", "content": said.text or None}
        if said.calls:
            message["tool_calls"] = [
                {"id": i, "type": "function", "function": {"name": name, "arguments": args}}
                for i, name, args in said.calls
            ]
        return [
            message,
            *(
                {"role": "tool", "tool_call_id": call[0], "content": result}
                for call, result in zip(said.calls, results, strict=True)
            ),
        ]


class _Before192:
    """Where `parse` and `stream` were beta."""

    def __init__(self, client: Any) -> None:
        self.parse = client.beta.chat.completions.parse
        self.stream = client.beta.chat.completions.stream
        self.create = client.chat.completions.create
        self.with_raw_response = client.chat.completions.with_raw_response
        self.with_streaming_response = client.chat.completions.with_streaming_response


class Responses:
    """Responses, with the whole history in each request."""

    final = "get_final_response"
    tools: ClassVar[list[Any]] = [{"type": "function", **FUNCTION}]
    forced: ClassVar[Any] = {"type": "function", "name": "search"}

    def endpoint(self, client: Any) -> Any:
        return client.responses

    def request(self, model: str, history: list[Any]) -> dict[str, Any]:
        return {"model": model, "input": history, "tools": self.tools}

    def said(self, response: Any) -> Said:
        calls = [item for item in response.output if item.type == "function_call"]
        return Said(
            response.output_text, tuple((call.call_id, call.name, call.arguments) for call in calls)
        )

    def gathered(self, events: list[Any]) -> Said:
        return self.said(events[-1].response)

    def written(self, said: Said, results: list[str]) -> list[Any]:
        if not said.calls:
            return [{"role": "assistant", "content": said.text}]
        return [*self.asked(said), *self.answered(said, results)]

    def asked(self, said: Said) -> list[Any]:
        return [
            {"type": "function_call", "call_id": call_id, "name": name, "arguments": args}
            for call_id, name, args in said.calls
        ]

    def answered(self, said: Said, results: list[str]) -> list[Any]:
        return [
            {"type": "function_call_output", "call_id": call[0], "output": result}
            for call, result in zip(said.calls, results, strict=True)
        ]


def connect(base_url: str, *, is_async: bool, **options: Any) -> Any:
    kind = openai.AsyncOpenAI if is_async else openai.OpenAI
    return kind(base_url=base_url, api_key=KEY, **options)
