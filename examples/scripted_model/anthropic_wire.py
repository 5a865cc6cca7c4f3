"""Anthropic's messages: `POST /v1/messages`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .script import Call, Json, Message, Reply, Tool, Turn, text_of
from .wire import Event, Memory, WireError, arguments_text, fresh_id, pieces, schema_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_STOP = {"stop": "end_turn", "calls": "tool_use", "length": "max_tokens", "refusal": "refusal"}
_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_BARE: dict[str, Json] = {
    "thinking": {"thinking": "", "signature": ""},
    "text": {"text": ""},
    "tool_use": {"input": {}},
}


class MessagesWire:
    """The endpoint; it keeps the state of conversations that ask for a `thread`."""

    call_prefix = "toolu"

    def __init__(self) -> None:
        self._threads: Memory[tuple[tuple[Tool, ...], tuple[Message, ...]]] = Memory()

    def read(self, request: Json) -> Turn:
        """What the request asks.

        Raises:
            WireError: It continues a thread that was never there.
        """
        offered = tuple(
            Tool(tool["name"], tool.get("input_schema") or {})
            for tool in request.get("tools") or ()
            if "name" in tool
        )
        history = tuple(m for entry in request["messages"] for m in _messages(entry))
        thread = request.get("thread") or {}
        if thread.get("type") == "continue":
            kept = self._threads.get(thread["previous_message_id"])
            if kept is None:
                raise WireError(404, "thread_not_found", "No such thread.")
            offered, history = kept[0], kept[1] + history
        return Turn(
            request["model"],
            offered,
            history,
            request.get("tool_choice"),
            schema_at(request, "output_config", "format", "schema")
            or schema_at(request, "output_format", "schema"),
            request,
        )

    def plain(self, turn: Turn, reply: Reply) -> Json:
        """The reply as a message."""
        message = {
            "id": fresh_id("msg"),
            "type": "message",
            "role": "assistant",
            "model": turn.model,
            "content": _blocks(reply),
            "stop_reason": _STOP[reply.reason],
            "stop_sequence": None,
            "usage": {
                "input_tokens": reply.usage.input - reply.usage.cached,
                "cache_read_input_tokens": reply.usage.cached,
                "cache_creation_input_tokens": 0,
                "output_tokens": reply.usage.output,
                "service_tier": "standard",
            },
        }
        if turn.request.get("thread"):
            said = Message("assistant", reply.text, reply.calls)
            history = (*turn.history, said)
            self._threads.keep(message["id"], (turn.offered, history), len(history))
        return message

    def stream(self, turn: Turn, reply: Reply) -> Iterator[Event]:
        """The reply as events."""
        return ((event["type"], event) for event in self._events(turn, reply))

    def error(self, status: int, code: str, message: str) -> Json:
        """The body of a failed request."""
        error: Json = {"type": _ERROR_TYPES.get(status, "api_error"), "message": message}
        if code.startswith("thread_"):
            error["details"] = {"error_code": code}
        return {"type": "error", "error": error, "request_id": fresh_id("req")}

    def _events(self, turn: Turn, reply: Reply) -> Iterator[Json]:
        message = self.plain(turn, reply)
        start_usage = {**message["usage"], "output_tokens": 1}
        start = {**message, "content": [], "stop_reason": None, "usage": start_usage}
        yield {"type": "message_start", "message": start}
        for index, block in enumerate(message["content"]):
            opened = {**block, **_BARE[block["type"]]}
            yield {"type": "content_block_start", "index": index, "content_block": opened}
            for delta in _deltas(block):
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        yield {
            "type": "message_delta",
            "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None},
            "usage": {"output_tokens": reply.usage.output},
        }
        yield {"type": "message_stop"}


def _messages(entry: Json) -> Iterator[Message]:
    """One message of a request: a user message becomes an entry for each tool result in it."""
    blocks = entry["content"]
    if isinstance(blocks, str):
        blocks = [{"type": "text", "text": blocks}]
    text = text_of([block for block in blocks if block["type"] == "text"])
    if entry["role"] != "user":
        calls = tuple(
            Call(block["name"], block["input"], block["id"])
            for block in blocks
            if block["type"] == "tool_use"
        )
        yield Message(entry["role"], text, calls)
        return
    results = [block for block in blocks if block["type"] == "tool_result"]
    for result in results:
        yield Message("tool", text_of(result.get("content")), call_id=result["tool_use_id"])
    if text or not results:
        yield Message("tool" if results else "user", text)


def _blocks(reply: Reply) -> list[Json]:
    blocks: list[Json] = []
    if reply.thinking:
        blocks.append({"type": "thinking", "thinking": reply.thinking, "signature": "c2lnbmVk"})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    blocks.extend(
        {"type": "tool_use", "id": call.id, "name": call.name, "input": _input(call)}
        for call in reply.calls
    )
    return blocks


def _input(call: Call) -> Mapping[str, Any]:
    """The call's arguments, which this format can only carry as an object."""
    try:
        value = json.loads(arguments_text(call))
    except ValueError:
        return {"INVALID_JSON": call.arguments}
    return value if isinstance(value, dict) else {"INVALID_JSON": call.arguments}


def _deltas(block: Json) -> Iterator[Json]:
    match block["type"]:
        case "thinking":
            for piece in pieces(block["thinking"]):
                yield {"type": "thinking_delta", "thinking": piece}
            yield {"type": "signature_delta", "signature": block["signature"]}
        case "text":
            for piece in pieces(block["text"]):
                yield {"type": "text_delta", "text": piece}
        case _:
            for piece in pieces(json.dumps(block["input"])):
                yield {"type": "input_json_delta", "partial_json": piece}
