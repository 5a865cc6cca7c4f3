"""A guarded run as an agent run: its span, its findings, the tokens of its models, who is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from otel_loopguard.breaking.guarded import GuardedLoop, Progress
from otel_loopguard.breaking.limits import AgentResult, Limits, StopReason
from otel_loopguard.breaking.questions import TIMEOUT_S, Asker
from otel_loopguard.core.model import Kind
from otel_loopguard.instrumentation import drive, wiring
from otel_loopguard.instrumentation.actions import error_type
from otel_loopguard.instrumentation.agents import AgentScope, open_agent
from otel_loopguard.runtime import guarded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from opentelemetry.context import Context

    from otel_loopguard.breaking.questions import Escalate
    from otel_loopguard.core.model import Observation
    from otel_loopguard.sdk.pipeline import Pipeline

_REASONS: Final = {StopReason.COMPLETED: "answer"}
"""What `loopguard.end_reason` says where it has another word for it."""


def run_guarded(
    step: Callable[[Progress], object],
    *,
    name: str = "agent",
    max_iterations: int | None = 10,
    max_seconds: float | None = None,
    max_tokens: int | None = None,
    max_cost: float | None = None,
    partial_context: Callable[[Progress], object] | None = None,
    final: Callable[[Any], object] | None = None,
    escalate: Escalate | None = None,
    escalate_timeout_s: float = TIMEOUT_S,
) -> AgentResult:
    """Take steps until one gives an answer, a limit is reached, or the agent is in a deadlock.

    It is one agent run, as with `run`: tools and model calls in the steps belong to it. It ends
    with `deadlock` after the step in which a critical finding of the run itself was made, or which
    raised `DeadlockError`. What a step raises is in the result; what is no `Exception`, such as a
    KeyboardInterrupt, passes. Limits are looked at between steps: a step that hangs is not stopped,
    which only `run_guarded_async` does.

    Args:
        step: takes one step, given how far the run is: returns None to go on, `Done(answer)` to
            end.
        name: the agent's name.
        max_iterations: how many steps it may take; None for no limit, as below.
        max_seconds: how long it may take, by a clock that does not jump.
        max_tokens: how many tokens its models may use: those of calls that are watched, and what
            steps report by `progress.used(tokens=...)`.
        max_cost: how much it may cost, as steps report by `progress.used(cost=...)`.
        partial_context: makes what the result holds of a run that came to no answer.
        final: gives an answer with what there is, out of the partial context. It is called once,
            where a limit or a deadlock ended the run; what it gives is the output, without success.
            A hook that raises is logged, and gives None.
        escalate: who is asked about irreversible calls in this run, and whether it may go on, in
            place of the setting.
        escalate_timeout_s: after how many seconds no answer is a no.

    Returns:
        How it ended; each field is set.

    Raises:
        ValueError: a limit is below 0, or no number.
    """
    limits = Limits(max_iterations, max_seconds, max_tokens, max_cost)
    loop = GuardedLoop(step, limits, partial_context=partial_context, final=final)
    asker = None if escalate is None else Asker(escalate, escalate_timeout_s)
    return drive.call(_open(name, loop, asker) or drive.NO_SCOPE, loop.run)


async def run_guarded_async(
    step: Callable[[Progress], Awaitable[object]],
    *,
    name: str = "agent",
    max_iterations: int | None = 10,
    max_seconds: float | None = None,
    max_tokens: int | None = None,
    max_cost: float | None = None,
    partial_context: Callable[[Progress], object] | None = None,
    final: Callable[[Any], object] | None = None,
    escalate: Escalate | None = None,
    escalate_timeout_s: float = TIMEOUT_S,
) -> AgentResult:
    """`run_guarded` for async steps; hooks may be async too.

    A step that is under way when the time of the run is up is cancelled. Hooks are not. The run's
    own task may be cancelled at any time: that passes. All else is as with `run_guarded`.
    """
    limits = Limits(max_iterations, max_seconds, max_tokens, max_cost)
    loop = GuardedLoop(step, limits, partial_context=partial_context, final=final)
    asker = None if escalate is None else Asker(escalate, escalate_timeout_s)
    return await drive.await_(_open(name, loop, asker) or drive.NO_SCOPE, loop.run_async)


class _Listener:
    """Hears of a guarded run for its loop."""

    def __init__(self, loop: GuardedLoop, asker: Asker | None) -> None:
        self._loop = loop
        self.asker = asker

    def hear(self, seen: Observation, *, own: bool) -> None:
        if seen.step.kind is Kind.MODEL and seen.counted:
            self._loop.progress.used(tokens=seen.step.tokens)
        for spoken in seen.utterances:
            self._loop.hear(spoken.finding, own=own)


class _GuardedScope:
    """The agent run that a guarded loop is."""

    def __init__(
        self, pipeline: Pipeline, scope: AgentScope, loop: GuardedLoop, listener: _Listener
    ) -> None:
        self._pipeline, self._scope = pipeline, scope
        pipeline.listeners[scope.run.id] = listener
        if listener.asker is not None:
            pipeline.guard.decides = True
        loop.before_final = guarded("last answer of a guarded run")(self._relent)

    @property
    def context(self) -> Context:
        return self._scope.context

    @guarded("end of a guarded run")
    def finish(self, result: object = None, /) -> None:
        self._pipeline.listeners.pop(self._scope.run.id, None)
        if not isinstance(result, AgentResult):
            return
        stop, error, failure = result.stop_reason, result.error, None
        if error is not None:
            failure = error_type(error)
        elif stop is StopReason.DEADLOCK:
            failure = stop.value
        self._scope.finish(result.output, failure=failure, reason=_REASONS.get(stop, stop.value))

    def fail(self, error: BaseException, /) -> None:
        self._pipeline.listeners.pop(self._scope.run.id, None)
        self._scope.fail(error)

    def _relent(self) -> None:
        """The run is over but for its last answer: what is left to do is not in a loop."""
        self._pipeline.guard.relent(self._scope.run.id)


@guarded("start of a guarded run")
def _open(name: str, loop: GuardedLoop, asker: Asker | None) -> _GuardedScope | None:
    wired = wiring.current()
    scope = None if wired is None else open_agent(wired.pipeline, name)
    if wired is None or scope is None:
        return None
    return _GuardedScope(wired.pipeline, scope, loop, _Listener(loop, asker))
