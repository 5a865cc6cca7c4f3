"""Each deadlock ends on its own rung, and the events in a real Jaeger tell the ladder in order."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from examples.offline import environment
from tests.e2e.agents import Span, spans_of

if TYPE_CHECKING:
    from examples.scripted_model import ScriptedModel
    from tests.e2e.backends.jaeger import Jaeger

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

AGENT = Path(__file__).with_name("ladder_agent.py")
ROOT = AGENT.parents[2]
RECOVERED = "Finished"
STOPPED = "stopped: "


class Ladder(NamedTuple):
    """What an agent does, how it ends, and what is done about it until then."""

    pattern: str
    model: str
    tool: str
    end: str
    rungs: tuple[tuple[str, int], ...]
    skipped: tuple[str, ...] = ()


WORD, FINAL, END = ("inject_correction", 1), ("force_final_answer", 2), ("end_run", 3)
ANCHOR, SUMMARY = ("inject_objective_anchor", 1), ("summarise_context", 2)
ACT, COOLER = ("force_action_prompt", 1), ("lower_temperature", 2)
LADDERS = (
    # each ends on the first rung of its pattern, which the model listens to
    Ladder("tool_oscillation", "cycle-2+told", "search", RECOVERED, (("apply_state_latch", 1),)),
    Ladder("context_rot", "slices+told", "read", RECOVERED, (ANCHOR,)),
    Ladder("reflection_paralysis", "muse+told", "search", RECOVERED, (ACT,)),
    Ladder("tool_hallucination", "ghost+told", "search", RECOVERED, (("inject_tool_schema", 1),)),
    Ladder("guardrail_loop", "plead", "delete", RECOVERED, (WORD, WORD, ("escalate_to_human", 3))),
    Ladder("guardrail_loop", "plead", "remove", RECOVERED, (WORD, WORD, ("escalate_to_human", 3))),
    Ladder("retry_storm", "loop+told", "fetch", RECOVERED, (("activate_circuit_breaker", 1),)),
    # a model that listens to nothing is taken up to the end
    Ladder("hard_loop", "loop+deaf", "search", STOPPED, (WORD, WORD, FINAL, END)),
    Ladder("context_rot", "slices", "read", STOPPED, (ANCHOR, SUMMARY, END)),
    Ladder("reflection_paralysis", "muse", "search", STOPPED, (ACT, COOLER, END)),
)


@pytest.mark.parametrize(
    "ladder", LADDERS, ids=[f"{e.pattern}-{e.model}-{e.tool}" for e in LADDERS]
)
def test_the_events_tell_the_ladder(ladder: Ladder, jaeger: Jaeger, model: ScriptedModel) -> None:
    service = f"ladder-{ladder.pattern}-{ladder.model}-{ladder.tool}".replace("+", "-")
    said = _run(ladder, jaeger, model, service)
    assert said.startswith(ladder.end), said
    spans = _exported(jaeger, service)
    assert len({span.trace_id for span in spans}) == 1
    events = [
        event
        for span in sorted(spans, key=lambda each: each.start_s)
        for event in span.events
        if event["event"] == "loopguard.intervention"
    ]
    names = ("pattern", "intervention", "recovery_level", "mode", "intervention_no")
    told = [tuple(event[f"loopguard.{name}"] for name in names) for event in events]
    counted = [(ladder.pattern, *rung, "break") for rung in ladder.rungs]
    assert [each[:4] for each in told] == counted
    assert "loopguard.skipped_interventions" not in events[-1]
    agent = next(span for span in spans if span.name == "invoke_agent ladder")
    reason = "deadlock" if ladder.end is STOPPED else "closed"
    assert agent.tags["loopguard.end_reason"] == reason
    found = {event["loopguard.finding_id"] for span in spans for event in span.events}
    assert {event["loopguard.finding_id"] for event in events} <= found


def _run(ladder: Ladder, jaeger: Jaeger, model: ScriptedModel, service: str) -> str:
    """Run the agent under `opentelemetry-instrument`; gives the last line that it prints."""
    more = {
        "OTEL_SERVICE_NAME": service,
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_EXPORTER_OTLP_ENDPOINT": jaeger.otlp_http,
        "OTEL_LOOPGUARD_ACTION": "break",
        "OTEL_LOOPGUARD_TOOLS": "delete:irreversible",
        "OTEL_LOOPGUARD_ESCALATE": "__main__:ask",
        "TOOL": ladder.tool,
        "PYTHONPATH": str(ROOT),
    }
    tool = Path(sys.executable).with_name("opentelemetry-instrument")
    done = subprocess.run(
        [str(tool), sys.executable, str(AGENT)],
        env={**environment(model, ladder.model), **more},
        capture_output=True,
        text=True,
        timeout=90,
        check=True,
    )
    assert "internal fault" not in done.stderr, done.stderr
    return done.stdout.splitlines()[-1]


def _exported(jaeger: Jaeger, service: str) -> list[Span]:
    """What Jaeger has of the agent, once its own span is there."""
    until = time.monotonic() + 20
    spans: list[Any] = []
    while time.monotonic() < until:
        spans = spans_of(jaeger, service)
        if any(span.name.startswith("invoke_agent") for span in spans):
            break
        time.sleep(0.1)
    return spans
