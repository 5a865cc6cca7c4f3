"""Stuck runs in the workers of a web server and of a pool of processes.

`gunicorn tests.e2e.workers:application` has one more stuck run with each request, and answers with
the process id of the worker. `workers.py WORKERS` spawns a pool of so many, has one stuck run in
each, prints their process ids, and ends when a line comes in.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from typing import TYPE_CHECKING

import otel_loopguard as loopguard
from tests.e2e.fleet import loop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Barrier = multiprocessing.synchronize.Barrier

AGENT = "finder"
PAUSE_S = 0.05
together: list[Barrier] = []


def get_stuck() -> int:
    """One more stuck run, which stays open until the process ends: the process id."""
    is_stuck = threading.Event()

    def run() -> None:
        with loopguard.run(AGENT):
            loop(0, PAUSE_S)
            is_stuck.set()
            threading.Event().wait()

    threading.Thread(target=run, daemon=True).start()
    is_stuck.wait()
    return os.getpid()


def application(_: object, start_response: Callable[..., object]) -> Iterable[bytes]:
    """A request."""
    start_response("200 OK", [("content-type", "text/plain")])
    return [str(get_stuck()).encode()]


def meet(barrier: Barrier) -> None:
    """What each worker of the pool begins with."""
    together.append(barrier)


def in_pool(_: int) -> int:
    """A task of the pool, of which each worker takes one."""
    together[0].wait()
    return get_stuck()


def main() -> None:
    """Spawn the pool."""
    workers = int(sys.argv[1])
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(workers)
    with context.Pool(workers, meet, (barrier,)) as pool:
        print(*pool.map(in_pool, range(workers), chunksize=1), flush=True)
        sys.stdin.readline()


if __name__ == "__main__":
    main()
