"""What waits for a human: a tool call, or a request. Whatever goes wrong meanwhile is a no."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from opentelemetry import trace

from otel_loopguard.breaking.questions import Request, Verdict
from otel_loopguard.core.decision import STOPPED, UNANSWERED, DeadlockError, Why
from otel_loopguard.instrumentation.held import Held
from otel_loopguard.runtime import guarded
from otel_loopguard.sdk import attributes as names

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from otel_loopguard.breaking.questions import Asker
    from otel_loopguard.core.decision import Decision
    from otel_loopguard.core.guard import Guard
    from otel_loopguard.core.model import Finding
    from otel_loopguard.instrumentation.drive import Scope
    from otel_loopguard.instrumentation.models import ModelCall
    from otel_loopguard.instrumentation.tools import ToolCall
    from otel_loopguard.instrumentation.wiring import Wiring


class _Wait:
    """A question that is under way, and how it ends: with a no, unless somebody says yes."""

    __slots__ = ("verdict",)

    def __init__(self) -> None:
        self.verdict = Verdict.ERROR


class Asked(Held):
    """A call that a human decides on before it is made.

    Args:
        wired: where it is told.
        call: the call, whose span is open.
        decision: why somebody is asked.
        finding: the loop.
        asker: who is asked, and for how long.
        tool: the tool that is about to be called, if it is that.
    """

    __slots__ = ("_asker", "_call", "_decision", "_finding", "_held", "_made", "_tool", "_wired")

    def __init__(
        self,
        wired: Wiring,
        call: ToolCall | ModelCall,
        decision: Decision,
        finding: Finding,
        asker: Asker,
        tool: str | None = None,
    ) -> None:
        super().__init__(None, None)
        self._wired, self._call, self._asker, self._tool = wired, call, asker, tool
        self._decision, self._finding = decision, finding
        self._made: Callable[[Any], Scope] = _as_it_is
        self._held: Callable[[Held], Held] = _as_it_is

    def then(
        self, made: Callable[[Any], Scope], held: Callable[[Held], Held] | None = None
    ) -> Asked:
        """Have a framework's own scope made of the call, or of what stands in for it."""
        self._made, self._held = made, held or _as_it_is
        return self

    def settled(self) -> Scope | Held:
        """Ask, and block until it is decided."""
        from otel_loopguard.breaking.escalation import escalate_sync  # noqa: PLC0415 - see below

        with self._waiting() as wait:
            ask, timeout_s = self._asker
            wait.verdict = escalate_sync(self._request(), ask, timeout_s=timeout_s)
        return self._end(wait.verdict)

    async def settled_async(self) -> Scope | Held:
        """Ask, and wait until it is decided."""
        # It takes long to load, and few ever ask.
        from otel_loopguard.breaking.escalation import escalate  # noqa: PLC0415

        with self._waiting() as wait:
            ask, timeout_s = self._asker
            wait.verdict = await escalate(self._request(), ask, timeout_s=timeout_s)
        return self._end(wait.verdict)

    def _request(self) -> Request:
        run, finding = self._call.run, self._finding
        return Request(run.id, run.agent, self._tool, finding.pattern, finding.evidence)

    @contextmanager
    def _waiting(self) -> Generator[_Wait]:
        """A span for the time that it takes. Who is interrupted meanwhile does not call."""
        wait, span = _Wait(), self._open()
        try:
            yield wait
        except BaseException:
            self._tell(Verdict.ERROR)
            raise
        finally:
            _close(span, wait.verdict)

    @guarded("start of an escalation")
    def _open(self) -> trace.Span:
        run, finding = self._call.run, self._finding
        around = None
        if run.span.get_span_context().is_valid:
            around = trace.set_span_in_context(run.span)
        attributes = names.escalation_attributes(self._decision, finding, run, self._tool)
        tracer = self._wired.pipeline.tracer
        return tracer.start_span(names.ESCALATION, around, attributes=attributes)

    @guarded("end of an escalation")
    def _tell(self, verdict: Verdict) -> None:
        allowed = verdict is Verdict.APPROVED
        if allowed:
            self._call.allow(self._decision)
        else:
            self._call.hold(self._decision, verdict)
        self._remember(self._wired.pipeline.guard, allowed=allowed)

    def _end(self, verdict: Verdict) -> Scope | Held:
        call = self._call
        self._tell(verdict)
        if verdict is Verdict.APPROVED:
            call.start_ns = time.time_ns()  # to have waited is no work of the tool
            return self._made(call)
        held = self._stopped(UNANSWERED) if verdict is Verdict.TIMEOUT else self._refused()
        if held.error is not None:
            self._wired.stop(call.run, held.error)
        return self._held(held)

    def _stopped(self, reason: str) -> Held:
        finding_id, run = self._decision.finding_id, self._call.run
        return Held(None, DeadlockError(self._finding, finding_id, run.id, reason))

    def _remember(self, guard: Guard, *, allowed: bool) -> None:
        """Have the guard know what was said."""
        guard.answer(self._call.run.id, self._decision, allowed=allowed)

    def _refused(self) -> Held:
        """What stands in for the call after a no."""
        return self._stopped(STOPPED)


class AskedCall(Asked):
    """A call of a tool: after a no the model is told so.

    Args:
        wired, call, decision, finding, asker: as for `Asked`.
        refuse: makes what stands in for the call, given why it is not made.
    """

    __slots__ = ("_args_key", "_refuse")

    def __init__(
        self,
        wired: Wiring,
        call: ToolCall,
        decision: Decision,
        finding: Finding,
        asker: Asker,
        refuse: Callable[[Decision], Held],
    ) -> None:
        super().__init__(wired, call, decision, finding, asker, call.name)
        self._args_key, self._refuse = call.args_key, refuse

    def _remember(self, guard: Guard, *, allowed: bool) -> None:
        if not allowed:
            guard.refuse(self._call.run.id, self._call.name, self._args_key, self._decision)

    def _refused(self) -> Held:
        return self._refuse(self._decision._replace(why=Why.REFUSED))


def _as_it_is(value: Any) -> Any:
    return value


@guarded("end of an escalation's span")
def _close(span: trace.Span | None, verdict: Verdict) -> None:
    if span is not None:
        span.set_attribute(names.VERDICT, verdict.value)
        span.end()
