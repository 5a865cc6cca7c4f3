"""Many calls in one long run, and the memory of the process: `flood.py CALLS`.

Prints the resident memory in MiB after a third of the calls, and after all of them; then, when a
line comes in, it ends.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import otel_loopguard as loopguard

WORDS = 400
"""How long a result is; nothing of it may be kept."""


@loopguard.tool
def read(page: int) -> str:
    """Another page each time, and each tenth time the same."""
    number = 0 if page % 10 == 0 else page
    return " ".join(f"{number}-{word}" for word in range(WORDS))


def resident_mib() -> float:
    """What the process holds now."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    """Call, and tell."""
    calls = int(sys.argv[1])
    with loopguard.run("reader"):
        for page in range(calls):
            read(page)
            if page == calls // 3:
                print(resident_mib(), flush=True)
        print(resident_mib(), flush=True)
        sys.stdin.readline()
    os._exit(0)  # what waits for a backend that is away would be tried for a while yet


if __name__ == "__main__":
    main()
