"""Loops written by hand over a model SDK: their model calls tell it all.

A response names its tool calls and the next request carries their results; that chain is the run.
It gets an `invoke_agent` span if nothing else shows an agent, and an `execute_tool` span for each
answered call that no execution hook has shown.
"""

from __future__ import annotations

import math
import threading
import time
from contextvars import ContextVar
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from opentelemetry.trace import Link as SpanLink

from otel_loopguard.core.conversation import Chain, Conversations, Link, LinkKind
from otel_loopguard.core.decision import STOPPED, UNANSWERED
from otel_loopguard.core.model import Kind, Sighting, Source
from otel_loopguard.instrumentation.agents import end_run, start_run
from otel_loopguard.instrumentation.answered import show_answered
from otel_loopguard.instrumentation.models import ModelCall, is_nested, surrounding_model_span
from otel_loopguard.instrumentation.tools import ToolCall
from otel_loopguard.instrumentation.turns import Claim, Early, Loop, Turn
from otel_loopguard.runtime import guarded
from otel_loopguard.sdk import attributes as names
from otel_loopguard.sdk.scope import Run, action_of, current_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry import trace

    from otel_loopguard.core.exchange import ModelRequest, ModelResponse
    from otel_loopguard.instrumentation.turns import Later
    from otel_loopguard.sdk.pipeline import Pipeline

