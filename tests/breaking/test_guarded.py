"""The guarded loop, whatever its step does: it ends as its limits say, and the result is whole."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from otel_loopguard.breaking.deadline import LateError, within
from otel_loopguard.breaking.guarded import MAX_FINDINGS, Done, GuardedLoop, Progress
from otel_loopguard.breaking.limits import AgentResult, Limits, StopReason
from otel_loopguard.core.decision import DeadlockError
from otel_loopguard.core.model import Finding, Pattern, Severity

if TYPE_CHECKING:
    from collections.abc import Callable


def finding(severity: Severity, repeats: int = 5) -> Finding:
    name = Pattern.HARD_LOOP
    return Finding(name, severity, "hard_loop:x", 1, repeats, "evidence", "inject_correction")


WARNING, CRITICAL = finding(Severity.WARNING), finding(Severity.CRITICAL)


class Clock:
    """Seconds that a test moves, in whatever direction."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Act:
    """What one step does, in this order."""

    seconds: float = 0.0
    tokens: int = 0
    cost: float = 0.0
    heard: tuple[tuple[Finding, bool], ...] = ()
    ends: str = "go on"


def wrapped(error: Exception) -> RuntimeError:
    try:
        raise RuntimeError("a framework's own") from error
    except RuntimeError as around:
        return around


ERRORS: dict[str, Callable[[], Exception]] = {
    "fails": lambda: ValueError("of the step"),
    "times out": asyncio.TimeoutError,
    "stops": StopIteration,
    "deadlock": lambda: DeadlockError(CRITICAL, "id", "run"),
    "wrapped deadlock": lambda: wrapped(DeadlockError(CRITICAL, "id", "run")),
    "unanswered": lambda: DeadlockError(CRITICAL, "id", "run", "escalation_timeout"),
}
REASONS = {
    "deadlock": StopReason.DEADLOCK,
    "wrapped deadlock": StopReason.DEADLOCK,
    "unanswered": StopReason.ESCALATION_TIMEOUT,
}
ENDS = st.sampled_from(["go on", "go on", "go on", "done", "answer", *ERRORS])
ACTS = st.builds(
    Act,
    seconds=st.integers(-50, 50),
    tokens=st.integers(0, 50),
    cost=st.floats(0, 1),
    heard=st.lists(
        st.tuples(st.sampled_from([WARNING, WARNING, CRITICAL]), st.booleans()), max_size=2
    ).map(tuple),
    ends=ENDS,
)
LIMITS = st.builds(
    Limits,
    iterations=st.none() | st.integers(0, 6),
    seconds=st.none() | st.integers(0, 100),
    tokens=st.none() | st.integers(0, 100),
    cost=st.none() | st.floats(0, 3),
)


@dataclass
class Model:
    """The rules in the plainest form: what has to come of what steps do."""

    limits: Limits
    clock: Clock
    steps: int = 0
    tokens: int = 0
    cost: float = 0.0
    elapsed: float = 0.0
    critical: bool = False
    heard: list[Finding] = field(default_factory=list)
    stop: StopReason | None = None

    def __post_init__(self) -> None:
        self.start = self.clock.now

    def tick(self) -> None:
        self.elapsed = max(self.elapsed, self.clock.now - self.start)

    def may_begin(self) -> bool:
        self.tick()
        limits = self.limits
        if self.stop is None and self.critical:
            self.stop = StopReason.DEADLOCK
        if self.stop is None and limits.iterations is not None and self.steps >= limits.iterations:
            self.stop = StopReason.MAX_ITERATIONS
        used = (
            (self.elapsed, limits.seconds),
            (self.tokens, limits.tokens),
            (self.cost, limits.cost),
        )
        if self.stop is None and any(most is not None and now >= most for now, most in used):
            self.stop = StopReason.BUDGET
        if self.stop is None:
            self.steps += 1
        return self.stop is None

    def take(self, act: Act) -> None:
        self.tokens += act.tokens
        self.cost += act.cost
        for each, own in act.heard:
            self.heard.append(each)
            self.critical |= own and each.severity is Severity.CRITICAL
        if act.ends == "done":
            self.stop = StopReason.COMPLETED
        elif act.ends == "answer":
            self.stop = StopReason.ERROR
        elif act.ends in ERRORS:
            self.stop = REASONS.get(act.ends, StopReason.ERROR)
            if act.ends in REASONS and CRITICAL not in self.heard:
                self.heard.append(CRITICAL)

    def check(self, result: AgentResult) -> None:
        assert result.stop_reason is self.stop
        assert result.success is (self.stop is StopReason.COMPLETED)
        assert result.iterations_used == self.steps
        assert result.findings == tuple(self.heard)
        assert result.execution_time >= 0
        assert result.execution_time == pytest.approx(self.elapsed)
        forced = self.stop in {StopReason.MAX_ITERATIONS, StopReason.DEADLOCK, StopReason.BUDGET}
        output = "answer" if result.success else "so far" if forced else None
        assert result.output == output
        assert result.partial_context == (None if result.success else ("context", self.steps))
        assert (result.error is None) or self.stop not in {StopReason.COMPLETED, StopReason.BUDGET}
        assert (result.error is not None) or self.stop is not StopReason.ERROR


