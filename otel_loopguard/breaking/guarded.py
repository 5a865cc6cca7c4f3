"""A loop with hard limits around a step of somebody else: it always ends, and says how."""

from __future__ import annotations

import inspect
import logging
import threading
import time
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from otel_loopguard.breaking.deadline import LateError, within
from otel_loopguard.breaking.limits import AgentResult, Limits, Spent, StopReason
from otel_loopguard.core.decision import UNANSWERED, DeadlockError
from otel_loopguard.core.model import Severity

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from otel_loopguard.core.model import Finding

logger = logging.getLogger("otel_loopguard")

MAX_FINDINGS: Final = 64
_MAX_CAUSES: Final = 16
_FORCED: Final = frozenset({StopReason.MAX_ITERATIONS, StopReason.DEADLOCK, StopReason.BUDGET})
"""Where there may be an answer with what there is."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a step returns to end its run: the answer."""

    output: object = None


class Progress:
    """How far a guarded run is: what its step is given, each time the same object.

    Attributes:
        limits: what the run may use up.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        self.limits = limits
        self._clock, self._start = clock, clock()
        self._spent = Spent()
        self._findings: deque[Finding] = deque(maxlen=MAX_FINDINGS)
        self._lock = threading.Lock()

    @property
    def iteration(self) -> int:
        """The number of the step that is under way, from 1 on."""
        return self._spent.iterations

    @property
    def is_last(self) -> bool:
        """Whether no further step will be taken after this one, by the number of them."""
        limit = self.limits.iterations
        return limit is not None and self.iteration >= limit

    @property
    def seconds_left(self) -> float | None:
        """How long the run may still take; None for as long as it likes."""
        limit = self.limits.seconds
        return None if limit is None else max(0.0, limit - self.spent.seconds)

    @property
    def spent(self) -> Spent:
        """What the run has used up so far."""
        spent = self._spent
        # A clock that jumps back gives no time back.
        spent.seconds = max(spent.seconds, self._clock() - self._start)
        return replace(spent)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the guard has said of the run, oldest first; the newest 64."""
        return tuple(self._findings)

    def used(self, *, tokens: int = 0, cost: float = 0.0) -> None:
        """Say what a step has used up. Tokens of model calls that are watched count by themselves.

        Raises:
            ValueError: a number is below 0, or none at all.
        """
        if not (tokens >= 0 and cost >= 0):
            raise ValueError("tokens and cost have to be numbers from 0 on")
        with self._lock:
            self._spent.tokens += tokens
            self._spent.cost += cost

    def begin(self) -> None:
        """Another step is under way."""
        self._spent.iterations += 1

    def hear(self, finding: Finding) -> None:
        """The guard says something of the run."""
        self._findings.append(finding)


