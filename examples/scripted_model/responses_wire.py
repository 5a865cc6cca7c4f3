"""OpenAI's responses: `POST /v1/responses`, with conversations."""

from __future__ import annotations

import time
from itertools import count, groupby
from typing import TYPE_CHECKING

from .openai_wire import openai_error
from .script import Call, Json, Message, Reply, Tool, Turn, Usage, text_of
from .wire import Event, Memory, WireError, arguments_text, fresh_id, pieces, schema_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_INCOMPLETE = {"length": "max_output_tokens", "refusal": "content_filter"}


class ResponsesWire:
    """The endpoint; it keeps the history of each response that is stored, and of conversations."""

    call_prefix = "call"

    def __init__(self) -> None:
        self._histories: Memory[tuple[Message, ...]] = Memory()

    def create_conversation(self, request: Json) -> Json:
        """Answer `POST /v1/conversations`."""
        conversation = fresh_id("conv")
        self._keep(conversation, tuple(_messages(request.get("items") or ())))
        metadata = request.get("metadata") or {}
        created = int(time.time())
        return {
            "id": conversation,
            "object": "conversation",
            "created_at": created,
            "metadata": metadata,
        }

    def read(self, request: Json) -> Turn:
        """What the request asks.

        Raises:
            WireError: It continues a response or a conversation that was never there.
        """
        offered = tuple(
            Tool(tool["name"], tool.get("parameters") or {})
            for tool in request.get("tools") or ()
            if tool["type"] == "function"
        )
        given = request.get("input") or ()
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        return Turn(
            request["model"],
            offered,
            (*self._history_before(request), *_messages(items)),
            request.get("tool_choice"),
            schema_at(request, "text", "format", "schema"),
            request,
        )

    def plain(self, turn: Turn, reply: Reply) -> Json:
        """The reply as a response."""
        response = _response(turn, reply)
        history = (*turn.history, Message("assistant", reply.text, reply.calls))
        if turn.request.get("store") is not False:
            self._keep(response["id"], history)
        if response["conversation"]:
            self._keep(response["conversation"]["id"], history)
        return response

    def stream(self, turn: Turn, reply: Reply) -> Iterator[Event]:
        """The reply as events."""
        numbers = count()
        for event in _events(self.plain(turn, reply)):
            yield event["type"], {**event, "sequence_number": next(numbers)}

    def error(self, status: int, code: str, message: str) -> Json:
        """The body of a failed request."""
        return openai_error(status, code, message)

    def _keep(self, key: str, history: tuple[Message, ...]) -> None:
        self._histories.keep(key, history, len(history))

    def _history_before(self, request: Json) -> tuple[Message, ...]:
        key = request.get("previous_response_id") or _conversation_id(request)
        history = self._histories.get(key) if key else ()
        if history is not None:
            return history
        if key == request.get("previous_response_id"):
            raise WireError(400, "previous_response_not_found", f"No response {key!r}.")
        raise WireError(404, "conversation_not_found", f"No conversation {key!r}.")


def _conversation_id(request: Json) -> str | None:
    conversation = request.get("conversation")
    return conversation["id"] if isinstance(conversation, dict) else conversation


def _messages(items: Iterable[Json]) -> Iterator[Message]:
    """The history of a list of items; what the model said in a row becomes one entry."""
    for by_model, group in groupby(items, _is_by_model):
        if by_model:
            yield _said(list(group))
            continue
        for item in group:
            if item.get("type") == "function_call_output":
                yield Message("tool", text_of(item["output"]), call_id=item["call_id"])
            else:
                role = "user" if item.get("role", "user") == "user" else "system"
                yield Message(role, text_of(item.get("content")))


def _is_by_model(item: Json) -> bool:
    kind = item.get("type", "message")
    return item.get("role") == "assistant" or kind in {"function_call", "reasoning"}


def _said(items: list[Json]) -> Message:
    calls = tuple(
        Call(item["name"], item["arguments"], item["call_id"])
        for item in items
        if item.get("type") == "function_call"
    )
    return Message("assistant", text_of([item.get("content") for item in items]), calls)


def _response(turn: Turn, reply: Reply) -> Json:
    request = turn.request
    incomplete = _INCOMPLETE.get(reply.reason)
    conversation = _conversation_id(request)
    return {
        "id": fresh_id("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "status": "incomplete" if incomplete else "completed",
        "incomplete_details": {"reason": incomplete} if incomplete else None,
        "error": None,
        "model": turn.model,
        "output": list(_output(reply)),
        "usage": _usage(reply.usage),
        "conversation": {"id": conversation} if conversation else None,
        "previous_response_id": request.get("previous_response_id"),
        "instructions": request.get("instructions"),
        "metadata": request.get("metadata") or {},
        "parallel_tool_calls": request.get("parallel_tool_calls", True),
        "store": request.get("store", True),
        "temperature": request.get("temperature", 1.0),
        "text": request.get("text") or {"format": {"type": "text"}},
        "tool_choice": request.get("tool_choice") or "auto",
        "tools": request.get("tools") or [],
        "top_p": request.get("top_p", 1.0),
        "truncation": "disabled",
    }


def _output(reply: Reply) -> Iterator[Json]:
    if reply.thinking:
        summary = [{"type": "summary_text", "text": reply.thinking}]
        yield {"id": fresh_id("rs"), "type": "reasoning", "summary": summary}
    if reply.text:
        yield {
            "id": fresh_id("msg"),
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [_text_part(reply.text)],
        }
    for call in reply.calls:
        yield {
            "id": fresh_id("fc"),
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": arguments_text(call),
            "status": "completed",
        }


def _text_part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _usage(usage: Usage) -> Json:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }


def _events(response: Json) -> Iterator[Json]:
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(response["output"]):
        bare, events_of = _ITEM_KINDS[item["type"]]
        at: Json = {"output_index": index}
        yield {"type": "response.output_item.added", **at, "item": {**item, **bare}}
        for event in events_of(item):
            yield {**at, "item_id": item["id"], **event}
        yield {"type": "response.output_item.done", **at, "item": item}
    yield {"type": f"response.{response['status']}", "response": response}


def _call_events(item: Json) -> Iterator[Json]:
    prefix = "response.function_call_arguments"
    for piece in pieces(item["arguments"]):
        yield {"type": f"{prefix}.delta", "delta": piece}
    yield {"type": f"{prefix}.done", "arguments": item["arguments"], "name": item["name"]}


def _message_events(item: Json) -> Iterator[Json]:
    part = item["content"][0]
    at: Json = {"content_index": 0}
    yield {"type": "response.content_part.added", **at, "part": _text_part("")}
    for piece in pieces(part["text"]):
        yield {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **at, "part": part}


def _reasoning_events(item: Json) -> Iterator[Json]:
    part = item["summary"][0]
    at: Json = {"summary_index": 0}
    prefix = "response.reasoning_summary"
    yield {"type": f"{prefix}_part.added", **at, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield {"type": f"{prefix}_text.delta", **at, "delta": piece}
    yield {"type": f"{prefix}_text.done", **at, "text": part["text"]}
    yield {"type": f"{prefix}_part.done", **at, "part": part}


_ITEM_KINDS: dict[str, tuple[Json, Callable[[Json], Iterator[Json]]]] = {
    "function_call": ({"arguments": "", "status": "in_progress"}, _call_events),
    "message": ({"content": [], "status": "in_progress"}, _message_events),
    "reasoning": ({"summary": []}, _reasoning_events),
}
"""For each kind of item: what differs when it is announced, and the events that fill it."""
