"""A stuck agent pages somebody while it is stuck, once, and not a moment longer."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.e2e.agents import Agent, say
from tests.e2e.backends.collector import CONFIG
from tests.e2e.fleet import HEALTHY_AGENTS, STUCK_AGENTS, UTTERANCES
from tests.e2e.oncall import Fleet, Line, events, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from examples.scripted_model import ScriptedModel
    from tests.e2e.backends.jaeger import Jaeger
    from tests.e2e.backends.prometheus import Page
    from tests.figures import Figures

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

LIMIT_S = 10.0
EXPIRATION_S = 10
SLACK_S = 10
"""Scrape, evaluation and Alertmanager's group interval, twice over."""
RESOLUTION_S = 1
"""How finely the scrape that brought a series is looked for: it may be said that much too late."""


class Way(NamedTuple):
    """What leads to a page: the alert, its series, and what the agent sends to the collector."""

    alert: str
    series: str
    environment: dict[str, str]


WAYS = {
    "metrics": Way("AgentStuck", "loopguard_stuck_runs", {"OTEL_METRICS_EXPORTER": "otlp"}),
    "traces": Way("AgentDeadlockSeen", "loopguard_deadlock_events_total", {}),
    "logs": Way(
        "AgentDeadlockLogged",
        "loopguard_deadlock_logs_total",
        {"OTEL_LOGS_EXPORTER": "otlp", "OTEL_LOOPGUARD_EMIT": "span,log"},
    ),
}

DASHBOARD = json.loads((CONFIG / "grafana" / "loopguard.json").read_text())
WORKERS, RUNS, STUCK = 2, 100, 10


@pytest.fixture(scope="module")
def line(jaeger: Jaeger) -> Iterator[Line]:
    with ExitStack() as stack:
        yield Line.open(jaeger, stack, LOOPGUARD_EXPIRATION=f"{EXPIRATION_S}s")


@pytest.fixture(scope="module")
def fleet(line: Line) -> Iterator[Fleet]:
    """200 runs at once in two workers, of which 20 are stuck."""
    with Fleet("fleet", line.collector.otlp_http, WORKERS, RUNS, STUCK) as running:
        running.wait_until_stuck()
        yield running


@pytest.fixture(scope="module")
def stuck(line: Line, model: ScriptedModel) -> Iterator[dict[str, Agent]]:
    """An endless agent for each way, all at once."""
    with ExitStack() as running:
        agents = {way: _start(way, line, model) for way in WAYS}
        for agent in agents.values():
            running.callback(agent.stop)
        yield agents


