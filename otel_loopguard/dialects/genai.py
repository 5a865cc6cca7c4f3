"""OpenTelemetry GenAI conventions, and all who name their spans by `gen_ai.operation.name`.

That is: the official packages, pydantic-ai, Agent Framework, Strands, Google ADK, AutoGen, AG2,
Semantic Kernel, the anthropic library itself, and most spans of OpenLLMetry and OpenLIT.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from otel_loopguard.core.model import MISSING, Outcome, SpanView
from otel_loopguard.dialects import build
from otel_loopguard.dialects.reading import Reading, Role, Start
from otel_loopguard.dialects.values import content, name, plain

if TYPE_CHECKING:
    from collections.abc import Mapping

OPERATION: Final = "gen_ai.operation.name"
ROLES: Final = {
    "execute_tool": Role.TOOL,
    "chat": Role.MODEL,
    "generate_content": Role.MODEL,
    "text_completion": Role.MODEL,
    "invoke_agent": Role.AGENT,
    "invoke_workflow": Role.AGENT,
    "handle_conversation_turn": Role.AGENT,
}
TOOL: Final = "gen_ai.tool.name"
CALL_ID: Final = "gen_ai.tool.call.id"
CONVERSATION: Final = "gen_ai.conversation.id"
_AGENT: Final = ("gen_ai.agent.name", "gen_ai.workflow.name")
_MODEL: Final = ("gen_ai.request.model", "gen_ai.response.model")
_NAME: Final = {Role.TOOL: (TOOL,), Role.MODEL: _MODEL, Role.AGENT: _AGENT}
_ARGS: Final = (
    "gen_ai.tool.call.arguments",
    "tool_arguments",  # pydantic-ai, format 2
    "gcp.vertex.agent.tool_call_args",
    "gen_ai.tool.args",
    "gen_ai.tool.input",
)
_RESULT: Final = (
    "gen_ai.tool.call.result",
    "tool_response",  # pydantic-ai, format 2
    "gcp.vertex.agent.tool_response",
    "anthropic.tool_result.content",
    "gen_ai.tool.output",
)
_TOKENS: Final = (
    ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
    ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
)
_INPUT: Final = "gen_ai.input.messages"
_OUTPUT: Final = "gen_ai.output.messages"
_SAID_IN: Final = {
    "user": ("gen_ai.user.message", "content"),
    "assistant": ("gen_ai.choice", "message"),
}
_DETAILS: Final = "gen_ai.client.inference.operation.details"
_MERGED: Final = ("(merged)", "(merged tools)")  # Google ADK, beside the spans of parallel calls
_NOBODY: Final = "OpenAI Agent"  # openai-agents-v2, on every span but the agent's own
_SPAN_NAME: Final = re.compile(rf"({'|'.join(ROLES)})(?: (.+))?")
_LATE: Final = (
    "agent_framework",
    "gcp.vertex.agent",
    "openlit.",
    "opentelemetry.instrumentation.ag2",
    "semantic_kernel.",
    "strands.",
)
_REPR: Final = re.compile(
    r"content='(.*)' name='.*' tool_call_id='[^']*'(?: status='(\w+)')?", re.DOTALL
)


def start(span_name: str, scope: str, attributes: Mapping[str, object]) -> Start | None:
    """What a span says when it starts: by its operation, else by its conventional name.

    `chat` alone is a common name for other things: it counts only from those known to be late.
    """
    role = ROLES.get(str(attributes.get(OPERATION)))
    found = _SPAN_NAME.fullmatch(span_name)
    if role is None and found and OPERATION not in attributes:
        role = ROLES[found[1]]
        if role is Role.MODEL and not scope.startswith(_LATE):
            return None
    if role is None:
        return None
    called = name(attributes, *_NAME[role]) or (found[2] if found else None)
    if called in _MERGED:
        return None
    return Start(role, called, name(attributes, CALL_ID), name(attributes, CONVERSATION))


def read(view: SpanView) -> Reading | None:
    """A span whose operation is a tool's, a model's or an agent's; None for any other."""
    attributes = view.attributes
    role = ROLES.get(str(attributes.get(OPERATION)))
    action = _action(view, role) if role else None
    conversation = name(attributes, CONVERSATION)
    if role is Role.TOOL:
        return None if action in _MERGED else _tool(view, action, conversation)
    if role is Role.MODEL:
        return build.model(
            view,
            "genai",
            action,
            request=_said(view, _INPUT, "user"),
            response=_said(view, _OUTPUT, "assistant"),
            finish=attributes.get("gen_ai.response.finish_reasons"),
            tokens=build.tokens(attributes, "gen_ai.usage.total_tokens", _TOKENS),
            agent=_agent(attributes),
            conversation_id=conversation,
        )
    if role is Role.AGENT:
        return build.agent(
            view,
            "genai",
            action,
            request=_said(view, _INPUT, "user"),
            response=_said(view, _OUTPUT, "assistant"),
            conversation_id=conversation,
        )
    return None


def _tool(view: SpanView, action: str | None, conversation_id: str | None) -> Reading | None:
    attributes = view.attributes
    args = content(attributes, _ARGS)
    result = plain(content(attributes, _RESULT))
    if args is MISSING:
        args = _event(view, "gen_ai.tool.message", "content")
    if result is MISSING:
        result = plain(_event(view, "gen_ai.choice", "message"))
    if attributes.get("anthropic.content.truncated") is True:
        result = MISSING
    failed = attributes.get("gen_ai.tool.status") == "error"
    if isinstance(result, str) and (shown := _REPR.fullmatch(result)):
        result, failed = shown[1], failed or shown[2] == "error"
    invalid = attributes.get("pydantic_ai.tool.failure_stage") == "validation"
    return build.tool(
        view,
        "genai",
        action,
        args=args,
        result=result,
        call_id=name(attributes, CALL_ID),
        agent=_agent(attributes),
        conversation_id=conversation_id,
        failed=failed,
        outcome=Outcome.INVALID_ARGS if invalid else None,
    )


def _action(view: SpanView, role: Role) -> str | None:
    found = _SPAN_NAME.fullmatch(view.name)
    return name(view.attributes, *_NAME[role]) or (found[2] if found else None)


def _agent(attributes: Mapping[str, object]) -> str | None:
    called = name(attributes, *_AGENT)
    return None if called == _NOBODY else called


def _said(view: SpanView, key: str, role: str) -> object:
    """Messages: from an attribute, else from the event that carries it, else an event a message."""
    holders = [view.attributes, *(held for event, held in view.events if event == _DETAILS)]
    for holder in holders:
        if (found := content(holder, (key,))) is not MISSING:
            return found
    event, field = _SAID_IN[role]
    return [
        {"role": role, "content": content(held, (field,))}
        for named, held in view.events
        if named == event
    ]


def _event(view: SpanView, event: str, field: str) -> object:
    for named, held in view.events:
        if named == event:
            return content(held, (field,))
    return MISSING
