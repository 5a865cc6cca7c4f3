"""Agents that loop for ever: their deadlock is in Jaeger while they are still stuck."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from examples.offline import AGENTS
from tests.e2e.agents import Agent, Seen, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from examples.scripted_model import ScriptedModel
    from tests.e2e.backends.jaeger import Jaeger
    from tests.figures import Figures

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

DELAY_S = 5.0
PAUSE_S = 3.5
"""So long that the third and the fifth step are further apart than the batch delay."""


@pytest.fixture(scope="module")
def stuck(jaeger: Jaeger, model: ScriptedModel) -> Iterator[dict[str, Agent]]:
    """One endless agent of each kind, all at once."""
    agents = {
        name: Agent(name, "loop", jaeger, model, pause_s=PAUSE_S, delay_ms=int(DELAY_S * 1000))
        for name in AGENTS
    }
    yield agents
    for agent in agents.values():
        agent.stop()


@pytest.mark.parametrize("name", AGENTS)
def test_a_deadlock_is_in_jaeger_while_the_agent_is_stuck(
    name: str, stuck: dict[str, Agent], figures: Figures
) -> None:
    agent = stuck[name]

    warning = agent.wait_for_event("warning", 60)
    assert warning is not None, agent.process.stderr
    limit = DELAY_S + 1
    say(f"{name}: warning in Jaeger {warning.after_s:.2f} s after its step (at most {limit:.0f} s)")
    assert figures.add(f"{name}: warning in Jaeger", warning.after_s, "s", limit)
    assert warning.event["loopguard.repeats"] == 3

    critical = agent.wait_for_event("critical", 60)
    assert critical is not None
    say(f"{name}: critical in Jaeger {critical.after_s:.2f} s after its step (at most 1 s)")
    assert figures.add(f"{name}: critical in Jaeger", critical.after_s, "s", 1.0)
    assert critical.event["loopguard.repeats"] == 5
    assert critical.span.tags["otel.status_code"] == "ERROR"
    assert critical.span.tags["otel.status_description"] == "deadlock: hard_loop"

    for seen in (warning, critical):
        _check_open_and_marked(seen)


def _check_open_and_marked(seen: Seen) -> None:
    assert seen.agent_was_alive
    assert seen.span.name == "execute_tool search_orders"
    assert seen.event["event"] == "loopguard.deadlock"
    assert seen.span.tags["loopguard.deadlock"] is True
    assert seen.span.tags["loopguard.pattern"] == "hard_loop"
    assert not any(span.name.startswith("invoke_agent") for span in seen.trace), "root is open"
