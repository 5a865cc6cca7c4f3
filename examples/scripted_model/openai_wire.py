"""OpenAI's chat completions: `POST /v1/chat/completions`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from .script import Call, Json, Message, Reply, Role, Tool, Turn, Usage, text_of
from .wire import Event, arguments_text, fresh_id, pieces, schema_at

if TYPE_CHECKING:
    from collections.abc import Iterator

_FINISH = {
    "stop": "stop",
    "calls": "tool_calls",
    "length": "length",
    "refusal": "content_filter",
}
_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}


class ChatWire:
    """The endpoint; it keeps no state, as each request carries its whole history."""

    call_prefix = "call"

    def read(self, request: Json) -> Turn:
        """What the request asks."""
        offered = tuple(
            Tool(tool["function"]["name"], tool["function"].get("parameters") or {})
            for tool in request.get("tools") or ()
            if "function" in tool
        )
        return Turn(
            request["model"],
            offered,
            tuple(map(_message, request["messages"])),
            request.get("tool_choice"),
            schema_at(request, "response_format", "json_schema", "schema"),
            request,
        )

    def plain(self, turn: Turn, reply: Reply) -> Json:
        """The reply as a chat completion."""
        message: Json = {"role": "assistant", "content": reply.text or None, "refusal": None}
        if reply.thinking:
            message["reasoning_content"] = reply.thinking
        if reply.calls:
            message["tool_calls"] = [_call(call, arguments_text(call)) for call in reply.calls]
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": _FINISH[reply.reason],
            "logprobs": None,
        }
        head = _head(turn, "chat.completion")
        return {**head, "choices": [choice], "usage": _usage(reply.usage)}

    def stream(self, turn: Turn, reply: Reply) -> Iterator[Event]:
        """The reply as chunks; the usage only where the request wants it."""
        head = _head(turn, "chat.completion.chunk")
        options = turn.request.get("stream_options") or {}
        with_usage = bool(options.get("include_usage"))
        for delta, finish in _deltas(reply):
            choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
            yield "", {**head, "choices": [choice], **({"usage": None} if with_usage else {})}
        if with_usage:
            yield "", {**head, "choices": [], "usage": _usage(reply.usage)}
        yield "", "[DONE]"

    def error(self, status: int, code: str, message: str) -> Json:
        """The body of a failed request."""
        return openai_error(status, code, message)


def openai_error(status: int, code: str, message: str) -> Json:
    """An error body as all OpenAI endpoints send it."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _message(entry: Json) -> Message:
    calls = tuple(
        Call(call["function"]["name"], call["function"]["arguments"], call["id"])
        for call in entry.get("tool_calls") or ()
    )
    text = text_of(entry.get("content"))
    return Message(_ROLES[entry["role"]], text, calls, entry.get("tool_call_id", ""))


def _call(call: Call, arguments: str) -> Json:
    function = {"name": call.name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}


def _deltas(reply: Reply) -> Iterator[tuple[Json, str | None]]:
    yield {"role": "assistant", "content": None if reply.calls else "", "refusal": None}, None
    for piece in pieces(reply.thinking):
        yield {"reasoning_content": piece}, None
    for piece in pieces(reply.text):
        yield {"content": piece}, None
    for index, call in enumerate(reply.calls):
        yield {"tool_calls": [{"index": index, **_call(call, "")}]}, None
        for piece in pieces(arguments_text(call)):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}, None
    yield {}, _FINISH[reply.reason]


def _head(turn: Turn, kind: str) -> Json:
    return {
        "id": fresh_id("chatcmpl"),
        "object": kind,
        "created": int(time.time()),
        "model": turn.model,
        "service_tier": "default",
        "system_fingerprint": "fp_scripted",
    }


def _usage(usage: Usage) -> Json:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
