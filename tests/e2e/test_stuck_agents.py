"""Agents that loop for ever: their deadlock is in Jaeger while they are still stuck."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from examples.offline import AGENTS
from tests.e2e.agents import Agent, Seen, say, watch

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
def seen(jaeger: Jaeger, model: ScriptedModel) -> Iterator[dict[tuple[str, str], Seen]]:
    """What Jaeger showed of one endless agent of each kind, all at once, and when."""
    with ExitStack() as running:
        agents = {
            name: Agent(name, "loop", jaeger, model, pause_s=PAUSE_S, delay_ms=int(DELAY_S * 1000))
            for name in AGENTS
        }
        for agent in agents.values():
            running.callback(agent.stop)
        yield watch(agents, timeout_s=90)


@pytest.mark.parametrize("name", AGENTS)
def test_a_deadlock_is_in_jaeger_while_the_agent_is_stuck(
    name: str, seen: dict[tuple[str, str], Seen], figures: Figures
) -> None:
    assert {(name, "warning"), (name, "critical")} <= set(seen)
    warning, critical = seen[name, "warning"], seen[name, "critical"]
    _tell(figures, f"{name}: warning in Jaeger", warning, DELAY_S + 1)
    _tell(figures, f"{name}: critical in Jaeger", critical, 1.0)

    assert warning.event["loopguard.repeats"] == 3
    assert critical.event["loopguard.repeats"] == 5
    assert critical.span.tags["otel.status_code"] == "ERROR"
    assert critical.span.tags["otel.status_description"] == "deadlock: hard_loop"
    for each in (warning, critical):
        _check_open_and_marked(each)


def _tell(figures: Figures, name: str, seen: Seen, limit_s: float) -> None:
    say(f"{name} {seen.after_s:.2f} s after the step ended (at most {limit_s:g} s)")
    assert figures.add(name, round(seen.after_s, 3), "s", limit_s)


def _check_open_and_marked(seen: Seen) -> None:
    assert seen.agent_was_alive
    assert seen.span.name == "execute_tool search_orders"
    assert seen.event["event"] == "loopguard.deadlock"
    assert seen.span.tags["loopguard.deadlock"] is True
    assert seen.span.tags["loopguard.pattern"] == "hard_loop"
    assert not any(span.name.startswith("invoke_agent") for span in seen.trace), "root is open"
