"""Cancels what takes too long, as `asyncio.timeout` does, which Python 3.10 does not have yet."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_T = TypeVar("_T")


class LateError(Exception):
    """The time was up."""


async def within(seconds: float | None, awaitable: Awaitable[_T]) -> _T:
    """Await something, in this very task, for some seconds at most.

    What it raises, and what it gives after all when it is told to stop, comes out of it. To cancel
    the task from outside cancels it.

    Args:
        seconds: how long; None for as long as it takes.
        awaitable: what is awaited.

    Raises:
        LateError: the time was up.
    """
    task = asyncio.current_task()
    if seconds is None or task is None:
        return await awaitable
    before = _cancellations(task)
    fired = False

    def fire() -> None:
        nonlocal fired
        fired = True
        task.cancel()

    timer = asyncio.get_running_loop().call_later(seconds, fire)
    try:
        return await awaitable
    except asyncio.CancelledError:
        if fired and _cancellations(task) <= before + 1:
            raise LateError from None
        raise
    finally:
        timer.cancel()
        if fired:
            _of(task, "uncancel")


def _cancellations(task: asyncio.Task[Any]) -> int:
    """How often a task was told to stop; Python 3.10 does not say."""
    return _of(task, "cancelling")


def _of(task: asyncio.Task[Any], name: str) -> int:
    method: Callable[[], int] = getattr(task, name, int)
    return method()
