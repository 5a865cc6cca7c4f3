"""The one thread of ours: it does what may block, so that the agent never waits for us."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from otel_loopguard.runtime import guarded

TICK_S: Final = 5.0
SETTLE_S: Final = 0.05
"""How long a span for whose sake a flush is asked may take to end and reach the exporter."""
FLUSH_GAP_S: Final = 1.0

Flush = Callable[[int], object]
"""A provider's `force_flush`: takes the time it may take, in milliseconds."""


class Daemon:
    """Flushes providers when asked, at most once a second, and calls back every five seconds.

    The thread is a daemon thread; it starts with the first request and again in a forked child.

    Attributes:
        runs: whether it was started.
    """

    def __init__(self) -> None:
        self._callbacks: list[Callable[[int], object]] = []
        self._reset()
        if hasattr(os, "register_at_fork"):  # pragma: no branch - not on Windows
            os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._wanted: dict[Flush, int] = {}
        self._thread: threading.Thread | None = None
        self.runs = False

    def every_tick(self, callback: Callable[[int], object]) -> None:
        """Call back with the time in nanoseconds, now and then, from the thread."""
        with self._lock:
            if callback not in self._callbacks:
                self._callbacks.append(callback)

    def forget(self, callback: Callable[[int], object]) -> None:
        """Do not call back any longer."""
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

    def flush(self, flush: Flush, timeout_ms: int) -> None:
        """Ask for a flush. Returns at once."""
        with self._lock:
            self._wanted[flush] = timeout_ms
        self.start()
        self._wake.set()

    def start(self) -> None:
        """Make sure that the thread runs."""
        if self._thread is not None:
            return
        with self._lock:
            if self._thread is None:
                self.runs = True
                self._thread = threading.Thread(
                    target=self._work, name="otel-loopguard", daemon=True
                )
                with suppress(RuntimeError):  # the interpreter is shutting down
                    self._thread.start()

    def _work(self) -> None:
        next_tick = time.monotonic() + TICK_S
        while True:
            if self._wake.wait(max(0.0, next_tick - time.monotonic())):
                time.sleep(SETTLE_S)
            self._wake.clear()
            flushed = self._flush_wanted()
            if time.monotonic() >= next_tick:
                next_tick = time.monotonic() + TICK_S
                for callback in tuple(self._callbacks):
                    guarded("periodic work")(callback)(time.time_ns())
            if flushed:
                time.sleep(FLUSH_GAP_S)

    def _flush_wanted(self) -> bool:
        with self._lock:
            wanted, self._wanted = self._wanted, {}
        for flush, timeout_ms in wanted.items():
            guarded("flush")(flush)(timeout_ms)
        return bool(wanted)


daemon: Final = Daemon()
