"""Loops written by hand over a model SDK: their model calls tell it all.

A response names its tool calls and the next request carries their results; that chain is the run.
It gets an `invoke_agent` span if nothing else shows an agent, and an `execute_tool` span for each
answered call that no execution hook has shown.
"""

from __future__ import annotations

import threading
import time
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import Link as SpanLink
from opentelemetry.trace import SpanKind, Status, StatusCode

from otel_loopguard.core.conversation import Answered, Chain, Conversations, Link, LinkKind
from otel_loopguard.core.guard import UNKNOWN_TOOL
from otel_loopguard.core.model import Kind, Outcome, Sighting, Source
from otel_loopguard.instrumentation.agents import start_agent_span
from otel_loopguard.instrumentation.models import ModelCall, is_nested, surrounding_model_span
from otel_loopguard.instrumentation.tools import tool_attributes
from otel_loopguard.runtime import guarded
from otel_loopguard.sdk import attributes as names
from otel_loopguard.sdk.scope import Run, current_run, enter_run, reference

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from otel_loopguard.core.exchange import ModelRequest, ModelResponse
    from otel_loopguard.sdk.pipeline import Pipeline

_hint: ContextVar[Chain | None] = ContextVar("loopguard-conversation", default=None)
"""The conversation last seen in this thread or task: chooses among several that match."""

MESSAGES: Final = "messages"
FAILURE: Final = "tool_error"


class Claim(NamedTuple):
    """A pending call that an execution belongs to: its run, its id in that run, where it hangs."""

    run: Run
    call_id: str
    round: str
    context: Context | None


@dataclass(slots=True)
class Loop:
    """What the instrumentation keeps of a conversation.

    Attributes:
        run: its run.
        context: where its spans hang; None for the context of each call.
        span: the `invoke_agent` span that is open for it, if it is ours and open.
    """

    run: Run
    context: Context | None = None
    span: trace.Span | None = None


class Turn:
    """One model call of a conversation."""

    __slots__ = ("_chain", "_handwritten", "call")

    def __init__(self, handwritten: Handwritten, chain: Chain, call: ModelCall) -> None:
        self._handwritten = handwritten
        self._chain = chain
        self.call = call

    def finish(self, response: ModelResponse | None) -> None:
        """The model has answered; None if what it said could not be read."""
        self.call.finish(response)
        if response is not None:
            self._handwritten.respond(self._chain, response)

    def fail(self, error: BaseException) -> None:
        """The call raised."""
        self.call.fail(error)


