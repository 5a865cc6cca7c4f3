"""Words that a privacy test can look for in what leaves the process."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .script import Call, Reply, Turn


def planted(reply: Reply, turn: Turn, word: str) -> Reply:
    """The reply with a word in all that only the model knows.

    That is `WORD-text`, `WORD-thinking`, `WORD-args` in each string argument, and `_WORD` in the
    name of a tool that was not offered. So the word finds each of them, and tells them apart.
    """
    offered = {tool.name for tool in turn.offered}
    return replace(
        reply,
        text=reply.text and f"{reply.text} {word}-text",
        thinking=reply.thinking and f"{reply.thinking} {word}-thinking",
        calls=tuple(_call(call, word, is_known=call.name in offered) for call in reply.calls),
    )


def _call(call: Call, word: str, *, is_known: bool) -> Call:
    arguments = _value(call.arguments, f"{word}-args")
    return replace(call, name=call.name if is_known else f"{call.name}_{word}", arguments=arguments)


def _value(value: Any, word: str) -> Any:
    if isinstance(value, str):
        return f"{value} {word}"
    if isinstance(value, dict):
        return {key: _value(entry, word) for key, entry in value.items()}
    return [_value(entry, word) for entry in value] if isinstance(value, list) else value
