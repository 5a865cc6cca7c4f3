"""Asking a human whether something may be done, or a run may go on. No answer is a no."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from contextvars import copy_context
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, TypeVar

from otel_loopguard.breaking.questions import TIMEOUT_S, Escalate, Request, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger("otel_loopguard")

_LOOK_S: Final = 0.5
"""How often who waits looks whether the program is about to end."""
_T = TypeVar("_T")


async def escalate(request: Request, ask: Escalate, *, timeout_s: float = TIMEOUT_S) -> Verdict:
    """Ask a human and wait for the answer.

    Only the answer True is a yes. Nothing that the callback does reaches the agent: one that raises
    is logged by the class of its exception and counts as a no. A cancellation from outside goes on.

    Args:
        request: what is to be decided.
        ask: tells somebody and waits.
        timeout_s: after how many seconds no answer is a no.
    """
    try:
        answer = await asyncio.wait_for(_asked(ask, request), timeout_s)
    except asyncio.TimeoutError:
        return Verdict.TIMEOUT
    except Exception as fault:  # noqa: BLE001 - a callback of somebody else; logged
        logger.warning("otel_loopguard: an escalation failed (%s)", type(fault).__name__)
        return Verdict.ERROR
    return Verdict.APPROVED if answer is True else Verdict.REFUSED


async def _asked(ask: Escalate, request: Request) -> object:
    """What the callback says; its own time-out is a failure of it, not ours."""
    try:
        return await ask(request)
    except asyncio.TimeoutError as fault:
        raise RuntimeError("timed out by itself") from fault


def escalate_sync(request: Request, ask: Escalate, *, timeout_s: float = TIMEOUT_S) -> Verdict:
    """Ask a human from code that is not async, and block until the answer; like `escalate`.

    The callback runs in an event loop of its own, in a thread that keeps no program from ending. A
    program that ends meanwhile has got a no.
    """
    answers: SimpleQueue[Verdict] = SimpleQueue()
    context = copy_context()

    def work() -> None:
        verdict = Verdict.ERROR
        try:
            verdict = context.run(asyncio.run, escalate(request, ask, timeout_s=timeout_s))
        finally:
            answers.put(verdict)

    try:
        threading.Thread(target=work, name="loopguard-escalation", daemon=True).start()
    except RuntimeError:  # the interpreter is about to end
        return Verdict.ERROR
    over = time.monotonic() + timeout_s
    while (left := over - time.monotonic()) > 0 and threading.main_thread().is_alive():
        with contextlib.suppress(Empty):
            return answers.get(timeout=min(left, _LOOK_S))
    return Verdict.TIMEOUT if left <= 0 else Verdict.ERROR


def terminal(
    *, read: Callable[[str], str] = input, yes: frozenset[str] = frozenset({"y", "yes"})
) -> Escalate:
    """Asks on the terminal; anything but a yes is a no.

    Args:
        read: shows a prompt and returns a line.
        yes: the answers that are a yes, in lower case.
    """

    async def ask(request: Request, /) -> bool:
        who = f"{request.agent} ({request.run_id})" if request.agent else request.run_id
        what = "go on" if request.tool is None else f"call {request.tool}"
        prompt = f"{request.evidence}\nMay {who} {what}? [y/N] "
        line = await in_thread(lambda: read(prompt))
        return line.strip().lower() in yes

    return ask


async def in_thread(function: Callable[[], _T]) -> _T:
    """Run what blocks in a thread of its own, which holds nobody up at the program's end."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_T] = loop.create_future()

    def settle(set_: Callable[[], None]) -> None:
        if not done.done():
            set_()

    def work() -> None:
        try:
            result = function()
        except Exception as fault:  # noqa: BLE001 - handed to whoever waits
            finish = partial(done.set_exception, fault)
        else:
            finish = partial(done.set_result, result)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, finish)

    threading.Thread(target=work, name="loopguard-escalation", daemon=True).start()
    return await done