class GuardedLoop:
    """Takes steps until one gives an answer, or a limit is reached, or the run is in a deadlock.

    Args:
        step: takes one step: returns None to go on, `Done(answer)` to end. May be async where
            `run_async` is used.
        limits: what the run may use up.
        partial_context: makes something of a run that came to no answer.
        final: gives an answer with what there is, out of that.
        clock: seconds that only grow.

    Attributes:
        progress: how far it is.
        before_final: called before `final` is.
    """

    def __init__(
        self,
        step: Callable[[Progress], object],
        limits: Limits,
        *,
        partial_context: Callable[[Progress], object] | None = None,
        final: Callable[[Any], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.progress = Progress(limits, clock)
        self._step, self._partial_context, self._final = step, partial_context, final
        self.before_final: Callable[[], object] = lambda: None
        self._deadlocked = False
        self._stop: StopReason | None = None
        self._output: object = None
        self._partial: object = None
        self._error: Exception | None = None

    def hear(self, finding: Finding, *, own: bool) -> None:
        """The guard says something of the run, or of one nested in it, which does not end it."""
        self.progress.hear(finding)
        self._deadlocked |= own and finding.severity is Severity.CRITICAL

    def run(self) -> AgentResult:
        """Run to the end; whatever the step and the hooks do but exit, there is a result."""
        while self._goes_on():
            self._stepped()
        if self._stop is not StopReason.COMPLETED:
            self._partial = self._called(self._partial_context, self.progress)
            if self._stop in _FORCED:
                self.before_final()
                self._output = self._called(self._final, self._partial)
        return self._result()

    async def run_async(self) -> AgentResult:
        """The same with async steps and hooks; a step is cancelled when the run's time is up."""
        while self._goes_on():
            await self._stepped_async()
        if self._stop is not StopReason.COMPLETED:
            self._partial = await self._awaited(self._partial_context, self.progress)
            if self._stop in _FORCED:
                self.before_final()
                self._output = await self._awaited(self._final, self._partial)
        return self._result()

    def _stepped(self) -> None:
        try:
            returned = self._step(self.progress)
        except Exception as error:  # noqa: BLE001 - handed to the application in the result
            self._failed(error)
        else:
            self._took(returned)

    async def _stepped_async(self) -> None:
        async def step() -> object:
            returned = self._step(self.progress)
            return await returned if inspect.isawaitable(returned) else returned

        try:
            returned = await within(self.progress.seconds_left, step())
        except LateError:
            self._stop = StopReason.BUDGET
        except Exception as error:  # noqa: BLE001 - handed to the application in the result
            self._failed(error)
        else:
            self._took(returned)

    def _goes_on(self) -> bool:
        """Whether another step is taken."""
        if self._stop is None and self._deadlocked:
            self._stop = StopReason.DEADLOCK
        if self._stop is None:
            self._stop = self.progress.spent.beyond(self.progress.limits)
        if self._stop is not None:
            return False
        self.progress.begin()
        return True

    def _took(self, returned: object) -> None:
        if isinstance(returned, Done):
            self._stop, self._output = StopReason.COMPLETED, returned.output
        elif inspect.iscoroutine(returned):
            returned.close()
            self._failed(TypeError("an async step needs run_guarded_async"))
        elif returned is not None:
            kind = type(returned).__name__
            self._failed(TypeError(f"a step returns None to go on, or Done(answer), not {kind}"))

    def _failed(self, error: Exception) -> None:
        self._error, self._stop = error, StopReason.ERROR
        stopped = deadlock_in(error)
        if stopped is not None:
            if stopped.finding not in self.progress.findings:
                self.progress.hear(stopped.finding)
            unanswered = stopped.reason == UNANSWERED
            self._stop = StopReason.ESCALATION_TIMEOUT if unanswered else StopReason.DEADLOCK

    def _called(self, hook: Callable[[Any], object] | None, given: object) -> object:
        try:
            return None if hook is None else hook(given)
        except Exception as fault:  # noqa: BLE001 - a hook of somebody else; logged
            return _without(fault)

    async def _awaited(
        self, hook: Callable[[Any], object | Awaitable[object]] | None, given: object
    ) -> object:
        try:
            made = None if hook is None else hook(given)
            return await made if inspect.isawaitable(made) else made
        except Exception as fault:  # noqa: BLE001 - a hook of somebody else; logged
            return _without(fault)

    def _result(self) -> AgentResult:
        stop, progress = self._stop or StopReason.ERROR, self.progress
        return AgentResult(
            success=stop is StopReason.COMPLETED,
            output=self._output,
            iterations_used=progress.iteration,
            stop_reason=stop,
            findings=progress.findings,
            partial_context=self._partial,
            execution_time=progress.spent.seconds,
            error=self._error,
        )


def deadlock_in(error: BaseException) -> DeadlockError | None:
    """What stopped the run: the exception itself, or what a framework made its own of."""
    around: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if around is None or isinstance(around, DeadlockError):
            return around
        around = around.__cause__ or around.__context__
    return None


def _without(fault: Exception) -> None:
    logger.warning("otel_loopguard: a hook of a guarded run failed (%s)", type(fault).__name__)