_hint: ContextVar[Chain | None] = ContextVar("loopguard-conversation", default=None)
"""The conversation last seen in this thread or task: chooses among several that match."""


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
        self._turns: dict[int, Turn] = {}
        self._later: SimpleQueue[tuple[float, Callable[[], object]]] = SimpleQueue()
        self._used = False

    def _fresh(self) -> Conversations:
        settings = self._pipeline.settings
        return Conversations(
            self._pipeline.guard.fingerprinter,
            max_chains=settings.max_open_spans,
            ttl_ns=int(settings.run_ttl_s * 1e9),
            keep_args=settings.capture_content,
        )

    @guarded("start of a model call")
    def begin(self, request: ModelRequest, later: Later | None = None) -> Turn | None:
        """A request is about to be sent; None if an outer layer shows the model call already.

        Args:
            request: what is sent.
            later: when another instrumentation shows this call on a span of its own, as it seems.
        """
        if is_nested():
            return None
        now_ns = time.time_ns()
        self._do_later(now_ns)
        around = surrounding_model_span()
        with self._lock:
            self._used = True
            link = self._conversations.request(request, now_ns, _hint.get())
            loop = self._loop(link.chain, around)
            if request.offers_tools:
                loop.offered = request.offered
        _hint.set(link.chain)
        self._tell(link, loop, now_ns)
        call = ModelCall(
            self._pipeline,
            loop.run,
            request.model,
            request.provider,
            around=around,
            parent=None if around is not None else loop.context,
            later=later is not None,
            user_turn=link.kind is LinkKind.FOLLOW_UP,
        )
        if around is not None:  # the calls that it will ask for hang below it
            loop.parent = around
        turn = Turn(self, link.chain, call, waits=later == "after")
        self._turns[id(turn)] = turn
        return turn

    def _tell(self, link: Link, loop: Loop, now_ns: int) -> None:
        """Tell what a request says of the steps before it, and let go of what it pushed out."""
        for chain in link.evicted:
            self._let_go(chain, "expired")
        if link.kind is LinkKind.FOLLOW_UP:
            user = Sighting(Kind.USER, "user", Source.MESSAGES, start_ns=now_ns, end_ns=now_ns)
            self._pipeline.see(loop.run, user, None)
        for answered in link.answered:
            if answered.first_time:
                show_answered(self._pipeline, loop, answered, now_ns)

    def _loop(self, chain: Chain, around: trace.Span | None) -> Loop:
        """The loop of a conversation, with a span open for it where it needs one.

        A conversation that offers tools inside of a tool call is a sub-agent: a run of its own.
        """
        scope = current_run()
        in_scope = scope is not None and scope.scoped
        loop = chain.data if isinstance(chain.data, Loop) else None
        if chain.one_shot:
            return Loop(scope or Run("", scoped=False), inherited=True)
        if scope is not None and in_scope and not isinstance(action_of(), ToolCall):
            offered = loop.offered if loop is not None else None
            loop = Loop(scope, inherited=True, offered=offered)
        elif around is not None:
            loop = loop or Loop(Run(chain.run, self._agent, parent=scope if in_scope else None))
        elif loop is None or loop.span is None:
            loop = self._open(chain, loop, scope if in_scope else None)
        chain.data = loop
        return loop

    def _open(self, chain: Chain, before: Loop | None, outer: Run | None) -> Loop:
        """Open an agent span; one for a conversation that goes on links to the one before it."""
        earlier = before.run.span.get_span_context() if before is not None else None
        links = [SpanLink(earlier)] if earlier is not None and earlier.is_valid else None
        run = start_run(self._pipeline, self._agent, run_id=chain.run, outer=outer, links=links)
        return Loop(run, run.span, run.span, offered=before.offered if before is not None else None)

    @guarded("response of a model")
    def respond(self, chain: Chain, response: ModelResponse) -> None:
        """A response has been read: its calls are pending now, or it is the answer."""
        now_ns = time.time_ns()
        with self._lock:
            self._conversations.response(chain, response, now_ns)
            loop = chain.data
            while isinstance(loop, Loop) and loop.early:
                call = loop.early.pop()
                self._conversations.claim(call.name, call.args_key, chain, call.call_id)
        if chain.ended:
            self._let_go(chain, "answer")

    def claim(
        self, name: str, args_key: str | None, call_id: str | None, *, shows: bool = True
    ) -> Claim | None:
        """The pending call that an execution belongs to.

        Args:
            name: the tool's name.
            args_key: the digest of the arguments; None if unknown.
            call_id: the provider's id of the call, if known.
            shows: whether the call counts as shown from now on.
        """
        if not self._used:
            return None
        hint = _hint.get()
        with self._lock:
            call = self._conversations.claim(name, args_key, hint, call_id, shows=shows)
            if call is None:
                return self._claim_early(hint, Early(name, args_key, call_id), shows=shows)
        loop = call.chain.data
        if not isinstance(loop, Loop):
            return None
        return Claim(loop.run, call.uid, call.round, loop.context, loop.offers(name), call)

    @staticmethod
    def _claim_early(hint: Chain | None, call: Early, *, shows: bool) -> Claim | None:
        """The call of a response that is still streaming, where the caller knows the call's id."""
        if hint is None or not hint.awaiting or not call.call_id:
            return None
        loop = hint.data
        if not isinstance(loop, Loop):
            return None
        if shows:
            loop.early.append(call)
        round_id = f"{hint.run}/{hint.seq + 1}"
        return Claim(loop.run, call.call_id, round_id, loop.context, loop.offers(call.name))

    def settle(self, turn: Turn) -> bool:
        """Whether a turn ends now, and had not ended before."""
        return self._turns.pop(id(turn), None) is not None

    def resume(self, turn: Turn) -> None:
        """A turn that ended goes on."""
        self._turns[id(turn)] = turn

    def later(self, task: Callable[[], object], due_ns: int = 0) -> None:
        """Do something at the next model call or tick. Safe wherever garbage is collected.

        Args:
            task: what to do.
            due_ns: not before this time, in nanoseconds since the epoch, unless all ends.
        """
        self._later.put((due_ns, task))

    def _do_later(self, now_ns: float) -> None:
        early: list[tuple[float, Callable[[], object]]] = []
        while not self._later.empty():
            try:
                due_ns, task = self._later.get_nowait()
            except Empty:  # another thread was faster
                break
            if due_ns > now_ns:
                early.append((due_ns, task))
            else:
                task()
        for waiting in early:
            self._later.put(waiting)

    @guarded("stop of a run")
    def stop(self, run: Run, reason: str = STOPPED) -> None:
        """A run is stopped: its span ends, if it is a conversation's."""
        chain = self._conversations.named(run.id)
        if chain is not None:
            self._let_go(chain, reason)

    def expire(self, now_ns: int) -> None:
        """Let go of the conversations that fell silent."""
        self._do_later(now_ns)
        with self._lock:
            gone = self._conversations.expire(now_ns)
        for chain in gone:
            self._let_go(chain, "expired")

    @guarded("exit")
    def close(self) -> None:
        """The process ends, or the instrumentation is taken away: end what is open."""
        self._do_later(math.inf)
        for turn in tuple(self._turns.values()):
            turn.finish(None)
        self._do_later(math.inf)
        with self._lock:
            gone = self._conversations.drain()
        for chain in gone:
            self._let_go(chain, "exit")

    def after_fork(self) -> None:
        """In a forked child: the open spans are the parent's to end."""
        self._lock = threading.RLock()
        self._conversations = self._fresh()
        self._turns = {}
        self._later = SimpleQueue()
        self._used = False

    def _let_go(self, chain: Chain, reason: str) -> None:
        """End a conversation's span and its run, unless that is the run of a scope around."""
        loop = chain.data
        if not isinstance(loop, Loop) or loop.inherited:
            return
        keep = reason in ("answer", STOPPED, UNANSWERED)  # somebody may go on
        if loop.span is None:
            self._pipeline.end_run(loop.run, reason, keep=keep)
            return
        loop.span.set_attribute(names.END_REASON, reason)
        loop.span = None
        end_run(self._pipeline, loop.run, reason, keep=keep)
