"""The metrics: where their exemplars lead, how many names they know, and what they add up to."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace

import otel_loopguard
from otel_loopguard.core.model import (
    Finding,
    Kind,
    Pattern,
    RunEnd,
    Severity,
    Sighting,
    Stuck,
    StuckChange,
    Utterance,
)
from otel_loopguard.sdk import meters as module
from otel_loopguard.sdk.meters import Meters
from otel_loopguard.sdk.scope import Run
from otel_loopguard.settings import from_env
from tests.signals import Signals

CRITICAL = ("critical", "hard_loop")


@otel_loopguard.tool
def search(query: str) -> str:
    return "nothing found"


def exemplars(signals: Signals, metric: str) -> list[tuple[int | None, int | None]]:
    data = signals._reader.get_metrics_data()
    assert data is not None
    return [
        (exemplar.trace_id, exemplar.span_id)
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for each in scope.metrics
        if each.name == metric
        for point in each.data.data_points
        for exemplar in point.exemplars
    ]


def spoken(finding_id: str = "one", tokens: int = 0) -> Utterance:
    pattern, severity = Pattern.HARD_LOOP, Severity.CRITICAL
    finding = Finding(pattern, severity, "loop", 1, 5, "evidence", "stop", wasted_tokens=tokens)
    return Utterance(finding, finding_id, 1, 1)


def stuck(agent: str | None) -> Stuck:
    return Stuck(Pattern.HARD_LOOP, Severity.CRITICAL, agent)


def meters(signals: Signals, **settings: object) -> Meters:
    return Meters(from_env({}, **settings), signals.meter_provider)


def test_the_exemplars_of_the_counter_lead_to_the_spans_that_tell() -> None:
    signals = Signals()
    with signals.instrumented(), otel_loopguard.run("finder"):
        for _ in range(5):
            search("x")
        telling = {
            (span.context.trace_id, span.context.span_id) for span in signals.spans if span.events
        }
        assert len(telling) == 2
        assert set(exemplars(signals, "loopguard.deadlocks")) == telling


def test_where_a_marker_tells_the_exemplar_and_the_log_lead_to_the_marker() -> None:
    signals = Signals()
    pipeline = signals.pipeline(emit="span,metric,log")
    tracer = signals.tracer_provider.get_tracer("another")
    with tracer.start_as_current_span("agent") as root:
        around = trace.set_span_in_context(root)
        for _ in range(3):
            seen = Sighting(Kind.TOOL, "search", args={"q": "x"}, result="nothing found")
            pipeline.see(Run("run"), seen, None, context=around)
    marker = signals.span("loopguard.deadlock").context
    assert exemplars(signals, "loopguard.deadlocks") == [(marker.trace_id, marker.span_id)]
    (record,) = signals.logs
    assert record.log_record.span_id == marker.span_id
    pipeline.close()


def test_without_span_events_the_counter_counts_all_the_same() -> None:
    signals = Signals()
    pipeline = signals.pipeline(emit="metric")
    for _ in range(3):
        seen = Sighting(Kind.TOOL, "search", args={"q": "x"}, result="nothing found")
        pipeline.see(Run("run"), seen, None)
    assert signals.points("loopguard.deadlocks") == {("unknown", "hard_loop", "warning"): 1}
    pipeline.close()


def test_agents_beyond_the_limit_are_one() -> None:
    signals = Signals()
    some = meters(signals, max_agent_names=2)
    for agent in ("a", "b", "c", "d", "a", "c"):
        some.count(spoken(), agent, None)
        some.end([RunEnd("run", agent, 3, "answer", None)])
    labels = [("a", 2), ("b", 1), ("other", 3)]
    told = {(agent, "hard_loop", "critical"): times for agent, times in labels}
    assert signals.points("loopguard.deadlocks") == told
    assert signals.points("loopguard.iterations") == {
        (agent, "answer"): 3 * times for agent, times in labels
    }


@given(
    agents=st.lists(st.sampled_from([None, *"abcdefg"]), max_size=30),
    limit=st.integers(1, 5),
)
@pytest.mark.parametrize("delta", [False, True])
def test_the_gauge_comes_back_to_zero_whatever_the_names(
    delta: bool, agents: list[str | None], limit: int
) -> None:
    signals = Signals(delta=delta)
    some = meters(signals, max_agent_names=limit)
    for agent in agents:
        some.move([StuckChange("run", None, stuck(agent))])
    up = sum(signals.points("loopguard.stuck_runs").values())
    assert up == len(agents)
    for agent in agents:
        some.move([StuckChange("run", stuck(agent), None)])
    down = signals.points("loopguard.stuck_runs").values()
    if delta:
        assert sum(down) == -len(agents)
    else:
        assert set(down) <= {0}
    assert len(down) <= limit + 1


@pytest.mark.parametrize("delta", [False, True])
def test_deltas_and_sums_say_the_same(delta: bool) -> None:
    signals = Signals(delta=delta)
    total = 0
    with signals.instrumented(flush=False), otel_loopguard.run("finder"):
        for _ in range(10):
            search("x")
            now = sum(signals.points("loopguard.deadlocks").values())
            total = total + now if delta else now
    assert total == len(signals.events) == 3


@given(grown=st.lists(st.integers(0, 1000), min_size=1, max_size=8))
def test_wasted_tokens_are_what_each_finding_says_last(grown: list[int]) -> None:
    signals = Signals()
    some = meters(signals)
    sofar = 0
    for more in grown:
        sofar += more
        some.count(spoken("one", sofar), "a", None)
        some.count(spoken("two", 2 * sofar), "a", None)
    wasted: Any = signals.points("loopguard.wasted_tokens").get(("a",), 0)
    assert wasted == 3 * sofar


def test_no_more_findings_are_remembered_than_that() -> None:
    some = meters(Signals())
    number = count()
    for _ in range(module.MAX_FINDINGS + 50):
        some.count(spoken(str(next(number)), 10), "a", None)
    assert len(some._told) == module.MAX_FINDINGS
