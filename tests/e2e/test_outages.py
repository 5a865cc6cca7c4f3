"""The collector dies and Jaeger is away: what was told of a deadlock is there in the end, once."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.e2e.agents import say
from tests.e2e.backends.jaeger import Jaeger
from tests.e2e.fleet import UTTERANCES
from tests.e2e.oncall import Fleet, Line, events, eventually

if TYPE_CHECKING:
    from tests.figures import Figures

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

RUNS = 10
AWAY_S = 2.0
"""How long the collector is away: the SDK of the agent tries again for ten seconds."""


def test_nothing_is_lost_when_jaeger_is_away_and_the_collector_dies(figures: Figures) -> None:
    with ExitStack() as running:
        jaeger = running.enter_context(Jaeger())
        line = Line.open(jaeger, running, LOOPGUARD_EXPIRATION="1m")
        fleet = running.enter_context(
            Fleet("unlucky", line.collector.otlp_http, 1, RUNS, RUNS, pause_s=0.5)
        )
        jaeger.stop()  # it remembers nothing of before
        told = 'loopguard_deadlock_events_total{job="unlucky"}'
        assert eventually(lambda: line.prometheus.total(told)), "some are in the queue by now"
        line.collector.kill()
        time.sleep(AWAY_S)
        assert line.collector.start()
        alone_s = fleet.wait_until_stuck()
        assert jaeger.start()
        expected = RUNS * UTTERANCES
        assert eventually(lambda: len(unique(jaeger, "unlucky")) >= expected, 60)
        twice = len(events(jaeger, "unlucky")) - expected
        say(f"{expected} events after a dead collector and an absent Jaeger, {twice} of them twice")
        figures.add("events that came twice after an outage", twice, "events")
        assert len(unique(jaeger, "unlucky")) == expected
        counter = 'loopguard_deadlocks_total{job="unlucky"}'
        assert eventually(lambda: line.prometheus.total(counter) == expected)

        calm = running.enter_context(
            Fleet("calm", line.collector.otlp_http, 1, RUNS, RUNS, pause_s=0.5)
        )
        ratio = alone_s / calm.wait_until_stuck()
        say(f"a call of the agent took {ratio:.2f} times as long meanwhile")
        figures.add("a call during an outage, beside one without", round(ratio, 2), "ratio")


def unique(jaeger: Jaeger, service: str) -> set[tuple[str, str]]:
    """One for each utterance, whatever was sent twice."""
    return {
        (event["loopguard.finding_id"], event["loopguard.report_no"])
        for span in events(jaeger, service)
        for event in span.events
    }


def test_what_cannot_be_kept_is_counted_and_alerted(jaeger: Jaeger) -> None:
    with ExitStack() as running:
        away = running.enter_context(Jaeger())
        line = Line.open(away, running, LOOPGUARD_QUEUE="2")
        away.stop()
        fleet = running.enter_context(Fleet("too-many", line.collector.otlp_http, 1, 20, 20))
        fleet.wait_until_stuck()
        dropped = 'ALERTS{alertname="LoopguardEventsDropped"}'
        assert eventually(lambda: line.prometheus.query(dropped), 60)
