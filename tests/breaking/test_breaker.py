"""The circuit breaker, as a state machine beside a plain model of it."""

from __future__ import annotations

import asyncio
import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from otel_loopguard.breaking.breaker import BreakerOpenError, CircuitBreaker, State

FAILURES, COOL = 3, 10.0


class Clock:
    """Seconds that a test moves."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def broken(clock: Clock, **more: object) -> CircuitBreaker:
    """A breaker that has just opened."""
    breaker = CircuitBreaker(
        failures=FAILURES,
        cool_down_s=COOL,
        jitter=0.0,
        clock=clock,
        **more,  # type: ignore[arg-type]
    )
    for _ in range(FAILURES):
        assert breaker.allow()
        breaker.failed()
    return breaker


class Machine(RuleBasedStateMachine):
    """Calls, failures and time in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.breaker = CircuitBreaker(
            failures=FAILURES, cool_down_s=COOL, jitter=0.0, clock=self.clock
        )
        self.in_row = 0
        self.opened = 0.0
        self.wait_s = 0.0
        self.until: float | None = None
        self.length = COOL
        self.trying = False

    @rule(seconds=st.floats(0, 200))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule(seconds=st.floats(0, 500))
    def jump_back(self, seconds: float) -> None:
        """The cool-down begins anew where the clock is before its beginning."""
        self.clock.now -= seconds
        if self.until is not None and not self.trying and self.clock.now < self.opened:
            self.open(self.wait_s)

    def open(self, wait_s: float) -> None:
        self.opened, self.wait_s = self.clock.now, wait_s
        self.until = self.clock.now + wait_s

    @precondition(lambda self: self.until is None)
    @rule()
    def work(self) -> None:
        assert self.breaker.allow()
        self.breaker.succeeded()
        self.in_row = 0

    @precondition(lambda self: self.until is None)
    @rule()
    def fail(self) -> None:
        assert self.breaker.allow()
        self.breaker.failed()
        self.in_row += 1
        if self.in_row == FAILURES:
            self.open(COOL)

    @precondition(lambda self: self.until is None or (self.clock.now < self.until))
    @rule(leaving=st.sampled_from([ValueError, asyncio.CancelledError, KeyboardInterrupt, None]))
    def call(self, leaving: type[BaseException] | None) -> None:
        """A call through it: what it raises passes, and only an Exception is a failure."""

        def function() -> str:
            if leaving is not None:
                raise leaving
            return "result"

        if self.until is not None and not self.trying:
            with pytest.raises(BreakerOpenError) as refused:
                self.breaker.call(function)
            assert 0 < refused.value.retry_after_s <= self.wait_s
        elif self.until is None and leaving is None:
            assert self.breaker.call(function) == "result"
            self.in_row = 0
        elif self.until is None and leaving is not None:
            with pytest.raises(leaving):
                self.breaker.call(function)
            self.in_row += leaving is ValueError
            if self.in_row == FAILURES:
                self.open(COOL)

    @precondition(lambda self: self.until is not None and not self.trying)
    @rule(outcome=st.sampled_from(["works", "fails", "cancelled", "pending"]))
    def knock(self, outcome: str) -> None:
        assert self.until is not None
        allowed = self.breaker.allow()
        assert allowed == (self.clock.now >= self.until)
        if not allowed:
            return
        assert not self.breaker.allow(), "one trial at a time"
        self.trying = outcome == "pending"
        if outcome == "works":
            self.breaker.succeeded()
            self.until, self.in_row, self.length = None, 0, COOL
        elif outcome == "fails":
            self.breaker.failed()
            self.length = min(2 * self.length, 10 * COOL)
            self.open(self.length)
        elif outcome == "cancelled":
            self.breaker.abandoned()

    @precondition(lambda self: self.trying)
    @rule()
    def trial_works(self) -> None:
        self.breaker.succeeded()
        self.until, self.in_row, self.length, self.trying = None, 0, COOL, False

    @invariant()
    def says_its_state(self) -> None:
        if self.until is None:
            assert self.breaker.state is State.CLOSED
        elif self.trying or self.clock.now >= self.until:
            assert self.breaker.state is State.HALF_OPEN
        else:
            assert self.breaker.state is State.OPEN
            assert self.breaker.retry_after_s == pytest.approx(self.until - self.clock.now)


TestMachine = Machine.TestCase


def test_cool_downs_differ_between_agents_but_not_by_more_than_the_jitter() -> None:
    draw = random.Random(1).random
    waits: set[float] = set()
    for _ in range(50):
        breaker = CircuitBreaker(failures=1, cool_down_s=10, jitter=0.2, clock=Clock(), draw=draw)
        breaker.failed()
        waits.add(breaker.retry_after_s)
    assert len(waits) == 50
    assert 8 <= min(waits) < 9
    assert 11 < max(waits) <= 12


def test_a_clock_that_jumps_back_does_not_keep_the_tool_away_for_longer_than_a_cool_down() -> None:
    clock = Clock()
    breaker = broken(clock)
    clock.now -= 500
    assert not breaker.allow()
    assert breaker.retry_after_s == pytest.approx(COOL)
    clock.now += COOL
    assert breaker.allow()


def test_a_call_through_an_open_breaker_is_not_made() -> None:
    breaker = broken(Clock())
    called: list[int] = []
    with pytest.raises(BreakerOpenError) as refused:
        breaker.call(called.append, 1)
    assert called == []
    assert refused.value.retry_after_s == pytest.approx(COOL)


def test_a_function_that_raises_is_a_failure_and_its_exception_is_its_own() -> None:
    breaker = CircuitBreaker(failures=2, clock=Clock())
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            breaker.call(lambda: 1 / 0)
    assert breaker.state is State.OPEN
    assert CircuitBreaker().call(max, 1, 2) == 2


def test_a_cancelled_trial_leaves_room_for_the_next_one() -> None:
    clock = Clock()
    breaker = broken(clock)
    clock.now += COOL

    def cancelled() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        breaker.call(cancelled)
    assert breaker.allow()


def test_of_many_threads_one_makes_the_trial() -> None:
    clock = Clock()
    breaker = broken(clock)
    clock.now += COOL
    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(lambda _: breaker.allow(), range(64))) == 1


@pytest.mark.parametrize("odd", [{"failures": 0}, {"cool_down_s": -1}, {"jitter": 1.5}])
def test_odd_numbers_are_refused(odd: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="are needed"):
        CircuitBreaker(**odd)  # type: ignore[arg-type]
