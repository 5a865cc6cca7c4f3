"""A circuit breaker for one tool: after failures in a row it is left alone for a while."""

from __future__ import annotations

import random
import threading
import time
from enum import Enum
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_P = ParamSpec("_P")
_R = TypeVar("_R")
_LONGEST: Final = 10
"""The cool-down grows up to so many times its first length."""


class State(str, Enum):
    """Whether calls get through: all, none, or one to try whether the tool works again."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class BreakerOpenError(RuntimeError):
    """The call was not made; `retry_after_s` says in how many seconds one may be tried."""

    def __init__(self, retry_after_s: float) -> None:
        super().__init__(f"the tool failed too often; try again in {retry_after_s:.1f} s")
        self.retry_after_s = retry_after_s


class CircuitBreaker:
    """Closed until a tool fails `failures` times in a row, then open for a cool-down.

    After the cool-down one call is let through (half-open): if it works the breaker closes, if it
    fails the breaker opens again for twice as long, up to ten times `cool_down_s`. Thread-safe.

    Args:
        failures: failures in a row that open it; at least 1.
        cool_down_s: how long it stays open the first time, in seconds.
        jitter: the share of the cool-down by which it is drawn shorter or longer, 0 to 1, so that
            many agents do not all come back at once.
        clock: seconds that only grow. One that jumps back makes the cool-down begin anew.
        draw: a random number from 0 to 1.

    Raises:
        ValueError: a number is out of its range.
    """

    def __init__(
        self,
        *,
        failures: int = 3,
        cool_down_s: float = 30.0,
        jitter: float = 0.2,
        clock: Callable[[], float] = time.monotonic,
        draw: Callable[[], float] = random.random,
    ) -> None:
        if failures < 1 or cool_down_s < 0 or not 0 <= jitter <= 1:
            raise ValueError("failures >= 1, cool_down_s >= 0 and jitter from 0 to 1 are needed")
        self._limit, self._first_s, self._jitter = failures, cool_down_s, jitter
        self._clock, self._draw = clock, draw
        self._lock = threading.Lock()
        self._failed = 0
        self._length_s = cool_down_s  # of the next time that it opens
        self._opened: float | None = None
        self._wait_s = 0.0
        self._trying = False

    @property
    def state(self) -> State:
        """What a call would meet now."""
        with self._lock:
            if self._opened is None:
                return State.CLOSED
            return State.HALF_OPEN if self._trying or self._left() <= 0 else State.OPEN

    @property
    def retry_after_s(self) -> float:
        """In how many seconds a call may be tried; 0 if one may now."""
        with self._lock:
            return 0.0 if self._opened is None else max(0.0, self._left())

    def allow(self) -> bool:
        """Whether a call may be made now. Who is told yes says afterwards how it went."""
        with self._lock:
            if self._opened is None:
                return True
            if self._trying or self._left() > 0:
                return False
            self._trying = True
            return True

    def succeeded(self) -> None:
        """A call went well."""
        with self._lock:
            self._failed, self._opened, self._trying = 0, None, False
            self._length_s = self._first_s

    def failed(self) -> None:
        """A call failed."""
        with self._lock:
            self._failed += 1
            if self._trying or (self._opened is None and self._failed >= self._limit):
                self._open()

    def abandoned(self) -> None:
        """A call that was allowed came to no end (it was cancelled): it says nothing."""
        with self._lock:
            self._trying = False

    def call(self, function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Call a function through the breaker. An exception of it is a failure.

        Raises:
            BreakerOpenError: the breaker is open; the function was not called.
        """
        if not self.allow():
            raise BreakerOpenError(self.retry_after_s)
        try:
            result = function(*args, **kwargs)
        except Exception:
            self.failed()
            raise
        except BaseException:
            self.abandoned()
            raise
        self.succeeded()
        return result

    def _open(self) -> None:
        self._opened, self._trying = self._clock(), False
        self._wait_s = self._length_s * (1 + self._jitter * (2 * self._draw() - 1))
        self._length_s = min(2 * self._length_s, _LONGEST * self._first_s)

    def _left(self) -> float:
        """Seconds until a call may be tried."""
        now, opened = self._clock(), self._opened or 0.0
        if now < opened:  # the clock jumped back
            self._opened = opened = now
        return opened + self._wait_s - now
