"""From what a dialect found in a span to a `Reading`; the rules that hold for every dialect."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from otel_loopguard.core.model import MISSING, Kind, Outcome, Sighting, Source
from otel_loopguard.core.said import CUT
from otel_loopguard.core.tuples import make
from otel_loopguard.dialects import messages, values
from otel_loopguard.dialects.offered import offered
from otel_loopguard.dialects.reading import Reading, Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from otel_loopguard.dialects.view import SpanView

_MODEL_LIBRARIES: Final = frozenset(
    {"openai", "anthropic", "bedrock", "google_genai", "vertexai", "mistralai", "cohere", "groq"}
    | {"ollama", "litellm", "portkey", "together", "replicate", "watsonx"}
)
# Before Python 3.12 it takes long to read a member from its enum.
_TOOL: Final = Role.TOOL
_MODEL: Final = Role.MODEL
_TOOL_STEP: Final = Kind.TOOL
_MODEL_STEP: Final = Kind.MODEL
_SPAN: Final = Source.SPAN
_MODEL_SCOPES: Final = frozenset({"com.anthropic.sdk.python", "opentelemetry.util.genai.handler"})


@lru_cache(maxsize=256)
def shows_models_only(scope: str) -> bool:
    """Whether a scope instruments a model library, where the loop around it is hand-written.

    Only there the results in the requests are worth reading: the instrumentation of a framework
    shows the executions themselves, some without a call id, and would show each call twice.
    """
    return scope in _MODEL_SCOPES or not _MODEL_LIBRARIES.isdisjoint(scope.split("."))


def tool(
    view: SpanView,
    dialect: str,
    action: str | None,
    *,
    args: object = MISSING,
    result: object = MISSING,
    call_id: str | None = None,
    agent: str | None = None,
    conversation_id: str | None = None,
    failed: bool = False,
    outcome: Outcome | None = None,
) -> Reading | None:
    """A tool span's reading; None without a tool's name. `failed` is what the span says elsewhere.

    Withheld content shows as `{}` in some dialects. An empty object is taken for a value only where
    its other half (the result of these arguments, the arguments of this result) was captured.
    """
    if not action:
        return None
    error = values.error(view) or ("error" if failed else None)
    if result is MISSING and error:
        result = values.error_text(view)
    args, result = (
        MISSING if args == {} and result in (MISSING, {}) else args,
        MISSING if result == {} and args in (MISSING, {}) else result,
    )
    seen = make(
        Sighting,
        (
            _TOOL_STEP, action, _SPAN, args, None, result, error, outcome, call_id, None, agent,
            view.start_ns, view.end_ns, 0, view.reference, MISSING, None, 0, None, False, None,
        ),
    )  # fmt: skip
    return make(Reading, (_TOOL, (seen,), agent, conversation_id, dialect, ()))


def model(
    view: SpanView,
    dialect: str,
    action: str | None,
    *,
    request: object = MISSING,
    response: object = MISSING,
    finish: object = None,
    tokens: int = 0,
    output_tokens: int = 0,
    agent: str | None = None,
    conversation_id: str | None = None,
) -> Reading:
    """A model span's reading. `request` and `response` are messages in any known shape.

    A response that holds calls or reasoning and no text says nothing; one that holds none of them
    was not captured.
    The results in `request` count as seen: it is left out unless `shows_models_only` holds.
    """
    reasons = _reasons(finish)
    said = messages.response(response)
    is_whole = bool(said.calls) or said.thought is not MISSING
    text = "" if said.text is MISSING and is_whole else said.text
    finished = next(filter(CUT.__contains__, reasons), reasons[0]) if reasons else None
    call = make(
        Sighting,
        (
            _MODEL_STEP, action or view.name or "model", _SPAN, MISSING, None, text,
            values.error(view), None, None, None, agent, view.start_ns, view.end_ns, tokens,
            view.reference, said.thought, finished, output_tokens, None, bool(said.calls), None,
        ),
    )  # fmt: skip
    answers = () if request is MISSING else messages.answers(request)
    if not answers:
        return make(Reading, (_MODEL, (call,), agent, conversation_id, dialect, said.calls))
    known = offered(view.attributes)
    carried = tuple(
        Sighting(
            Kind.TOOL,
            answer.call.name,
            Source.SPAN,
            args=answer.call.args,
            result=answer.result,
            outcome=Outcome.UNKNOWN_TOOL if known and answer.call.name not in known else None,
            call_id=answer.call.call_id,
            round=view.span_id,
            agent=agent,
            end_ns=view.start_ns,
            span=view.reference,
        )
        for answer in answers
    )
    return Reading(_MODEL, (*carried, call), agent, conversation_id, dialect, said.calls)


def _reasons(finish: object) -> list[str]:
    """The words by which the provider says why its model stopped."""
    if finish is None:
        return []
    return [str(reason) for reason in values.sequence(values.load(finish)) if reason]


def agent(
    view: SpanView,
    dialect: str,
    action: str | None,
    *,
    request: object = MISSING,
    response: object = MISSING,
    conversation_id: str | None = None,
) -> Reading:
    """An agent span's reading: what it was asked and what it answered, both as text."""
    seen = Sighting(
        Kind.AGENT,
        action or "",
        Source.SPAN,
        args=messages.text(request, "user"),
        result=messages.text(response, "assistant"),
        error=values.error(view),
        start_ns=view.start_ns,
        end_ns=view.end_ns,
        span=view.reference,
    )
    return Reading(Role.AGENT, (seen,) if action else (), action or None, conversation_id, dialect)


def tokens(attributes: Mapping[str, object], total: str, parts: tuple[tuple[str, ...], ...]) -> int:
    """Tokens of a model call: the sum of its parts (each under its first known name) or `total`."""
    found = 0
    for names in parts:
        found += values.count(attributes, *names)
    return found or values.count(attributes, total)
