"""Many healthy runs at once, with the alerts on: nobody is paged, however long they work."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.e2e.agents import say
from tests.e2e.oncall import Fleet, Line, events, eventually

if TYPE_CHECKING:
    from tests.e2e.backends.jaeger import Jaeger

SOAK_S = int(os.environ.get("SOAK", "20"))
"""How long they work; `make e2e SOAK=300` takes five minutes over it."""

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(SOAK_S + 180)]

WORKERS, RUNS = 2, 60


def test_nobody_is_paged_for_agents_that_page_poll_and_try_again(jaeger: Jaeger) -> None:
    with ExitStack() as running:
        line = Line.open(jaeger, running)
        fleet = running.enter_context(
            Fleet("healthy", line.collector.otlp_http, WORKERS, RUNS, 0, SOAK_S=str(SOAK_S))
        )
        fleet.wait_until_stuck()
        ended = 'sum(loopguard_iterations_count{job="healthy"})'
        assert eventually(lambda: line.prometheus.total(ended) >= WORKERS * RUNS)
        say(f"{line.prometheus.total(ended):.0f} healthy runs in {SOAK_S} s, nobody paged")
        for series in ("deadlocks_total", "deadlock_events_total", "stuck_runs"):
            assert not line.prometheus.total(f'loopguard_{series}{{job="healthy"}}'), series
        assert not line.prometheus.query("ALERTS")
        assert not line.pager.pages
        assert not events(jaeger, "healthy")
