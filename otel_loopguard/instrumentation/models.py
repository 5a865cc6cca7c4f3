"""A model call under way."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from opentelemetry.trace import SpanKind

from otel_loopguard.breaking.questions import Verdict as Answer
from otel_loopguard.core.model import MISSING, Kind, Sighting
from otel_loopguard.dialects import Role
from otel_loopguard.instrumentation.actions import (
    Action,
    error_type,
    open_around,
)
from otel_loopguard.instrumentation.content import output_messages
from otel_loopguard.runtime import guarded
from otel_loopguard.sdk import attributes as names
from otel_loopguard.sdk.processor import newest_model_call, newest_model_span
from otel_loopguard.sdk.scope import Run, action_of, current_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry import trace
    from opentelemetry.context import Context

    from otel_loopguard.core.decision import Decision
    from otel_loopguard.core.exchange import ModelResponse
    from otel_loopguard.sdk.pipeline import Pipeline


class ModelCall(Action):
    """One call of a model. It may end long after the call returned: when its stream is over."""

    __slots__ = ("_advice",)

    role = Role.MODEL
    span_kind = SpanKind.CLIENT

    def __init__(
        self,
        pipeline: Pipeline,
        run: Run,
        model: str | None,
        provider: str,
        *,
        around: trace.Span | None = None,
        parent: Context | None = None,
        later: bool = False,
        user_turn: bool = False,
    ) -> None:
        attributes: names.Attributes = {names.OPERATION: "chat", names.PROVIDER: provider}
        if run.id:
            attributes[names.RUN_ID] = run.id
        if user_turn:
            attributes[names.USER_TURN] = True
        if model is not None:
            attributes[names.REQUEST_MODEL] = model
        if run.agent is not None:
            attributes[names.AGENT_NAME] = run.agent
        self._advice: tuple[Decision, Answer | None] | None = None
        super().__init__(
            pipeline,
            run,
            model or "",
            f"chat {model}" if model else "chat",
            attributes,
            around=around,
            parent=parent,
            later=later,
        )
        newest_model_call.set(self)

    def advise(self, decision: Decision, answer: Answer | None = None) -> None:
        """The request is changed, or in shadow mode would be; told once, however often it is.

        Args:
            decision: what was decided.
            answer: how it ended if a human was asked.
        """
        if not decision.told:
            self._advice = decision, answer
            if self.span is not None:
                self._tell()

    def allow(self, decision: Decision) -> None:
        """A human was asked, and lets the run go on."""
        self.advise(decision, Answer.APPROVED)

    def remind(self) -> None:
        """The constraints are said again in the request."""
        if self.span is not None:
            self.span.set_attributes(names.REMINDED)

    def hold(self, decision: Decision, answer: Answer | None = None) -> None:
        """The request is not sent; that is no step of the run."""
        self.ended = True
        self.showing()
        self.advise(decision, answer)
        self.close(time.time_ns())

    def _tell(self) -> None:
        """Tell what was done about a loop, on the span that shows the call if it is open."""
        advice, self._advice = self._advice, None
        if advice is not None and (finding := advice[0].finding) is not None:
            decision, answer = advice
            span = self.showing()
            self.pipeline.intervene(
                self.run, decision, finding.action, span, context=self.place, answer=answer
            )

    def _take(self, span: trace.Span) -> None:
        super()._take(span)
        newest_model_span.set(None)  # it surrounds no call that comes while it is still open
        self._tell()  # it may be over before the call is

    @guarded("end of a model call")
    def finish(
        self,
        response: ModelResponse | None = None,
        failure: str | None = None,
        *,
        end_ns: int = 0,
        later: Callable[[Callable[[], object]], None] | None = None,
    ) -> None:
        """The model has answered, or failed, or its stream was let go. Only the first time counts.

        Args:
            response: what it said, if it was read.
            failure: the class of the failure, if it failed.
            end_ns: when, in nanoseconds since the epoch, if that is not now.
            later: does something a little later. With it, a call that another instrumentation is
                about to show waits for that, since some show a call when it is over.
        """
        if self.ended:
            return
        self.ended = True
        end_ns = end_ns or time.time_ns()
        waits = self.span is None and later is not None
        span = None if waits else self._show(response, failure)
        said: names.Attributes = {}
        try:
            if self.run.id:
                sighting = self._sighting(response, failure, end_ns)
                seen = self.pipeline.see(self.run, sighting, span, context=self.place)
                said = names.step_attributes(seen) if waits else said
        finally:
            if waits and later is not None:
                later(lambda: self._show_late(response, failure, said, end_ns))
            else:
                self.close(end_ns)

    def _show(self, response: ModelResponse | None, failure: str | None) -> trace.Span | None:
        """Write on our span what came of the call; gives the span that shows it if it is open."""
        span = self.showing()
        if failure is not None:
            self.mark_failed(failure)
        if span is not None and response is not None and self.own:
            span.set_attributes(_response_attributes(response))
            if self.pipeline.settings.capture_content:
                span.set_attribute(names.OUTPUT_MESSAGES, output_messages(response))
        self._tell()
        return span

    @guarded("late span of a model call")
    def _show_late(
        self,
        response: ModelResponse | None,
        failure: str | None,
        said: names.Attributes,
        end_ns: int,
    ) -> None:
        """Show the call, unless another instrumentation has done so by now."""
        span = self._show(response, failure)
        if span is not None and self.own:
            span.set_attributes(said)
        self.close(end_ns)

    def fail(
        self,
        error: BaseException,
        response: ModelResponse | None = None,
        *,
        later: Callable[[Callable[[], object]], None] | None = None,
    ) -> None:
        """The call raised. What is no Exception (a cancellation, an exit) is no failure of it.

        Args:
            error: what it raised.
            response: what had come until then.
            later: as for `finish`.
        """
        failure = error_type(error) if isinstance(error, Exception) else None
        self.finish(response, failure, later=later)

    def _sighting(
        self, response: ModelResponse | None, failure: str | None, end_ns: int
    ) -> Sighting:
        seen = Sighting(
            Kind.MODEL,
            self.name,
            error=failure,
            start_ns=self.start_ns,
            end_ns=end_ns,
            span=self.where,
        )
        if response is None:
            return seen
        text = response.text
        if text is None and response.complete:
            text = ""  # it said nothing, which is not the same as unknown
        return seen._replace(
            result=MISSING if text is None else text,
            tokens=response.input_tokens + response.output_tokens,
            thought=MISSING if response.thought is None else response.thought,
            finish=response.finish,
            output_tokens=response.output_tokens,
            acts=bool(response.asks),
        )


def _response_attributes(response: ModelResponse) -> names.Attributes:
    attributes: names.Attributes = {}
    if response.model is not None:
        attributes[names.RESPONSE_MODEL] = response.model
    if response.id is not None:
        attributes[names.RESPONSE_ID] = response.id
    if response.finish is not None:
        attributes[names.FINISH_REASONS] = [response.finish]
    if response.input_tokens or response.output_tokens:
        attributes[names.INPUT_TOKENS] = response.input_tokens
        attributes[names.OUTPUT_TOKENS] = response.output_tokens
    return attributes


def surrounding_model_span() -> trace.Span | None:
    """The model span of another instrumentation that is open around this call, if any."""
    return open_around(Role.MODEL, None, newest_model_span.get())


def is_nested() -> bool:
    """Whether an outer layer of ours shows the model call that runs now."""
    return isinstance(action_of(), ModelCall)


@guarded("start of a model call")
def open_model(
    pipeline: Pipeline, model: str | None, provider: str, *, later: bool = False
) -> ModelCall | None:
    """Begin a framework's model call; None if an outer layer shows it already."""
    if is_nested():
        return None
    run = current_run() or Run("", scoped=False)
    around = surrounding_model_span()
    return ModelCall(pipeline, run, model, provider, around=around, later=later)
