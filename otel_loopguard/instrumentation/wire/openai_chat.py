"""OpenAI chat completions, as many other servers speak them too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from otel_loopguard.core.exchange import Answer, Ask, ModelRequest, ModelResponse
from otel_loopguard.core.model import MISSING
from otel_loopguard.instrumentation.wire.fields import (
    Pieces,
    count,
    get,
    items,
    name_of,
    result_of,
    string,
    text_of,
)
from otel_loopguard.instrumentation.wire.history import MAX_CALLS, Part, with_history, with_tools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from otel_loopguard.instrumentation.wire.forms import Form


def read_request(body: Mapping[str, object]) -> ModelRequest:
    """Read the body of a request, with `tools` or the older `functions`."""
    request = ModelRequest("openai", model=string(get(body, "model")))
    request = with_tools(request, get(body, "functions"), get(body, "function_call"))
    request = with_tools(request, get(body, "tools"), get(body, "tool_choice"))
    return with_history(request, get(body, "messages"), _part)


def form() -> Form:
    """How a request is changed."""
    from otel_loopguard.instrumentation.wire.forms import Form  # noqa: PLC0415 - seldom needed

    return Form("messages", _part, "none", "content")


def read_response(obj: object) -> ModelResponse:
    """Read a completion: the text of its first choice, the calls of all of them."""
    choices, usage = items(get(obj, "choices")), get(obj, "usage")
    first = choices[0] if choices else None
    message = get(first, "message")
    return ModelResponse(
        id=string(get(obj, "id")),
        model=string(get(obj, "model")),
        text=_text(message) or None,
        thought=string(_thought(message)),
        asks=tuple(ask for choice in choices for ask in _asks(get(choice, "message"))),
        finish=string(get(first, "finish_reason")),
        input_tokens=count(usage, "prompt_tokens"),
        output_tokens=count(usage, "completion_tokens"),
        cache_read_tokens=count(usage, "prompt_tokens_details", "cached_tokens"),
        complete=first is not None,
    )


class StreamReader:
    """Gathers a completion from its chunks."""

    def __init__(self) -> None:
        self._first: object = None
        self._usage: object = None
        self._finish: str | None = None
        self._text, self._thought = Pieces(), Pieces()
        self._calls: dict[tuple[int, int], _Call] = {}

    def feed(self, event: object) -> None:
        """Take in one chunk."""
        self._first = event if self._first is None else self._first
        self._usage = get(event, "usage") or self._usage
        for choice in items(get(event, "choices")):
            nth, delta = count(choice, "index"), get(choice, "delta")
            calls = [
                ((nth, count(call, "index")), call) for call in items(get(delta, "tool_calls"))
            ]
            if legacy := get(delta, "function_call"):
                calls.append(((nth, -1), {"function": legacy}))
            for key, call in calls:
                if key in self._calls or len(self._calls) < MAX_CALLS:
                    self._calls.setdefault(key, _Call()).feed(call)
            if nth == 0:
                self._text.add(get(delta, "content") or get(delta, "refusal"))
                self._thought.add(_thought(delta))
                self._finish = string(get(choice, "finish_reason")) or self._finish

    def response(self) -> ModelResponse:
        """Return what has come so far."""
        calls = [call for _, call in sorted(self._calls.items(), key=lambda entry: entry[0])]
        message = {
            "content": self._text.text(),
            "reasoning_content": self._thought.text(),
            "tool_calls": [call.whole() for call in calls],
        }
        cut = self._text.cut or any(call.args.cut for call in calls)
        so_far = read_response({"choices": [{"message": message}], "usage": self._usage})
        return so_far._replace(
            id=string(get(self._first, "id")),
            model=string(get(self._first, "model")),
            finish=self._finish,
            complete=self._finish is not None and not cut,
        )


class _Call:
    """One tool call in the making."""

    def __init__(self) -> None:
        self.call_id: str | None = None
        self.name: str | None = None
        self.args = Pieces()

    def feed(self, delta: object) -> None:
        self.call_id = self.call_id or string(get(delta, "id"))
        self.name = self.name or name_of(delta)
        self.args.add(_arguments(delta))

    def whole(self) -> object:
        arguments = MISSING if self.args.cut else self.args.text()
        return {"id": self.call_id, "function": {"name": self.name, "arguments": arguments}}


def _part(message: object) -> Part:
    role, content = string(get(message, "role")), get(message, "content")
    if role == "assistant":
        return Part("assistant", _text(message), _asks(message))
    if role in {"tool", "function"}:
        call_id, name = string(get(message, "tool_call_id")), string(get(message, "name"))
        return Part("tool", answers=(Answer(call_id, name, result_of(content)),))
    return Part("user", text_of(content)) if role == "user" else Part()


def _asks(message: object) -> tuple[Ask, ...]:
    calls = list(items(get(message, "tool_calls")))
    if legacy := get(message, "function_call"):
        calls.append({"function": legacy})
    return tuple(
        Ask(string(get(call, "id")), name, _arguments(call) or "{}")  # some servers send none
        for call in calls
        if (name := name_of(call))
    )


def _arguments(call: object) -> object:
    if custom := get(call, "custom"):
        return get(custom, "input")
    return get(get(call, "function"), "arguments")


def _text(message: object) -> str:
    return text_of(get(message, "content")) or string(get(message, "refusal")) or ""


def _thought(message: object) -> object:
    return get(message, "reasoning_content") or get(message, "reasoning")