class Handwritten:
    """The conversations of this process.

    Args:
        pipeline: where their steps are told.
        agent: the name of the agents that are found, if any is known.
    """

    def __init__(self, pipeline: Pipeline, agent: str | None) -> None:
        self._pipeline = pipeline
        self._agent = agent
        self._lock = threading.RLock()
        self._conversations = self._fresh()
        self._used = False

    def _fresh(self) -> Conversations:
        settings = self._pipeline.settings
        return Conversations(
            self._pipeline.guard.fingerprinter,
            max_chains=settings.max_open_spans,
            ttl_ns=int(settings.run_ttl_s * 1e9),
        )

    @guarded("start of a model call")
    def begin(self, request: ModelRequest) -> Turn | None:
        """A request is about to be sent; None if an outer layer shows the model call already."""
        if is_nested():
            return None
        now_ns = time.time_ns()
        around = surrounding_model_span()
        with self._lock:
            self._used = True
            link = self._conversations.request(request, now_ns, _hint.get())
            loop = self._loop(link, around)
        for chain in link.evicted:
            self._let_go(chain, "expired")
        _hint.set(link.chain)
        if link.kind is LinkKind.FOLLOW_UP:
            user = Sighting(Kind.USER, "user", Source.MESSAGES, start_ns=now_ns, end_ns=now_ns)
            self._pipeline.see(loop.run, user, None)
        for answered in link.answered:
            if answered.first_time:
                self._show(loop, answered, request, now_ns)
        call = ModelCall(
            self._pipeline,
            loop.run,
            request.model,
            request.provider,
            around=around,
            parent=loop.context if loop.span is not None else None,
        )
        if around is not None:  # the calls that it will ask for hang below it
            loop.context = trace.set_span_in_context(around, otel_context.get_current())
        return Turn(self, link.chain, call)

    def _loop(self, link: Link, around: trace.Span | None) -> Loop:
        """The loop of a request's conversation, with a span open for it where it needs one."""
        chain, scope = link.chain, current_run()
        loop = chain.data if isinstance(chain.data, Loop) else None
        if scope is not None and scope.scoped:
            loop = Loop(scope)
        elif chain.one_shot:
            return Loop(scope or Run("", scoped=False))
        elif around is not None:
            loop = loop or Loop(Run(chain.run, self._agent))
        elif loop is None or loop.span is None:
            loop = self._open(chain, loop)
        chain.data = loop
        return loop

    def _open(self, chain: Chain, before: Loop | None) -> Loop:
        """Open an agent span; one for a conversation that goes on links to the one before it."""
        earlier = before.run.span.get_span_context() if before is not None else None
        links = [SpanLink(earlier)] if earlier is not None and earlier.is_valid else None
        span, run_id = start_agent_span(self._pipeline, self._agent, run_id=chain.run, links=links)
        run = Run(run_id, self._agent, span=span)
        return Loop(run, enter_run(run, trace.set_span_in_context(span)), span)

    def _show(self, loop: Loop, seen: Answered, request: ModelRequest, now_ns: int) -> None:
        """Give an answered call that nobody showed a span from its asking to its answer."""
        call, answer = seen.pending, seen.answer
        name = call.name or answer.name or UNKNOWN_TOOL
        unknown = request.offered is not None and name not in request.offered
        shown = UNKNOWN_TOOL if unknown else name
        args = seen.ask.args if seen.ask is not None else call.args
        attributes = tool_attributes(
            self._pipeline, loop.run, shown, call.call_id, call.args_key, args
        )
        span = self._pipeline.tracer.start_span(
            f"execute_tool {shown}",
            loop.context,
            kind=SpanKind.INTERNAL,
            attributes={**attributes, names.SPAN_ORIGIN: MESSAGES},
            start_time=call.asked_ns or now_ns,
        )
        if answer.is_error:
            span.set_attribute(names.ERROR_TYPE, FAILURE)
            span.set_status(Status(StatusCode.ERROR, FAILURE))
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
            self._pipeline.see(loop.run, sighting, span)
        finally:
            span.end(now_ns)

    @guarded("response of a model")
    def respond(self, chain: Chain, response: ModelResponse) -> None:
        """A response has been read: its calls are pending now, or it is the answer."""
        now_ns = time.time_ns()
        with self._lock:
            self._conversations.response(chain, response, now_ns)
        if chain.ended:
            self._let_go(chain, "answer")

    def claim(self, name: str, args_key: str | None, call_id: str | None) -> Claim | None:
        """The pending call that an execution belongs to; from now on it counts as shown."""
        if not self._used:
            return None
        with self._lock:
            call = self._conversations.claim(name, args_key, _hint.get(), call_id)
            loop = call.chain.data if call is not None else None
        if call is None or not isinstance(loop, Loop):
            return None
        return Claim(loop.run, call.uid, call.round, loop.context)

    def expire(self, now_ns: int) -> None:
        """Let go of the conversations that fell silent."""
        with self._lock:
            gone = self._conversations.expire(now_ns)
        for chain in gone:
            self._let_go(chain, "expired")

    @guarded("exit")
    def close(self) -> None:
        """The process ends, or the instrumentation is taken away: end what is open."""
        with self._lock:
            gone = self._conversations.drain()
        for chain in gone:
            self._let_go(chain, "exit")

    def after_fork(self) -> None:
        """In a forked child: the open spans are the parent's to end."""
        self._lock = threading.RLock()
        self._conversations = self._fresh()
        self._used = False

    def _let_go(self, chain: Chain, reason: str) -> None:
        loop = chain.data
        if isinstance(loop, Loop):
            self._end_span(loop, reason)

    def _end_span(self, loop: Loop, reason: str) -> None:
        """End a loop's span; its episode is kept after an answer, since a user may go on."""
        if loop.run.id == "" or (loop.span is None and loop.context is None):
            return
        if loop.span is not None:
            loop.span.set_attribute(names.END_REASON, reason)
            loop.span.end()
            loop.span = None
        self._pipeline.end_run(loop.run, reason, keep=reason == "answer")
