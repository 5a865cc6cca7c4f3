"""The healthy twins of the stuck agents: they do alike things, and nothing is said about them."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from examples.offline import AGENTS
from tests.e2e.agents import Agent, Span

if TYPE_CHECKING:
    from examples.scripted_model import ScriptedModel
    from tests.e2e.backends.jaeger import Jaeger

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

TWINS = {
    "paging-6+tool=list_orders": {"list_orders": 6},
    "poll-20+tool=export_status": {"export_status": 5},
    "retry-9+tool=convert_price": {"convert_price": 3},
    "paging-5+tool=read_notes": {"read_notes": 5},
    "write-read-3": {"read_notes": 3, "write_note": 3},
}
"""Paging through results, polling a job until it is done, a retry that succeeds, a batch of
different arguments, the same call after a write in between; and which tools that runs how often."""

CONTRACT = {
    "loopguard.args_fingerprint", "loopguard.result_hash", "loopguard.result_length",
    "loopguard.consecutive_same_tool", "loopguard.same_args_seen", "loopguard.repeat_count",
    "loopguard.iteration", "loopguard.outcome", "loopguard.run_id", "loopguard.status",
    "gen_ai.operation.name", "gen_ai.tool.name",
}  # fmt: skip


@pytest.mark.parametrize("scenario", TWINS)
def test_a_healthy_agent_is_left_alone(scenario: str, jaeger: Jaeger, model: ScriptedModel) -> None:
    with ExitStack() as running:
        agents = {name: Agent(name, scenario, jaeger, model) for name in AGENTS}
        for agent in agents.values():
            running.callback(agent.stop)
        ends = {name: agent.finish() for name, agent in agents.items()}
    for name, agent in agents.items():
        code, out, err = ends[name]
        assert code == 0, err
        assert out.strip(), "the agent has answered"
        assert "loop" not in err, err
        _check(name, agent.spans(), TWINS[scenario])


def _check(name: str, spans: list[Span], expected: dict[str, int]) -> None:
    assert not [event for span in spans for event in span.events]
    assert not [span.name for span in spans if span.tags.get("otel.status_code") == "ERROR"]
    statuses = {span.tags["loopguard.status"] for span in spans if "loopguard.status" in span.tags}
    assert statuses == {"healthy"}

    tools = [span for span in spans if span.name.startswith("execute_tool ")]
    assert Counter(span.tags["gen_ai.tool.name"] for span in tools) == expected
    for span in tools:
        assert set(span.tags) >= CONTRACT
    chats = [span for span in spans if span.tags.get("gen_ai.operation.name") == "chat"]
    calls = 0 if name == "decorated" else sum(expected.values()) + 1
    assert len(chats) == calls
    assert len({span.trace_id for span in spans}) == 1
    assert [span.name.split()[0] for span in spans].count("invoke_agent") == 1
