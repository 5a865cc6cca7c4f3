"""OpenInference's messages, which are flattened into one attribute a field."""

from __future__ import annotations

from typing import TYPE_CHECKING

from otel_loopguard.dialects.values import sequence

if TYPE_CHECKING:
    from collections.abc import Mapping


def messages(attributes: Mapping[str, object], side: str) -> list[dict[str, object]]:
    """Messages from `llm.{side}_messages.{i}.message.{field}`, in their order.

    They come back as OpenAI writes them: role, content, tool_call_id, tool_calls.
    """
    prefix = f"llm.{side}_messages."
    found: dict[int, dict[str, object]] = {}
    calls: dict[tuple[int, str], dict[str, object]] = {}
    for key, value in attributes.items():
        if not key.startswith(prefix):
            continue
        index, _, path = key.removeprefix(prefix).partition(".message.")
        if not index.isdecimal():
            continue
        message = found.setdefault(int(index), {})
        field, _, inside = path.partition(".")
        position, _, leaf = inside.partition(".")
        if not inside:
            message[field] = value
        elif field == "tool_calls":
            calls.setdefault((int(index), position), {})[leaf.rpartition(".")[2]] = value
        elif leaf == "message_content.text":
            message["content"] = [*sequence(message.get("content")), {"text": value}]
    for (index, _), call in calls.items():
        listed = sequence(found[index].get("tool_calls"))
        found[index]["tool_calls"] = [*listed, {"type": "tool_call", **call}]
    return [found[index] for index in sorted(found)]
