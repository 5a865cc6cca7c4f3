"""The work of one scan, shared by several processes.

Each reads all files and splits them into spans, which is quick; each case and each trace is decoded
and judged by one of them.
"""

from __future__ import annotations

import multiprocessing
from collections import Counter
from queue import Empty
from typing import TYPE_CHECKING, Final

from otel_loopguard.cli.scan import Scan, Totals
from otel_loopguard.cli.sources import Broken, Share, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.queues import Queue

    from otel_loopguard.cli.scan import Item
    from otel_loopguard.dialects.archives import Form
    from otel_loopguard.settings import Settings

_WAITING: Final = 1_000
"""How many items wait for the process that shows them."""


def in_shares(
    names: Sequence[str],
    form: Form | None,
    jobs: int,
    settings: Settings,
    tick: Callable[[int], object],
) -> Iterator[Item]:
    """What `Scan.read` gives, in another order.

    Args:
        names: the files.
        form: what they hold; by content if None.
        jobs: how many processes.
        settings: those of the guard.
        tick: hears of how many bytes were read.
    """
    context = multiprocessing.get_context("spawn")
    queue: Queue[Item | int] = context.Queue(_WAITING)
    workers = [
        context.Process(
            target=_work, args=(names, form, Share(part, jobs), settings, queue), daemon=True
        )
        for part in range(jobs)
    ]
    for worker in workers:
        worker.start()
    scopes: Counter[str] = Counter()
    ended = told = 0
    try:
        while ended < jobs:
            try:
                item = queue.get(timeout=1)
            except Empty:
                if any(worker.exitcode for worker in workers):
                    yield Broken(", ".join(names), 0, "a process of the scan was stopped")
                    return
                continue
            if isinstance(item, int):
                tick(item)
            elif isinstance(item, Totals):
                ended, told = ended + 1, told + item.told
                scopes.update(item.scopes)
            else:
                yield item
        yield Totals(scopes, told)
    finally:
        for worker in workers:
            worker.terminate()
            worker.join()


def _work(
    names: Sequence[str],
    form: Form | None,
    share: Share,
    settings: Settings,
    queue: Queue[Item | int],
) -> None:
    """What one of the processes does."""
    tick = queue.put if share.part == 0 else None
    for item in Scan(settings, share).read(Source(name, form, share, tick) for name in names):
        queue.put(item)
    queue.close()
    queue.join_thread()
