"""Readers of LangChain's messages, by shape: nothing of LangChain is imported for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from otel_loopguard.core.inside import declared_fields

_HUMAN = frozenset({"human", "user"})


def is_message(value: object) -> bool:
    """Whether a value is a message object; it may be anything, and none of its code is run."""
    return _is_a(value, "BaseMessage")


def is_command(value: object) -> bool:
    """Whether a value is a command to a graph; it may be anything, and none of its code is run."""
    return _is_a(value, "Command")


def _is_a(value: object, name: str) -> bool:
    return any(kind.__name__ == name for kind in type(value).__mro__)


def content_of(message: Any) -> Any:
    """What a message says, in any of the forms that LangChain takes: object, dict, pair, text."""
    if is_message(message):
        return message.content
    if isinstance(message, Mapping):
        return cast("Mapping[str, Any]", message).get("content")
    if isinstance(message, tuple):
        return cast("tuple[Any, ...]", message)[-1]
    return message


def _role_of(message: Any) -> object:
    if is_message(message):
        return message.type
    if isinstance(message, Mapping):
        known = cast("Mapping[str, Any]", message)
        return known.get("role") or known.get("type")
    if isinstance(message, tuple):
        return cast("tuple[Any, ...]", message)[:1][0]
    return "user"


def messages_in(state: Any) -> Sequence[Any] | None:
    """The messages of a graph's state; None if it has none."""
    if isinstance(state, Mapping):
        found = cast("Mapping[str, Any]", state).get("messages")
    elif isinstance(state, list):
        found = cast("list[Any]", state)
    else:
        found = (declared_fields(state) or {}).get("messages")
    if is_message(found) or isinstance(found, str):
        return [found]
    return cast("list[Any]", found) if isinstance(found, list) and found else None


def task_in(state: Any) -> object:
    """What a graph is asked to do: the last human message, or all of its input."""
    messages = messages_in(state)
    for message in reversed(messages or ()):
        if _role_of(message) in _HUMAN:
            return content_of(message)
    return state if messages is None else [content_of(message) for message in messages]


def answer_in(state: Any) -> object:
    """What a graph gives back: the last message, or all of its output."""
    messages = messages_in(state)
    if messages is None and isinstance(state, Mapping):
        updates = list(cast("Mapping[str, Any]", state).values())
        messages = messages_in(updates[0]) if len(updates) == 1 else None  # of one node
    return cast("object", state) if messages is None else content_of(messages[-1])


def text_in(content: object) -> str:
    """The text of a message's content: of a text itself, or of the blocks that are text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    blocks = [
        cast("Mapping[str, Any]", block).get("text", "") if isinstance(block, Mapping) else block
        for block in cast("list[object]", content)
    ]
    return "".join(block for block in blocks if isinstance(block, str))


def thought_in(message: Any) -> str:
    """The reasoning that a message holds: in blocks of its content, or beside it."""
    beside = message.additional_kwargs.get("reasoning_content")
    if isinstance(beside, str):
        return beside
    content: object = message.content
    blocks = cast("list[object]", content) if isinstance(content, list) else []
    known = [cast("Mapping[str, Any]", each) for each in blocks if isinstance(each, Mapping)]
    held = [each.get("thinking") or each.get("reasoning") for each in known]
    return "".join(each for each in held if isinstance(each, str))