def do(act: Act, clock: Clock, loop: GuardedLoop) -> object:
    clock.now += act.seconds
    loop.progress.used(tokens=act.tokens, cost=act.cost)
    for each, own in act.heard:
        loop.hear(each, own=own)
    if act.ends in ERRORS:
        error = ERRORS[act.ends]()
        raise error
    return {"go on": None, "done": Done("answer"), "answer": "answer"}[act.ends]


@given(LIMITS, st.lists(ACTS, max_size=12))
def test_a_sync_loop_ends_as_the_rules_say(limits: Limits, acts: list[Act]) -> None:
    clock = Clock()
    model = Model(limits, clock)
    script = iter([*acts, Act(ends="done")])

    def step(progress: Progress) -> object:
        assert model.may_begin()
        assert progress.iteration == model.steps
        assert progress.is_last == (limits.iterations == model.steps)
        left = progress.seconds_left
        assert (left is None) == (limits.seconds is None)
        assert left is None or left >= 0
        act = next(script)
        model.take(act)
        return do(act, clock, loop)

    loop = GuardedLoop(
        step,
        limits,
        partial_context=lambda progress: ("context", progress.iteration),
        final=lambda partial: "so far" if partial else "no context",
        clock=clock,
    )
    result = loop.run()
    model.tick()
    assert not model.may_begin()
    model.check(result)


