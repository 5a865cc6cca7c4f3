"""The wrapping that frameworks put around plain arguments and results, most of it volatile.

Identical calls differ in it (step numbers, checkpoints, call ids), so it must come off.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from otel_loopguard.dialects.values import load, mapping, name, plain

_CALLABLE: Final = frozenset({"args", "kwargs", "sanitize_inputs_outputs"})
_LANGCHAIN_TOOL: Final = frozenset({"input_str", "inputs", "kwargs"})
_LANGCHAIN_RESULT: Final = {"output", "kwargs"}
_ADK_RESPONSE: Final = {"id", "name", "response"}
_SHOWN: Final = re.compile(
    r"content='(.*)' name='.*' tool_call_id='([^']*)'(?: status='(\w+)')?", re.DOTALL
)


class Arguments(NamedTuple):
    """Plain arguments, with the call id where the wrapping told it."""

    value: object
    call_id: str | None = None


class Result(NamedTuple):
    """A plain result, with the call id and the failure where the wrapping told them."""

    value: object
    call_id: str | None = None
    failed: bool = False


def arguments(value: object) -> Arguments:
    """Arguments without LangChain's callback envelope or a Python call's `args` and `kwargs`."""
    held = mapping(value)
    if held is None:
        return Arguments(value)
    keywords = mapping(held.get("kwargs"))
    if _LANGCHAIN_TOOL.issubset(held):
        inputs = held["inputs"] if held["inputs"] is not None else load(held["input_str"])
        return Arguments(inputs, name(keywords or {}, "tool_call_id"))
    if keywords is not None and _CALLABLE.issuperset(held):
        return Arguments({"args": held["args"], **keywords} if held.get("args") else keywords)
    return Arguments(value)


def result(value: object, tool: str | None) -> Result:
    """A result without LangChain's callback envelope, its `ToolMessage`, or ADK's response."""
    held = mapping(value) or {}
    if set(held) == _LANGCHAIN_RESULT:
        return message(load(held["output"]))
    if set(held) == _ADK_RESPONSE and held["name"] == tool:
        return Result(held["response"], name(held, "id"))
    return message(value)


def message(value: object) -> Result:
    """A result without LangChain's `ToolMessage`, in any shape that it takes, or text blocks."""
    if isinstance(value, str):
        shown = _SHOWN.fullmatch(value) if value.startswith("content=") else None
        return Result(shown[1], shown[2], shown[3] == "error") if shown else Result(value)
    held = mapping(value) or {}
    told = mapping(held.get("data" if held.get("type") == "tool" else "kwargs")) or {}
    if told.get("type") == "tool" and "tool_call_id" in told:
        content = plain(load(told.get("content")))
        return Result(content, name(told, "tool_call_id"), told.get("status") == "error")
    return Result(plain(value))
