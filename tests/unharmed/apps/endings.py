"""A decorated agent that is stuck, and then ends in one of many ways. It waits for a line first."""

from __future__ import annotations

import os
import signal
import sys
import threading

import otel_loopguard as loopguard

signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored around us


@loopguard.tool
def search(query: str) -> str:
    return f"nothing on {query}"


@loopguard.tool
def leave(code: int) -> None:
    sys.exit(code)


@loopguard.tool
def fork() -> int:
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    for _ in range(6):
        print("the child finds", search("chairs"), flush=True)
    sys.exit(3)


@loopguard.tool
def fork_and_go() -> int:
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    print("the child finds", search("chairs"), flush=True)
    os._exit(4)


@loopguard.tool
def wait() -> str:
    return input()


def handled(*_: object) -> None:
    search("tables")


def interrupted_often() -> None:
    """A signal handler that is a part of the agent breaks in wherever we are."""
    signal.signal(signal.SIGALRM, handled)
    signal.raise_signal(signal.SIGALRM)
    for _ in range(500):
        signal.setitimer(signal.ITIMER_REAL, 0.0005)
        search("chairs")
    signal.setitimer(signal.ITIMER_REAL, 0)


def in_threads() -> None:
    threads = [threading.Thread(target=lambda: search("chairs")) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def forked() -> None:
    print("the fork gave", fork(), flush=True)
    print("the other fork gave", fork_and_go(), flush=True)


def failed() -> None:
    raise ValueError("the agent fails")


def told() -> None:
    print("told", wait(), flush=True)


def gone() -> None:
    told()
    os._exit(7)


ENDINGS = {
    "return": lambda: None,
    "exit": lambda: leave(5),
    "raise": failed,
    "alarm": interrupted_often,
    "threads": in_threads,
    "fork": forked,
    "term": told,
    "interrupt": told,
    "os._exit": gone,
}


@loopguard.agent(name="shop")
def work(ending: str) -> str:
    for _ in range(6):
        print(search("chairs"), flush=True)
    ENDINGS[ending]()
    return "done"


if __name__ == "__main__":
    print(work(sys.argv[1]))
