"""Where spans of the GenAI conventions and their variants keep content: attributes, then events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from otel_loopguard.core.model import MISSING
from otel_loopguard.dialects.values import content

if TYPE_CHECKING:
    from otel_loopguard.dialects.view import SpanView

_ARGS: Final = (
    "gen_ai.tool.call.arguments",
    "tool_arguments",  # pydantic-ai, format 2
    "gcp.vertex.agent.tool_call_args",
    "gen_ai.tool.args",  # OpenLIT before it followed the conventions
    "gen_ai.tool.input",
)
_RESULT: Final = (
    "gen_ai.tool.call.result",
    "tool_response",  # pydantic-ai, format 2
    "gcp.vertex.agent.tool_response",
    "anthropic.tool_result.content",
    "gen_ai.tool.output",  # OpenLIT before it followed the conventions
)
_MESSAGES: Final = {
    "user": ("gen_ai.input.messages", "gen_ai.user.message", "content"),
    "assistant": ("gen_ai.output.messages", "gen_ai.choice", "message"),
}
_DETAILS: Final = "gen_ai.client.inference.operation.details"


def arguments(view: SpanView) -> object:
    """The arguments of a tool span; `MISSING` if not captured."""
    found = content(view.attributes, _ARGS)
    return _event(view, "gen_ai.tool.message", "content") if found is MISSING else found


def result(view: SpanView) -> object:
    """The result of a tool span; `MISSING` if not captured, or not whole."""
    if view.attributes.get("anthropic.content.truncated") is True:
        return MISSING
    found = content(view.attributes, _RESULT)
    return _event(view, "gen_ai.choice", "message") if found is MISSING else found


def messages(view: SpanView, role: str) -> object:
    """What the user sent or the assistant answered.

    In an attribute, else in the event that carries that attribute, else in one event a message.
    """
    key, event, field = _MESSAGES[role]
    found = content(view.attributes, (key,))
    if found is not MISSING or not view.events:
        return found
    for named, held in view.events:
        if named == _DETAILS and (found := content(held, (key,))) is not MISSING:
            return found
    said = (content(held, (field,)) for named, held in view.events if named == event)
    return [{"role": role, "content": each} for each in said]


def _event(view: SpanView, event: str, field: str) -> object:
    found = (content(held, (field,)) for named, held in view.events if named == event)
    return next(found, MISSING)
