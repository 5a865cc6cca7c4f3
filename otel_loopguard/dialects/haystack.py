"""Haystack's agent: known by the names of its spans, since their scope is the application's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from otel_loopguard.dialects import build
from otel_loopguard.dialects.reading import Reading, Role, Start
from otel_loopguard.dialects.values import content, count, mapping, name, sequence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from otel_loopguard.dialects.view import SpanView

_ROLES: Final = {
    "haystack.agent.step.tool": Role.TOOL,
    "haystack.agent.step.llm": Role.MODEL,
    "haystack.agent.run": Role.AGENT,
}
_TOOL: Final = "haystack.tool.name"


def start(span_name: str, _scope: str, attributes: Mapping[str, object]) -> Start | None:
    """What a span says when it starts: its role by its name, rarely more."""
    role = _ROLES.get(span_name)
    return Start(role, name(attributes, _TOOL)) if role else None


def read(view: SpanView) -> Reading | None:
    """A tool or a model call of the agent, or its whole run; content only where it is traced."""
    role = _ROLES.get(view.name)
    if role is Role.TOOL:
        return build.tool(
            view,
            "haystack",
            name(view.attributes, _TOOL),
            args=content(view.attributes, ("haystack.agent.step.tool.input",)),
            result=content(view.attributes, ("haystack.agent.step.tool.output",)),
            failed=view.attributes.get("haystack.tool.error") is True,
        )
    if role is Role.MODEL:
        replies = _replies(view)
        meta = mapping(replies[0].get("meta")) if replies else None
        usage = mapping((meta or {}).get("usage")) or {}
        return build.model(
            view,
            "haystack",
            name(meta or {}, "model"),
            response=[{**reply, "content": [*_parts(reply)]} for reply in replies],
            finish=[(meta or {}).get("finish_reason")],
            tokens=count(usage, "total_tokens"),
            output_tokens=count(usage, "completion_tokens"),
        )
    return build.agent(view, "haystack", None) if role else None


def _replies(view: SpanView) -> list[Mapping[str, object]]:
    output = mapping(content(view.attributes, ("haystack.agent.step.llm.output",))) or {}
    found = [mapping(reply) for reply in sequence(output.get("replies"))]
    return [reply for reply in found if reply is not None]


def _parts(reply: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    for part in sequence(reply.get("content")):
        held = mapping(part) or {}
        call = mapping(held.get("tool_call"))
        yield {**call, "type": "tool_call", "name": call.get("tool_name")} if call else held