class TimeTravel(asyncio.SelectorEventLoop):
    """An event loop whose time is a test's clock, and that never waits."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        select = self._selector.select  # type: ignore[attr-defined]
        self._selector.select = lambda _timeout=None: select(0)  # type: ignore[attr-defined]

    def time(self) -> float:
        return self._clock.now


class Machine(RuleBasedStateMachine):
    """An async loop under way: what its step does next, what time does, who cancels it."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.events = TimeTravel(self.clock)
        self.acts: asyncio.Queue[Act] = asyncio.Queue()
        self.waiting = self.over = self.cancelled = False

    @initialize(limits=LIMITS, broken=st.booleans())
    def start(self, limits: Limits, broken: bool) -> None:
        self.model = Model(limits, self.clock)
        self.broken = broken

        async def step(progress: Progress) -> object:
            assert self.model.may_begin()
            assert progress.iteration == self.model.steps
            self.waiting = True
            left = progress.seconds_left
            self.due = None if left is None else self.clock.now + left
            try:
                act = await self.acts.get()
            except asyncio.CancelledError:
                if self.stubborn:
                    self.model.stop = StopReason.COMPLETED
                    return Done("answer")
                raise
            finally:
                self.waiting = False
            self.model.take(act)
            return do(act, self.clock, self.loop)

        async def final(partial: Any) -> str:
            await asyncio.sleep(0)
            if self.broken:
                raise ValueError("of the hook")
            return "so far"

        self.stubborn = False
        self.loop = GuardedLoop(
            step,
            limits,
            partial_context=lambda progress: ("context", progress.iteration),
            final=final,
            clock=self.clock,
        )
        self.task = self.events.create_task(self.loop.run_async())
        self.settle()

    def settle(self) -> None:
        """Let everything happen that can happen now."""

        async def turns() -> None:
            for _ in range(12):
                await asyncio.sleep(0)

        self.events.run_until_complete(turns())
        if self.task.done() and not self.over:
            self.over = True
            self.model.tick()

    @precondition(lambda self: self.waiting)
    @rule(act=ACTS)
    def act(self, act: Act) -> None:
        self.acts.put_nowait(act)
        self.settle()

    @precondition(lambda self: self.waiting)
    @rule(seconds=st.integers(-100, 100), stubborn=st.booleans())
    def time_passes(self, seconds: int, stubborn: bool) -> None:
        """While a step is under way; it may take no notice of being told to stop."""
        self.stubborn = stubborn
        self.clock.now += seconds
        late = self.due is not None and self.clock.now >= self.due
        self.settle()
        assert self.waiting is not late
        if late and not stubborn:
            self.model.stop = StopReason.BUDGET

    @precondition(lambda self: not self.waiting)
    @rule(seconds=st.integers(-100, 100))
    def nothing_comes_after_the_end(self, seconds: int) -> None:
        if self.model.stop is None and not self.cancelled:
            assert not self.model.may_begin()
        self.clock.now += seconds
        self.settle()
        assert self.task.done()

    @precondition(lambda self: self.waiting)
    @rule(late=st.booleans())
    def cancel(self, late: bool) -> None:
        """Somebody outside does not want the run any more, perhaps just when its time is up."""
        self.stubborn = False
        if late and hasattr(self.task, "uncancel"):  # Python 3.10 cannot tell the two apart
            self.clock.now += 1_000
        self.task.cancel()
        self.settle()
        assert self.task.cancelled()
        self.cancelled = True

    @invariant()
    def it_is_over_or_waits(self) -> None:
        if not hasattr(self, "task"):
            return
        assert self.task.done() != self.waiting

    def teardown(self) -> None:
        try:
            if hasattr(self, "task"):
                self.end()
        finally:
            self.events.close()

    def end(self) -> None:
        """Have it answer, if it is not over; then the result is whole."""
        if self.waiting:
            self.acts.put_nowait(Act(ends="done"))
            self.settle()
        if self.cancelled:
            return
        if self.model.stop is None:
            self.model.may_begin()
        result = self.task.result()
        forced = {StopReason.MAX_ITERATIONS, StopReason.DEADLOCK, StopReason.BUDGET}
        if self.broken and self.model.stop in forced:
            assert result.output is None
            result = replace(result, output="so far")
        self.model.check(result)


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=200, stateful_step_count=20)


def ended(step: Callable[[Progress], object], **more: Any) -> AgentResult:
    limits = more.pop("limits", Limits())
    return GuardedLoop(step, limits, **more).run()


def test_the_first_answer_ends_it() -> None:
    result = ended(lambda p: Done(f"found in {p.iteration}") if p.iteration == 3 else None)
    assert result == AgentResult(
        success=True,
        output="found in 3",
        iterations_used=3,
        stop_reason=StopReason.COMPLETED,
        execution_time=result.execution_time,
    )


def test_an_agent_that_never_answers_takes_ten_steps() -> None:
    result = ended(lambda _: None, final=lambda partial: f"out of {partial}")
    assert (result.stop_reason, result.iterations_used) == (StopReason.MAX_ITERATIONS, 10)
    assert (result.success, result.output) == (False, "out of None")


def test_what_a_step_raises_is_in_the_result_and_no_answer_is_forced() -> None:
    fault = ValueError("of the step")

    def fail(_: Progress) -> None:
        raise fault

    result = ended(fail, partial_context=lambda p: p.iteration, final=lambda _: "never")
    assert result.error is fault
    assert (result.output, result.partial_context) == (None, 1)


