"""OpenLLMetry (Traceloop): spans with `traceloop.span.kind`; its model spans follow `genai`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from otel_loopguard.dialects import build, envelopes, genai
from otel_loopguard.dialects.reading import Reading, Role, Start
from otel_loopguard.dialects.values import content, name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from otel_loopguard.dialects.view import SpanView

KIND: Final = "traceloop.span.kind"
_ROLES: Final = {"tool": Role.TOOL, "agent": Role.AGENT, "workflow": Role.AGENT}
_LATE: Final = (
    "opentelemetry.instrumentation.langchain",
    "opentelemetry.instrumentation.openai.v1",
)
_SUFFIXES: Final = {
    "workflow": Role.AGENT,
    "chat": Role.MODEL,
    "completion": Role.MODEL,
    "response": Role.MODEL,
}
_ENTITY: Final = "traceloop.entity.name"
_ARGS: Final = ("gen_ai.tool.call.arguments", "traceloop.entity.input")
_RESULT: Final = ("gen_ai.tool.call.result", "traceloop.entity.output")
_THREAD: Final = "traceloop.association.properties.thread_id"
_NAME: Final = {
    Role.TOOL: (genai.TOOL, _ENTITY),
    Role.AGENT: ("gen_ai.agent.name", _ENTITY, "traceloop.workflow.name"),
}


def start(span_name: str, scope: str, attributes: Mapping[str, object]) -> Start | None:
    """What a span says when it starts: its kind, or the end of its name if that comes later."""
    role = _ROLES.get(str(attributes.get(KIND)))
    if scope in _LATE and KIND not in attributes:
        role = _SUFFIXES.get(span_name.rpartition(".")[2])
    if role is None:
        return None
    return Start(role, name(attributes, *_NAME.get(role, ())))


def read(view: SpanView) -> Reading | None:
    """A tool, agent or workflow; None for a task, which is a node of a graph and no step."""
    attributes = view.attributes
    role = _ROLES.get(str(attributes.get(KIND)))
    if role is None:
        return None
    action = name(attributes, *_NAME[role])
    conversation = _conversation(attributes)
    if role is Role.AGENT:
        return build.agent(view, "openllmetry", action, conversation_id=conversation)
    args = envelopes.arguments(content(attributes, _ARGS))
    result = envelopes.result(content(attributes, _RESULT), action)
    return build.tool(
        view,
        "openllmetry",
        action,
        args=args.value,
        result=result.value,
        call_id=name(attributes, genai.CALL_ID) or args.call_id or result.call_id,
        agent=name(attributes, "gen_ai.agent.name"),
        conversation_id=conversation,
        failed=result.failed,
    )


def _conversation(attributes: Mapping[str, object]) -> str | None:
    return name(attributes, genai.CONVERSATION, _THREAD)