def _start(way: str, line: Line, model: ScriptedModel) -> Agent:
    """Nothing but this way leads to a page: the spans, by which it is timed, may go past."""
    environment = {
        "OTEL_SERVICE_NAME": f"stuck-{way}",
        "OTEL_EXPORTER_OTLP_ENDPOINT": line.collector.otlp_http,
        **WAYS[way].environment,
    }
    if way != "traces":
        environment["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = f"{line.jaeger.otlp_http}/v1/traces"
    return Agent("openai_loop", "loop", line.jaeger, model, pause_s=0.5, **environment)


@pytest.mark.parametrize("way", WAYS)
def test_a_stuck_agent_pages_within_seconds(
    way: str, line: Line, stuck: dict[str, Agent], figures: Figures
) -> None:
    agent = stuck[way]
    assert eventually(lambda: line.pager.of(agent.service)), "nobody was paged"
    assert agent.is_alive
    (page,) = line.pager.of(agent.service)
    telling = events(line.jaeger, agent.service)
    first = min(s.end_s for s in telling if s.tags["loopguard.severity"] == "critical")
    _tell(line, figures, agent, way, first, page)
    assert page.receiver == "pager"
    assert [one["labels"]["alertname"] for one in page.alerts] == [WAYS[way].alert]
    assert "runbook" in page.alerts[0]["annotations"]


def test_the_exemplar_of_the_metric_leads_to_the_deadlock(
    line: Line, stuck: dict[str, Agent]
) -> None:
    counter = f'loopguard_deadlocks_total{{job="{stuck["metrics"].service}"}}'
    assert eventually(lambda: line.prometheus.exemplars(counter))
    found = [each["labels"] for each in line.prometheus.exemplars(counter)]
    telling = {(s.trace_id, s.span_id) for s in events(line.jaeger, stuck["metrics"].service)}
    assert {(labels["trace_id"], labels["span_id"]) for labels in found} <= telling


def test_a_killed_agent_is_soon_no_longer_stuck(
    line: Line, stuck: dict[str, Agent], figures: Figures
) -> None:
    agent = stuck["metrics"]
    agent.process.kill()
    killed_s = time.time()
    limit_s = EXPIRATION_S + SLACK_S
    assert eventually(lambda: line.pager.of(agent.service, "resolved"), limit_s)
    after_s = round(line.pager.of(agent.service, "resolved")[0].at_s - killed_s, 1)
    assert figures.add("from kill -9 to the end of the alert", after_s, "s", limit_s)


def _tell(line: Line, figures: Figures, agent: Agent, way: str, step_s: float, page: Page) -> None:
    """How long it took to each hop: the scrape that brought the series, the rule, the page."""
    of = f'{{job="{agent.service}",loopguard_severity="critical"}}'
    scrapes = f"min_over_time(timestamp({WAYS[way].series}{of} > 0)[5m:{RESOLUTION_S}s])"
    fired_s = datetime.fromisoformat(page.alerts[0]["startsAt"].replace("Z", "+00:00")).timestamp()
    hops = {
        "scrape": min(at_s for _, at_s in line.prometheus.query(scrapes)) - step_s,
        "rule": fired_s - step_s,
        "page": page.at_s - step_s,
    }
    say(f"{way}: " + ", ".join(f"{hop} {took_s:.1f} s" for hop, took_s in hops.items()))
    assert hops["scrape"] - RESOLUTION_S <= hops["rule"] <= hops["page"]
    for hop, took_s in hops.items():
        limit_s = LIMIT_S if hop == "page" else None
        assert figures.add(f"{way}: from the step to the {hop}", round(took_s, 2), "s", limit_s)


@pytest.mark.parametrize("series", ["loopguard_deadlocks_total", "loopguard_deadlock_events_total"])
def test_each_event_is_counted_once(series: str, line: Line, fleet: Fleet) -> None:
    expected = WORKERS * STUCK * UTTERANCES
    counted = f'{series}{{job="{fleet.service}"}}'
    assert comes_to(line, counted, expected)
    assert eventually(lambda: len(events(line.jaeger, fleet.service)) == expected)


def comes_to(line: Line, series: str, value: float) -> bool:
    """Whether the sum of some series is soon what it should be."""
    return eventually(lambda: line.prometheus.total(series) == value)


def test_deltas_count_the_same(line: Line) -> None:
    preference = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"
    with ExitStack() as running:
        fleets = [
            running.enter_context(
                Fleet(kind, line.collector.otlp_http, 2, 2, 2, **{preference: kind})
            )
            for kind in ("delta", "lowmemory")
        ]
        for fleet in fleets:
            fleet.wait_until_stuck()
        for fleet in fleets:
            counted = f'loopguard_deadlocks_total{{job="{fleet.service}"}}'
            stuck = f'loopguard_stuck_runs{{job="{fleet.service}"}}'
            expected = 2 * 2 * UTTERANCES
            assert comes_to(line, counted, expected)
            assert comes_to(line, stuck, 2 * 2)


def test_the_stuck_runs_of_all_workers_are_counted(line: Line, fleet: Fleet) -> None:
    stuck = f'loopguard_stuck_runs{{job="{fleet.service}"}}'
    assert comes_to(line, stuck, WORKERS * STUCK)
    by_agent = {
        labels["gen_ai_agent_name"]: value
        for labels, value in line.prometheus.query(f"sum by (gen_ai_agent_name) ({stuck})")
    }
    assert by_agent == {agent: WORKERS * STUCK / len(STUCK_AGENTS) for agent in STUCK_AGENTS}
    watched, tools = (
        line.prometheus.total(f'loopguard_{name}_total{{job="{fleet.service}"}}')
        for name in ("watched_tool_spans", "tool_spans")
    )
    assert watched == tools > 0


def test_the_dashboard_shows_what_there_is(
    line: Line, fleet: Fleet, stuck: dict[str, Agent]
) -> None:
    per_agent = WORKERS * STUCK / len(STUCK_AGENTS)
    assert shown(line, "Stuck now", fleet.service) == dict.fromkeys(STUCK_AGENTS, per_agent)
    in_all = {"hard_loop": WORKERS * STUCK * UTTERANCES}
    assert eventually(lambda: shown(line, "Deadlocks by pattern", fleet.service) == in_all)
    agent = stuck["metrics"]
    told = [event for span in events(line.jaeger, agent.service) for event in span.events]
    # The last report may not have reached the metrics before the agent was killed.
    wasted = {event["loopguard.wasted_tokens"] for event in told}
    assert set(shown(line, "Tokens wasted", agent.service).values()) <= wasted
    assert max(wasted) > 0


def shown(line: Line, title: str, service: str, number: int = 0) -> dict[str, float]:
    """What a query of a panel gives, by its one label."""
    (panel,) = [each for each in DASHBOARD["panels"] if each["title"] == title]
    query = panel["targets"][number]["expr"]
    for name, value in {"$service": service, "$__range": "1h", "$budget": "25"}.items():
        query = query.replace(name, value)
    return {next(iter(of.values()), ""): value for of, value in line.prometheus.query(query)}


def test_many_stuck_runs_are_one_page_for_each_agent_and_end_with_them(
    line: Line, fleet: Fleet
) -> None:
    assert eventually(lambda: len(groups(line, fleet, "firing")) == len(STUCK_AGENTS))
    fleet.end()
    assert eventually(lambda: len(groups(line, fleet, "resolved")) == len(STUCK_AGENTS))
    pages = line.pager.of(fleet.service)
    agents = sorted(page.labels["gen_ai_agent_name"] for page in pages)
    assert agents == sorted(STUCK_AGENTS), "one page for each agent"
    assert not {agent for agent in agents if agent in HEALTHY_AGENTS}
    assert {page.receiver for page in pages} == {"pager"}


def groups(line: Line, fleet: Fleet, status: str) -> set[str]:
    return {page.group for page in line.pager.of(fleet.service, status)}


def test_the_dashboard_shows_the_runs_that_ended(line: Line, fleet: Fleet) -> None:
    per_agent = WORKERS * STUCK / len(STUCK_AGENTS)
    health = [shown(line, "Health by agent", fleet.service, number) for number in range(1, 4)]
    deadlocks, ended, ended_stuck = health
    for agent in STUCK_AGENTS:
        assert deadlocks[agent] == per_agent * UTTERANCES
        assert ended[agent] == ended_stuck[agent] == per_agent
    assert set(ended_stuck) == set(STUCK_AGENTS)
    assert sum(ended.values()) == WORKERS * RUNS
    length = shown(line, "Loop length", fleet.service)
    assert set(length) == set(STUCK_AGENTS)
    assert all(10 < rounds <= 25 for rounds in length.values()), "the bucket that holds 12"
    assert set(shown(line, "Iterations against budget", fleet.service)) == set(ended)
    assert shown(line, "Iterations against budget", fleet.service, 1) == {"": 25}
