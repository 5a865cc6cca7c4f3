"""Anthropic messages: content in blocks, and threads that the server may keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from otel_loopguard.core.exchange import Answer, Ask, ModelRequest, ModelResponse
from otel_loopguard.core.model import MISSING
from otel_loopguard.instrumentation.wire.fields import (
    Pieces,
    count,
    get,
    items,
    result_of,
    string,
    text_of,
)
from otel_loopguard.instrumentation.wire.history import MAX_CALLS, Part, with_history, with_tools

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from otel_loopguard.instrumentation.wire.forms import Form


def read_request(body: Mapping[str, object]) -> ModelRequest:
    """Read the body of a request."""
    request = ModelRequest(
        "anthropic",
        model=string(get(body, "model")),
        previous_id=string(get(get(body, "thread"), "previous_message_id")),
    )
    request = with_tools(request, get(body, "tools"), get(body, "tool_choice"))
    return with_history(request, get(body, "messages"), _part)


def form() -> Form:
    """How a request is changed."""
    from otel_loopguard.instrumentation.wire.forms import Form  # noqa: PLC0415 - seldom needed

    return Form("messages", _part, {"type": "none"}, "content", "system")


def read_response(obj: object) -> ModelResponse:
    """Read a message; cached input counts as input."""
    blocks, usage = items(get(obj, "content")), get(obj, "usage")
    cache_read = count(usage, "cache_read_input_tokens")
    cache_write = count(usage, "cache_creation_input_tokens")
    return ModelResponse(
        id=string(get(obj, "id")),
        model=string(get(obj, "model")),
        text=_text(blocks) or None,
        thought="".join(string(get(block, "thinking")) or "" for block in blocks) or None,
        asks=_asks(blocks),
        finish=string(get(obj, "stop_reason")),
        input_tokens=count(usage, "input_tokens") + cache_read + cache_write,
        output_tokens=count(usage, "output_tokens"),
        cache_read_tokens=cache_read,
        cache_write_tokens=cache_write,
        complete=get(obj, "role") == "assistant",
    )


class StreamReader:
    """Gathers a message from its events."""

    def __init__(self) -> None:
        self._message: object = None
        self._finish: str | None = None
        self._output_tokens = 0
        self._text, self._thought = Pieces(), Pieces()
        self._calls: dict[int, tuple[object, Pieces]] = {}

    def feed(self, event: object) -> None:
        """Take in one event."""
        kind, delta = get(event, "type"), get(event, "delta")
        if kind == "message_start":
            self._message = get(event, "message")
        elif kind == "content_block_start":
            self._start(count(event, "index"), get(event, "content_block"))
        elif kind == "content_block_delta":
            self._text.add(get(delta, "text"))
            self._thought.add(get(delta, "thinking"))
            if count(event, "index") in self._calls:
                self._calls[count(event, "index")][1].add(get(delta, "partial_json"))
        elif kind == "message_delta":
            self._finish = string(get(delta, "stop_reason")) or self._finish
            self._output_tokens = count(event, "usage", "output_tokens")

    def response(self) -> ModelResponse:
        """Return what has come so far."""
        cut = self._text.cut or any(pieces.cut for _, pieces in self._calls.values())
        return read_response(self._message)._replace(
            text=self._text.text(),
            thought=self._thought.text(),
            asks=_asks([_block(*call) for call in self._calls.values()]),
            finish=self._finish,
            output_tokens=self._output_tokens,
            complete=self._finish is not None and not cut,
        )

    def _start(self, index: int, block: object) -> None:
        if get(block, "type") == "tool_use" and len(self._calls) < MAX_CALLS:
            self._calls[index] = (block, Pieces())
        self._text.add(get(block, "text"))
        self._thought.add(get(block, "thinking"))


def _part(message: object) -> Part:
    role, content = get(message, "role"), get(message, "content")
    blocks = items(content)
    if role == "assistant":
        return Part(
            "assistant", content if isinstance(content, str) else _text(blocks), _asks(blocks)
        )
    if role != "user":
        return Part()
    results = [block for block in blocks if get(block, "type") == "tool_result"]
    speaks = isinstance(content, str) or len(results) < len(blocks)
    return Part(
        "user" if speaks else "tool", text_of(content), answers=tuple(map(_answer, results))
    )


def _answer(block: object) -> Answer:
    call_id, is_error = string(get(block, "tool_use_id")), get(block, "is_error") is True
    return Answer(call_id, None, result_of(get(block, "content")), is_error)


def _text(blocks: Sequence[object]) -> str:
    return text_of([block for block in blocks if get(block, "type") == "text"])


def _asks(blocks: Sequence[object]) -> tuple[Ask, ...]:
    return tuple(
        Ask(string(get(block, "id")), name, get(block, "input"))
        for block in blocks
        if get(block, "type") == "tool_use" and (name := string(get(block, "name")))
    )


def _block(start: object, pieces: Pieces) -> object:
    args = MISSING if pieces.cut else pieces.text() or get(start, "input")
    return {"type": "tool_use", "id": get(start, "id"), "name": get(start, "name"), "input": args}