def test_an_answer_that_is_not_marked_as_one_is_an_error_and_not_ten_more_steps() -> None:
    result = ended(lambda _: "the answer")
    assert result.stop_reason is StopReason.ERROR
    assert "Done" in str(result.error)
    assert "the answer" not in str(result.error)


def test_an_async_step_needs_the_async_function() -> None:
    async def step(_: Progress) -> None:
        raise AssertionError

    result = ended(step)
    assert result.stop_reason is StopReason.ERROR
    assert "run_guarded_async" in str(result.error)


def test_hooks_that_raise_are_logged_by_class_and_leave_the_result_whole(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(_: object) -> object:
        raise KeyError("secret")

    with caplog.at_level(logging.WARNING):
        result = ended(lambda _: None, partial_context=fail, final=fail)
    assert result.stop_reason is StopReason.MAX_ITERATIONS
    assert (result.output, result.partial_context) == (None, None)
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2
    assert "KeyError" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize("leaving", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_what_is_no_exception_passes(leaving: type[BaseException]) -> None:
    def leave(_: Progress) -> None:
        raise leaving

    with pytest.raises(leaving):
        ended(leave)
    with pytest.raises(leaving):
        ended(lambda _: None, partial_context=leave)


def test_only_the_newest_findings_are_kept() -> None:
    loop = GuardedLoop(lambda _: Done(), Limits())
    for n in range(MAX_FINDINGS + 5):
        loop.hear(finding(Severity.WARNING, n), own=True)
    kept = loop.run().findings
    assert [each.repeats for each in kept] == list(range(5, MAX_FINDINGS + 5))


@pytest.mark.parametrize("odd", [{"tokens": -1}, {"cost": -0.5}, {"cost": float("nan")}])
def test_odd_reports_are_refused_and_count_nothing(odd: dict[str, Any]) -> None:
    progress = Progress(Limits(), Clock())
    with pytest.raises(ValueError, match="from 0 on"):
        progress.used(**odd)
    assert (progress.spent.tokens, progress.spent.cost) == (0, 0)


def test_what_a_step_sees_of_what_was_spent_is_not_the_account_itself() -> None:
    progress = Progress(Limits(), Clock())
    progress.spent.tokens = 99
    assert progress.spent.tokens == 0


def test_causes_without_end_are_not_followed_for_ever() -> None:
    def fail(_: Progress) -> None:
        one, other = ValueError("one"), ValueError("other")
        one.__cause__, other.__cause__ = other, one
        raise one

    assert ended(fail).stop_reason is StopReason.ERROR


# The deadline by itself


async def test_what_is_in_time_comes_out() -> None:
    assert await within(60, asyncio.sleep(0, "result")) == "result"
    assert await within(None, asyncio.sleep(0, "result")) == "result"
    with pytest.raises(ZeroDivisionError):
        await within(60, failing())


async def failing() -> None:
    await asyncio.sleep(0)
    raise ZeroDivisionError


async def test_what_is_late_is_cancelled_and_its_task_is_not() -> None:
    undone: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            undone.append("undone")

    with pytest.raises(LateError):
        await within(0.01, slow())
    assert undone == ["undone"]
    await asyncio.sleep(0)
    task = asyncio.current_task()
    assert task is not None
    assert getattr(task, "cancelling", int)() == 0


async def test_the_outer_of_two_deadlines_is_no_deadline_of_the_inner_one() -> None:
    async def inner() -> None:
        await within(60, asyncio.sleep(60))

    with pytest.raises(LateError):
        await within(0.01, inner())


async def test_who_takes_no_notice_gives_what_it_has() -> None:
    async def stubborn() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "all the same"
        return "never"

    assert await within(0.01, stubborn()) == "all the same"
    await asyncio.sleep(0)


async def test_a_cancellation_from_outside_is_one() -> None:
    task = asyncio.ensure_future(within(60, asyncio.sleep(60)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
