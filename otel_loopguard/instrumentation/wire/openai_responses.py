"""OpenAI responses: a history of items, kept by the client or by the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from otel_loopguard.core.exchange import Answer, Ask, ModelRequest, ModelResponse
from otel_loopguard.instrumentation.wire.fields import count, get, items, result_of, string, text_of
from otel_loopguard.instrumentation.wire.history import MAX_CALLS, Part, with_history, with_tools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from otel_loopguard.instrumentation.wire.forms import Form

_CALLS: Final[Mapping[str, str]] = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
}
"""Items that ask the client for something, and the field that says what."""

_ENDS: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})


def read_request(body: Mapping[str, object]) -> ModelRequest:
    """Read the body of a request."""
    sent, conversation = get(body, "input"), get(body, "conversation")
    request = ModelRequest(
        "openai",
        model=string(get(body, "model")),
        previous_id=string(get(body, "previous_response_id")),
        conversation_id=string(conversation) or string(get(conversation, "id")),
    )
    request = with_tools(request, get(body, "tools"), get(body, "tool_choice"))
    messages = [{"role": "user", "content": sent}] if isinstance(sent, str) else sent
    return with_history(request, messages, _part, joined=True)


def form() -> Form:
    """How a request is changed."""
    from otel_loopguard.instrumentation.wire.forms import Form  # noqa: PLC0415 - seldom needed

    return Form("input", _part, "none", "output", "instructions")


def read_response(obj: object) -> ModelResponse:
    """Read a response; one that failed, or is still in progress, is not complete."""
    output, usage = items(get(obj, "output")), get(obj, "usage")
    parts = [_part(item) for item in output]
    status = string(get(obj, "status"))
    details = get(obj, "incomplete_details")
    return ModelResponse(
        id=string(get(obj, "id")),
        model=string(get(obj, "model")),
        text="".join(part.text for part in parts) or None,
        thought="".join(_thought(item) for item in output) or None,
        asks=tuple(ask for part in parts for ask in part.asks),
        finish=string(get(details, "reason")) or status,
        input_tokens=count(usage, "input_tokens"),
        output_tokens=count(usage, "output_tokens"),
        cache_read_tokens=count(usage, "input_tokens_details", "cached_tokens"),
        cache_write_tokens=count(usage, "input_tokens_details", "cache_write_tokens"),
        complete=status in {"completed", "incomplete", None} and bool(output),
    )


class StreamReader:
    """Gathers a response from its events: the last one has it whole."""

    def __init__(self) -> None:
        self._response: object = None
        self._done: list[object] = []
        self._ended = False

    def feed(self, event: object) -> None:
        """Take in one event."""
        kind = string(get(event, "type"))
        if response := get(event, "response"):
            self._response = response
            self._ended = kind in _ENDS
        elif kind == "response.output_item.done" and len(self._done) < MAX_CALLS:
            self._done.append(get(event, "item"))

    def response(self) -> ModelResponse:
        """Return what has come so far: before the end, the items that are done."""
        if self._ended:
            return read_response(self._response)
        so_far = read_response({"output": self._done})
        return so_far._replace(
            id=string(get(self._response, "id")),
            model=string(get(self._response, "model")),
            complete=False,
        )


def _part(item: object) -> Part:
    kind, role = string(get(item, "type")) or "message", string(get(item, "role"))
    if kind == "message" and role in {"user", "assistant"}:
        content = get(item, "content")
        text = text_of(content) or "".join(
            string(get(part, "refusal")) or "" for part in items(content)
        )
        return Part("user" if role == "user" else "assistant", text)
    call_id = string(get(item, "call_id"))
    if kind in _CALLS:
        name = string(get(item, "name")) or kind.removesuffix("_call")
        return Part("assistant", asks=(Ask(call_id, name, get(item, _CALLS[kind])),))
    if kind.removesuffix("_output") in _CALLS:
        call_id = call_id or string(get(item, "id"))
        return Part("tool", answers=(Answer(call_id, None, result_of(get(item, "output"))),))
    return Part("assistant") if kind == "reasoning" else Part()


def _thought(item: object) -> str:
    if get(item, "type") != "reasoning":
        return ""
    return text_of(get(item, "summary")) or text_of(get(item, "content"))
