"""A request to a LangChain chat model, and copies of it with changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from otel_loopguard.breaking.counsel import KEEP, Scene
from otel_loopguard.core.exchange import Answer, Ask
from otel_loopguard.instrumentation.langchain_values import is_message, text_in
from otel_loopguard.instrumentation.wire.forms import (
    MAX_MESSAGES,
    constraints,
    in_part,
    is_warm,
    last_asked,
    left_out,
    objective,
    shortened,
    tools_of,
)
from otel_loopguard.instrumentation.wire.history import Part

if TYPE_CHECKING:
    from otel_loopguard.breaking.brief import Brief
    from otel_loopguard.breaking.counsel import Change
    from otel_loopguard.instrumentation.replacing import Given

_NONE: Final[dict[str, object]] = {
    "langchain_openai": "none",
    "langchain_anthropic": {"type": "none"},
}
"""The tool choice that forbids calls, by the package of a model."""


class Messages:
    """What a chat model is given: messages, a text or a prompt; or a list with one of these.

    Args:
        model: the model.
        given: the arguments of its method.
        brief: what the application says of the run.
        language: of what is put in.
    """

    def __init__(self, model: Any, given: Given, brief: Brief | None, language: str) -> None:
        self._brief, self._language, self._kwargs = brief, language, given.kwargs
        first: object = given.first("messages") or given.first("input")
        batch = _listed(first)
        self._nested = bool(batch) and _is_list(batch[0])
        self._name = "messages" if self._nested else "input"
        listed = _listed(batch[0] if self._nested else _as_messages(model, first))
        known = 0 < len(listed) <= MAX_MESSAGES and all(map(is_message, listed))
        self._messages = listed if known else []
        self._parts = [_part(each) for each in self._messages]
        self._none = next(filter(None, map(_NONE.get, _packages(model))), None)
        self._warmth = None
        if self._none is not None:
            self._warmth = given.kwargs.get("temperature", getattr(model, "temperature", None))
        remote = bool(
            getattr(model, "use_previous_response_id", False)
            or given.kwargs.get("previous_response_id")
        )
        self.goes_on = any(part.role == "assistant" for part in self._parts)
        system = (text_in(each.content) for each in self._messages if each.type == "system")
        tools = tools_of(given.kwargs)
        self.scene = Scene(
            objective=objective(self._parts, brief, language),
            constraints=constraints(next(system, ""), brief),
            tools=tools,
            asked=last_asked(self._parts),
            takes_words=known,
            takes_final=bool(tools) and self._none is not None,
            is_warm=is_warm(self._warmth),
            is_whole=not remote and left_out(self._parts, KEEP) > 1,
        )

    def changed(self, change: Change) -> tuple[str, object, dict[str, Any]]:
        """The name of the first argument, what it is with a change, and more arguments."""
        from langchain_core.messages import HumanMessage  # noqa: PLC0415 - only where it is used

        messages = shortened(
            self._messages, self._parts, change.keep, self._brief, self._language, HumanMessage
        )
        if change.shortens:
            messages = [_in_part(each) for each in messages]
        told = [*messages, HumanMessage(change.text)]
        more: dict[str, Any] = {"tool_choice": self._none} if change.final else {}
        if change.cools and self._warmth is not None:
            more["temperature"] = self._warmth / 2
        return self._name, [told] if self._nested else told, more


def _is_list(value: object) -> bool:
    return type(value) is list


def _listed(value: object) -> list[Any]:
    return cast("list[Any]", value) if _is_list(value) else []


def _as_messages(model: Any, given: object) -> object:
    return model._convert_input(given).to_messages()  # noqa: SLF001 - as the model does it


def _packages(model: object) -> list[str]:
    return [kind.__module__.partition(".")[0] for kind in type(model).__mro__]


def _part(message: Any) -> Part:
    """A message as it is read in all wires."""
    kind, text = message.type.removesuffix("MessageChunk").lower(), text_in(message.content)
    if kind == "human":
        return Part("user", text)
    if kind == "ai":
        calls = [*message.tool_calls, *message.invalid_tool_calls]
        return Part(
            "assistant",
            text,
            tuple(Ask(call.get("id"), call.get("name") or "", call.get("args")) for call in calls),
        )
    if kind in ("tool", "function"):
        call_id = getattr(message, "tool_call_id", None)
        return Part("tool", answers=(Answer(call_id, message.name, text),))
    return Part()


def _in_part(message: Any) -> Any:
    """A message whose long result is given in its first part."""
    part = in_part(message.content) if message.type == "tool" else message.content
    if part is message.content:
        return message
    return message.model_copy(update={"content": part})
