"""Many runs at once, as a service of several workers has them: `fleet.py WORKERS RUNS STUCK PAUSE`.

It forks the workers as a web server does. Each has RUNS runs at once; the first STUCK of them get
stuck, and stay so until a line comes in; the others page through results, poll a job or try again
until it works. Each stuck run makes `UTTERANCES` events. PAUSE is the seconds between two steps;
with EARLY_S in the environment a stuck run works for that long first, with SOAK_S the others begin
anew for that long. When all runs have done what they do, each worker prints the median of the
seconds that a call of a stuck run took.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import ExitStack, suppress
from statistics import median

from opentelemetry import trace

import otel_loopguard as loopguard

STUCK_AGENTS = ("finder", "writer")
HEALTHY_AGENTS = ("pager", "poller", "retrier")
REPEATS = 12
FOREIGN = "a span of another instrumentation"
EARLY_S = float(os.environ.get("EARLY_S", "0"))
EARLY_CALLS = 20
SOAK_S = float(os.environ.get("SOAK_S", "0"))
TOOK_S: list[float] = []
"""How long each call of a stuck run took, with all that is told of it."""
UTTERANCES = 3
"""At 3 repeats a warning, at 5 a critical one, at 10 again."""


@loopguard.tool
def search(query: str) -> str:
    """The same page for the same query."""
    return f"Page of results for {query}: nothing that was not there before."


@loopguard.tool
def status(job: str, tries: list[int]) -> str:
    """A job that takes a while."""
    tries[0] += 1
    return "done" if tries[0] > 5 else "pending"


@loopguard.tool
def price(item: str, tries: list[int]) -> str:
    """A service that fails once."""
    tries[0] += 1
    if tries[0] == 1:
        raise TimeoutError("try again")
    return f"{item} costs {len(item)}"


def loop(number: int, pause_s: float) -> None:
    """Repeat one call; then show a span of another instrumentation, while stuck."""
    for page in range(EARLY_CALLS if EARLY_S else 0):
        search(f"something else {number}, page {page}")
        time.sleep(EARLY_S / EARLY_CALLS)
    for _ in range(REPEATS):
        start = time.perf_counter()
        search(f"the same {number}")
        TOOK_S.append(time.perf_counter() - start)
        time.sleep(pause_s)
    trace.get_tracer("another").start_span(FOREIGN).end()


def work(number: int, pause_s: float) -> None:
    """Do something that looks a little like a loop and is none."""
    polled, tried = [0], [0]
    for page in range(REPEATS):
        if number % 3 == 0:
            search(f"page {page} of {number}")
        elif number % 3 == 1 and polled[0] <= 5:
            status(f"job {number}", polled)
        elif number % 3 == 2:
            if page % 4 == 0:
                tried[0] = 0
            with suppress(TimeoutError):
                price(f"item {page // 4} of {number}", tried)
        time.sleep(pause_s)


def run(
    number: int, stuck: int, pause_s: float, done: threading.Barrier, end: threading.Event
) -> None:
    """One run; it stays open until the end."""
    agents = STUCK_AGENTS if number < stuck else HEALTHY_AGENTS
    until = time.monotonic() + SOAK_S
    while number >= stuck and time.monotonic() < until:
        with loopguard.run(agents[number % len(agents)]):
            work(number, pause_s)
    with loopguard.run(agents[number % len(agents)]):
        (loop if number < stuck else work)(number, pause_s)
        done.wait()
        end.wait()


def worker(runs: int, stuck: int, pause_s: float, told: int) -> None:
    """All runs of one process; returns after the line."""
    done, end = threading.Barrier(runs + 1), threading.Event()
    with ExitStack() as running:
        for number in range(runs):
            thread = threading.Thread(target=run, args=(number, stuck, pause_s, done, end))
            thread.start()
            running.callback(thread.join)
        done.wait()
        # At once: the workers share the pipe, and what is written in two parts may be mixed up.
        os.write(1, f"{median(TOOK_S or [0.0])}\n".encode())
        os.read(told, 1)
        end.set()


def main() -> None:
    """Fork the workers, and pass the line on to them."""
    workers, runs, stuck = map(int, sys.argv[1:4])
    told, tell = os.pipe()
    children = []
    for _ in range(workers):
        child = os.fork()
        if not child:
            os.close(tell)
            worker(runs, stuck, float(sys.argv[4]), told)
            return  # an orderly end, as a worker's
        children.append(child)
    sys.stdin.readline()
    os.close(tell)
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
