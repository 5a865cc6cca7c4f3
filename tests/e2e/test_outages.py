"""The collector dies, Jaeger is away or slow, a queue is full: no deadlock is lost without being
counted, no memory fills up, and the agent does not wait."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.agents import say
from tests.e2e.backends.jaeger import Jaeger
from tests.e2e.backends.slow import Slow
from tests.e2e.fleet import REPEATS, UTTERANCES
from tests.e2e.oncall import (
    FLOOD,
    Fleet,
    Line,
    collector_before,
    doctor,
    events,
    eventually,
    findings,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.backends.collector import Collector
    from tests.figures import Figures

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

RUNS = 10
AWAY_S = 2.0
"""How long the collector is away: the SDK of the agent tries again for ten seconds."""
JAEGER_AWAY_S = 30.0
SLOW_S = 3.0
"""How long a slow backend takes for one request."""
LIMIT_MIB = 64
"""The collector's memory limit in the flood; beside that heap there are its program and stacks."""
CALLS = 20_000


@pytest.fixture(scope="module")
def calm(jaeger: Jaeger) -> Iterator[Collector]:
    """A collector to which nothing happens; who sends to it is what the others are beside."""
    with collector_before(jaeger) as running:
        yield running


def test_nothing_is_lost_when_jaeger_is_away_and_the_collector_dies(
    calm: Collector, figures: Figures
) -> None:
    with ExitStack() as running:
        jaeger = running.enter_context(Jaeger())
        line = Line.open(jaeger, running, LOOPGUARD_EXPIRATION="2m")
        pause_s = JAEGER_AWAY_S / REPEATS
        unlucky, lucky = (
            running.enter_context(Fleet(name, to.otlp_http, 1, RUNS, RUNS, pause_s=pause_s))
            for name, to in (("unlucky", line.collector), ("lucky", calm))
        )
        jaeger.stop()  # it remembers nothing of before
        away_since = time.monotonic()
        told = 'loopguard_deadlock_events_total{job="unlucky"}'
        assert eventually(lambda: line.prometheus.total(told)), "some are in the queue by now"
        line.collector.kill()
        time.sleep(AWAY_S)
        assert line.collector.start()
        tell_ratio("an outage", unlucky, lucky, figures)
        time.sleep(max(0.0, away_since + JAEGER_AWAY_S - time.monotonic()))
        assert jaeger.start()
        expected = RUNS * UTTERANCES
        assert eventually(lambda: len(unique(jaeger, "unlucky")) >= expected, 60)
        assert len(unique(jaeger, "unlucky")) == expected
        twice = len(events(jaeger, "unlucky")) - expected
        say(f"{expected} events after a dead collector and an absent Jaeger, {twice} of them twice")
        figures.add("events that came twice after an outage", twice, "events")
        counter = 'loopguard_deadlocks_total{job="unlucky"}'
        assert eventually(lambda: line.prometheus.total(counter) == expected)


def unique(jaeger: Jaeger, service: str) -> set[tuple[str, str, str]]:
    """One for each utterance on its span: what an exporter sent twice has the same span id."""
    return {
        (span.span_id, event["loopguard.finding_id"], event["loopguard.report_no"])
        for span in events(jaeger, service)
        for event in span.events
    }


def tell_ratio(what: str, unlucky: Fleet, lucky: Fleet, figures: Figures) -> None:
    """How long a call took beside the same at the same time where nothing was wrong."""
    ratio = unlucky.wait_until_stuck() / lucky.wait_until_stuck()
    say(f"a call took {ratio:.2f} times as long during {what}")
    figures.add(f"a call during {what}, beside one without", round(ratio, 2), "ratio")


def test_a_slow_backend_loses_nothing_and_slows_nobody(
    jaeger: Jaeger, calm: Collector, figures: Figures
) -> None:
    with ExitStack() as running:
        slow = running.enter_context(Slow(jaeger.otlp_http, SLOW_S))
        behind = running.enter_context(collector_before(jaeger, JAEGER_ENDPOINT=slow.url))
        fleets = {
            name: running.enter_context(
                Fleet(name, to, 1, RUNS, RUNS, OTEL_METRICS_EXPORTER="none")
            )
            for name, to in (
                ("slow-collector", behind.otlp_http),
                ("slow-endpoint", slow.url),
                ("quick", calm.otlp_http),
            )
        }
        tell_ratio(
            "the answers of a slow endpoint", fleets["slow-endpoint"], fleets["quick"], figures
        )
        for name in ("slow-collector", "slow-endpoint"):
            assert eventually(
                lambda name=name: len(unique(jaeger, name)) == RUNS * UTTERANCES, 60
            ), name
            assert len(events(jaeger, name)) == RUNS * UTTERANCES, "none of them twice"


def test_what_cannot_be_kept_is_counted_alerted_and_named(jaeger: Jaeger) -> None:
    with ExitStack() as running:
        away = running.enter_context(Jaeger())
        line = Line.open(away, running, LOOPGUARD_QUEUE="2")
        away.stop()
        fleet = running.enter_context(Fleet("too-many", line.collector.otlp_http, 1, 20, 20))
        fleet.wait_until_stuck()
        dropped = 'ALERTS{alertname="LoopguardEventsDropped"}'
        assert eventually(lambda: line.prometheus.query(dropped), 60)
        lost = line.prometheus.total("otelcol_exporter_enqueue_failed_spans")
        assert lost > 0
        report = doctor(line.collector.otlp_http, "--metrics", line.prometheus.url)
        assert not report["ok"]
        said = findings(report)["lost"]
        assert "otelcol_exporter_enqueue_failed_spans is" in said
        assert "exporter otlp_http/jaeger" in said


def test_memory_stays_bounded_while_the_backend_is_away(figures: Figures, tmp_path: Path) -> None:
    with ExitStack() as running:
        away = running.enter_context(Jaeger())
        collector = running.enter_context(
            collector_before(away, LOOPGUARD_MEMORY_MIB=str(LIMIT_MIB), LOOPGUARD_QUEUE="100")
        )
        away.stop()
        for name, to in (("collector", collector.otlp_http), ("nobody", away.otlp_http)):
            grown = flood(name, to, running)
            say(f"{CALLS} calls, and {name} there to take them: the agent grew by {grown:.1f} MiB")
            assert figures.add(f"memory of an agent, {name} there", round(grown, 1), "MiB", 16.0)
        most = collector.most_memory_mib()
        say(f"the collector held {most:.0f} MiB at most")
        assert figures.add("memory of the collector in a flood", round(most), "MiB", 5 * LIMIT_MIB)


def flood(service: str, endpoint: str, running: ExitStack) -> float:
    """How much the memory of an agent grew in the last two thirds of its many calls, in MiB."""
    tool = str(Path(sys.executable).with_name("opentelemetry-instrument"))
    process = subprocess.Popen(
        [tool, sys.executable, str(FLOOD), str(CALLS)],
        env={
            **os.environ,
            "OTEL_SERVICE_NAME": service,
            "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_LOGS_EXPORTER": "none",
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # the exporter says there that nobody takes its data
        text=True,
    )
    running.callback(process.wait)
    running.callback(process.kill)
    assert process.stdout is not None
    before, after = (float(process.stdout.readline()) for _ in range(2))
    process.communicate("\n", timeout=60)
    assert process.returncode == 0
    return after - before
