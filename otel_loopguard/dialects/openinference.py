"""OpenInference (Arize): spans with `openinference.span.kind`, whatever else they carry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from otel_loopguard.core.model import MISSING
from otel_loopguard.dialects import build, envelopes, flattened, genai, messages
from otel_loopguard.dialects.reading import Reading, Role, Start
from otel_loopguard.dialects.values import content, count, mapping, name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from otel_loopguard.dialects.view import SpanView

KIND: Final = "openinference.span.kind"
_ROLES: Final = {"TOOL": Role.TOOL, "LLM": Role.MODEL, "AGENT": Role.AGENT}
_CONVERSATION: Final = ("session.id", genai.CONVERSATION)
_AGENT: Final = ("agent.name", "gen_ai.agent.name", "graph.node.name")
_TOOL: Final = ("tool.name", genai.TOOL)
_MODEL: Final = ("llm.model_name", "llm.response.model_name", "llm.request.model_name")
_NAME: Final = {Role.TOOL: _TOOL, Role.MODEL: _MODEL, Role.AGENT: _AGENT}
_CALL_ID: Final = ("tool_call.id", "tool.call_id", "tool.id", genai.CALL_ID)
_INPUT: Final = ("input.value", "tool.parameters", "gen_ai.tool.call.arguments")
_OUTPUT: Final = ("output.value", "gen_ai.tool.call.result")
_TOKENS: Final = (("llm.token_count.prompt",), ("llm.token_count.completion",))


def start(span_name: str, _scope: str, attributes: Mapping[str, object]) -> Start | None:
    """What a span says when it starts, where it has its kind by then (LangChain's has not)."""
    role = _role(span_name, attributes)
    if role is None:
        return None
    return Start(role, name(attributes, *_NAME[role]) or genai.by_name(span_name)[1])


def read(view: SpanView) -> Reading | None:
    """A tool, a model or an agent; None for a chain and the other kinds."""
    attributes = view.attributes
    role = _role(view.name, attributes)
    conversation = name(attributes, *_CONVERSATION)
    if role is Role.TOOL:
        return _tool(view, conversation)
    if role is Role.AGENT:
        return build.agent(
            view,
            "openinference",
            name(attributes, *_AGENT) or genai.by_name(view.name)[1] or _bare(view.name),
            request=_said(attributes, "input", "user"),
            response=_said(attributes, "output", "assistant"),
            conversation_id=conversation,
        )
    if role is Role.MODEL:
        return build.model(
            view,
            "openinference",
            name(attributes, *_MODEL),
            request=_request(attributes) if build.shows_models_only(view.scope) else MISSING,
            response=flattened.messages(attributes, "output"),
            finish=[attributes.get("llm.finish_reason")],
            tokens=build.tokens(attributes, "llm.token_count.total", _TOKENS),
            output_tokens=count(attributes, *_TOKENS[1]),
            agent=name(attributes, *_AGENT),
            conversation_id=conversation,
        )
    return None


def _role(span_name: str, attributes: Mapping[str, object]) -> Role | None:
    if genai.by_name(span_name)[0] is Role.AGENT:
        return Role.AGENT  # over Google ADK's, the attributes of its last model call are written
    return _ROLES.get(str(attributes.get(KIND)))


def _tool(view: SpanView, conversation_id: str | None) -> Reading | None:
    attributes = view.attributes
    action = name(attributes, *_TOOL) or _bare(view.name)
    args = envelopes.arguments(content(attributes, _INPUT))
    result = envelopes.result(content(attributes, _OUTPUT), action)
    return build.tool(
        view,
        "openinference",
        action,
        args=args.value,
        result=result.value,
        call_id=name(attributes, *_CALL_ID) or result.call_id,
        agent=name(attributes, *_AGENT[:2]),
        conversation_id=conversation_id,
        failed=result.failed,
    )


def _bare(span_name: str) -> str:
    """The name without the method behind it: `get_weather.__call__`, `agent.run`."""
    return span_name.partition(".")[0]


def _said(attributes: Mapping[str, object], side: str, role: str) -> object:
    said = content(attributes, (f"{side}.value",))
    plain = [{"role": role, "content": said}] if isinstance(said, str) else MISSING
    return flattened.messages(attributes, side) or plain


def _request(attributes: Mapping[str, object]) -> object:
    """The messages of a request: as the provider got them, else flattened into attributes.

    The flattened form keeps only the last of several results in one Anthropic message.
    """
    sent = mapping(content(attributes, ("input.value",)))
    raw = sent.get("messages") if sent else None
    return raw if messages.answers(raw) else flattened.messages(attributes, "input")
