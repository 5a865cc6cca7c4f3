"""A tool call that only the messages of a conversation tell of: asked for, and answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from opentelemetry.trace import SpanKind

from otel_loopguard.core.digest import UNKNOWN_TOOL
from otel_loopguard.core.model import Kind, Outcome, Sighting, Source
from otel_loopguard.instrumentation.actions import say_failed
from otel_loopguard.instrumentation.tools import capture_result, tool_attributes
from otel_loopguard.sdk import attributes as names
from otel_loopguard.sdk.scope import reference

if TYPE_CHECKING:
    from otel_loopguard.core.conversation import Answered
    from otel_loopguard.instrumentation.turns import Loop
    from otel_loopguard.sdk.pipeline import Pipeline

FAILURE: Final = "tool_error"


def show_answered(pipeline: Pipeline, loop: Loop, seen: Answered, now_ns: int) -> None:
    """Give an answered call that nobody showed a span from its asking to its answer.

    Args:
        pipeline: where it is told.
        loop: the conversation that it belongs to.
        seen: the call and its answer.
        now_ns: when the answer is sent.
    """
    call, answer = seen.pending, seen.answer
    name = call.name or answer.name or UNKNOWN_TOOL
    unknown = not loop.offers(name)
    shown = UNKNOWN_TOOL if unknown else name
    args = seen.ask.args if seen.ask is not None else call.args
    attributes = tool_attributes(pipeline, loop.run, shown, call.call_id, call.args_key, args)
    span = pipeline.tracer.start_span(
        f"execute_tool {shown}",
        loop.context,
        kind=SpanKind.INTERNAL,
        attributes={**attributes, names.SPAN_ORIGIN: names.MESSAGES},
        start_time=call.asked_ns or now_ns,
    )
    if answer.is_error:
        say_failed(span, FAILURE)
    sighting = Sighting(
        Kind.TOOL,
        name,
        Source.MESSAGES,
        args_key=call.args_key,
        result=answer.result,
        error=FAILURE if answer.is_error else None,
        outcome=Outcome.UNKNOWN_TOOL if unknown else None,
        call_id=call.uid,
        round=call.round,
        start_ns=call.asked_ns,
        end_ns=now_ns,
        span=reference(span),
    )
    try:
        pipeline.see(loop.run, sighting, span)
        if call.decision is not None:
            pipeline.intervene(loop.run, call.decision, shown, span)
        if pipeline.settings.capture_content and not answer.is_error:
            capture_result(span, answer.result)
    finally:
        span.end(now_ns)
