"""Content for spans, only where the official setting asks for it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from otel_loopguard.core.canonical import canonical

if TYPE_CHECKING:
    from collections.abc import Mapping

    from otel_loopguard.core.exchange import ModelResponse

MAX_CHARS: Final = 32_768


def as_text(value: object) -> str | None:
    """A value as the conventions want it on a span: text as it is, anything else as JSON.

    Cut at 32,768 characters; None if there is nothing that could be written.
    """
    text = value if isinstance(value, str) else canonical(value, named=True)
    return None if text is None else text[:MAX_CHARS]


def output_messages(response: ModelResponse) -> str:
    """What a model said, as the conventions write it: one message of parts, in JSON."""
    said = {"reasoning": response.thought, "text": response.text}
    parts: list[Mapping[str, object]] = [
        {"type": kind, "content": text[:MAX_CHARS]}
        for kind, text in said.items()
        if text is not None
    ]
    parts += [
        {"type": "tool_call", "id": ask.call_id, "name": ask.name, "arguments": as_text(ask.args)}
        for ask in response.asks
    ]
    message = {"role": "assistant", "parts": parts, "finish_reason": response.finish}
    return json.dumps([message], ensure_ascii=False)
