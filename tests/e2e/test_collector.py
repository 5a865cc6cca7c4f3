"""What the collector of collector-config/ does with the spans of stuck agents, and with content."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from tests.e2e.agents import say, spans_of
from tests.e2e.backends.collector import MANIFEST
from tests.e2e.fleet import FOREIGN, REPEATS, UTTERANCES
from tests.e2e.oncall import Fleet, collector_before, events, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.backends.collector import Collector
    from tests.e2e.backends.jaeger import Jaeger

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

SQUEEZE = int(os.environ.get("SQUEEZE", "30"))
"""How many times shorter all times are than in life, where an agent runs for twenty minutes and a
sampler waits for half a minute; `make e2e SQUEEZE=10` takes two minutes over it."""
RUN_S, DECISION_WAIT_S = 1200 / SQUEEZE, 30 // SQUEEZE
EARLY_S = RUN_S * 0.8
"""How long the agent works before it gets stuck: the sampler has decided on its trace long ago."""
SAMPLING = {
    "LOOPGUARD_DECISION_WAIT": f"{DECISION_WAIT_S}s",
    "LOOPGUARD_SAMPLING_PERCENT": "0",
}
KEY = "sk-not-to-be-seen-by-anybody"


@pytest.fixture(scope="module")
def collector(jaeger: Jaeger) -> Iterator[Collector]:
    with collector_before(jaeger, **SAMPLING) as running:
        yield running


def test_a_late_deadlock_goes_around_the_sampler_that_would_drop_it(
    jaeger: Jaeger, collector: Collector
) -> None:
    plain = collector_before(jaeger, MANIFEST.with_name("plain.yaml"), **SAMPLING)
    with ExitStack() as running:
        running.enter_context(plain)
        fleets = [
            running.enter_context(
                Fleet(
                    name,
                    to.otlp_http,
                    1,
                    1,
                    1,
                    pause_s=(RUN_S - EARLY_S) / REPEATS,
                    EARLY_S=str(EARLY_S),
                    OTEL_METRICS_EXPORTER="none",
                )
            )
            for name, to in (("late", collector), ("late-plain", plain))
        ]
        say(
            f"a run of 20 minutes, {SQUEEZE} times shorter: stuck after {EARLY_S:.0f} s, "
            f"{EARLY_S / DECISION_WAIT_S:.0f} decision waits"
        )
        for fleet in fleets:
            fleet.wait_until_stuck()
        assert eventually(lambda: FOREIGN in names(jaeger, "late"))
        assert len(events(jaeger, "late")) == UTTERANCES
        for fleet in fleets:
            fleet.end()
        assert eventually(lambda: "invoke_agent finder" in names(jaeger, "late"))
    # All that started in the stuck run, and nothing of the time before.
    stuck = REPEATS - 2
    assert names(jaeger, "late") == {
        "execute_tool search": stuck, FOREIGN: 1, "invoke_agent finder": 1
    }  # fmt: skip
    assert not names(jaeger, "late-plain")


def names(jaeger: Jaeger, service: str) -> Counter[str]:
    return Counter(span.name for span in spans_of(jaeger, service))


def test_content_of_others_does_not_pass(jaeger: Jaeger, collector: Collector) -> None:
    provider = TracerProvider(resource=Resource.create({"service.name": "talkative"}))
    to = OTLPSpanExporter(f"{collector.otlp_http}/v1/traces")
    provider.add_span_processor(SimpleSpanProcessor(to))
    content = {
        "gen_ai.input.messages": "what was asked",
        "gen_ai.tool.call.arguments": "what was asked",
        "gen_ai.prompt.0.content": "what was asked",
        "input.value": "what was asked",
        "note": f"the key is {KEY}",
    }
    kept = {"gen_ai.tool.name": "search", "gen_ai.usage.input_tokens": 7, "loopguard.run_id": "1"}
    span = provider.get_tracer("another").start_span("tool")
    span.set_attributes({**kept, **content, "loopguard.deadlock": True})
    span.add_event("gen_ai.choice", {**kept, **content})
    span.end()
    provider.shutdown()

    assert eventually(lambda: spans_of(jaeger, "talkative"))
    (seen,) = spans_of(jaeger, "talkative")
    for told in (seen.tags, seen.events[0]):
        assert "what was asked" not in str(told)
        assert KEY not in str(told)
        assert {name: told[name] for name in kept} == kept
        assert set(content) <= set(told), "masked, not removed: it is seen that there was something"
