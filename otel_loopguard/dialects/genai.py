"""OpenTelemetry GenAI conventions, and all who name their spans by `gen_ai.operation.name`.

That is: the official packages, pydantic-ai, Agent Framework, Strands, Google ADK, AutoGen, AG2,
Semantic Kernel, the anthropic library itself, and most spans of OpenLLMetry and OpenLIT.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from otel_loopguard.core.model import MISSING, Outcome
from otel_loopguard.core.tuples import make
from otel_loopguard.dialects import build, envelopes, genai_content
from otel_loopguard.dialects.reading import Reading, Role, Start
from otel_loopguard.dialects.values import count, name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from otel_loopguard.dialects.view import SpanView

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
_IS_TOOL: Final = Role.TOOL  # before Python 3.12 it takes long to read a member from its enum
_IS_MODEL: Final = Role.MODEL
_TOKENS: Final = (
    ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
    ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
)
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


def by_name(span_name: str) -> tuple[Role | None, str | None]:
    """Role and name that a conventional span name tells, such as `invoke_agent planner`."""
    found = _SPAN_NAME.fullmatch(span_name)
    return (ROLES[found[1]], found[2]) if found else (None, None)


def start(span_name: str, scope: str, attributes: Mapping[str, object]) -> Start | None:
    """What a span says when it starts: by its operation, else by its conventional name.

    `chat` alone is a common name for other things: it counts only from those known to be late.
    """
    if OPERATION in attributes:
        role, called = ROLES.get(str(attributes[OPERATION])), None
    else:
        role, called = by_name(span_name)
        if role is Role.MODEL and not scope.startswith(_LATE):
            return None
    if role is None:
        return None
    called = name(attributes, *_NAME[role]) or called or by_name(span_name)[1]
    if called in _MERGED:
        return None
    return make(Start, (role, called))


def read(view: SpanView) -> Reading | None:
    """A span whose operation is a tool's, a model's or an agent's; None for any other."""
    attributes = view.attributes
    role = ROLES.get(str(attributes.get(OPERATION)))
    if role is None:
        return None
    action = name(attributes, *_NAME[role]) or by_name(view.name)[1]
    conversation = name(attributes, CONVERSATION) if CONVERSATION in attributes else None
    if role is _IS_TOOL:
        return None if action in _MERGED else _tool(view, action, conversation)
    if role is _IS_MODEL:
        carries = build.shows_models_only(view.scope)
        return build.model(
            view,
            "genai",
            action,
            request=genai_content.messages(view, "user") if carries else MISSING,
            response=genai_content.messages(view, "assistant"),
            finish=attributes.get("gen_ai.response.finish_reasons"),
            tokens=build.tokens(attributes, "gen_ai.usage.total_tokens", _TOKENS),
            output_tokens=count(attributes, *_TOKENS[1]),
            agent=_agent(attributes),
            conversation_id=conversation,
        )
    return build.agent(
        view,
        "genai",
        action,
        request=genai_content.messages(view, "user"),
        response=genai_content.messages(view, "assistant"),
        conversation_id=conversation,
    )


def _tool(view: SpanView, action: str | None, conversation_id: str | None) -> Reading | None:
    attributes = view.attributes
    result = envelopes.message(genai_content.result(view))
    invalid = attributes.get("pydantic_ai.tool.failure_stage") == "validation"
    return build.tool(
        view,
        "genai",
        action,
        args=genai_content.arguments(view),
        result=result.value,
        call_id=name(attributes, CALL_ID),
        agent=_agent(attributes),
        conversation_id=conversation_id,
        failed=result.failed or attributes.get("gen_ai.tool.status") == "error",
        outcome=Outcome.INVALID_ARGS if invalid else None,
    )


def _agent(attributes: Mapping[str, object]) -> str | None:
    called = name(attributes, *_AGENT)
    return None if called == _NOBODY else called
