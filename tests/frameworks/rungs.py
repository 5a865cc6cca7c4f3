"""Six loops, each of which ends on its own rung of the ladder: what they are, and how to tell."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import otel_loopguard as loopguard
from tests.frameworks.breaking import (
    assert_nothing_goes_on,
    intervention_events,
    interventions,
)
from tests.frameworks.support import Conversation, assert_below, maybe, of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from opentelemetry.sdk.trace import Event

    from examples.scripted_model import ScriptedModel
    from tests.frameworks.support import Said, Telemetry

VERDICT = "loopguard.verdict"

TEXT = [f"Line {n} says what no other line of the notes says: {n * 7919}" for n in range(60)]
PAGE = "the shelf is empty, and has been so for as long as anybody who works here can remember"


def read(path: str, start: int, end: int) -> str:
    """Read lines of a text."""
    return "\n".join(TEXT[start:end])


def search(query: str, page: int = 1) -> str:
    """Find it."""
    return f"{PAGE}, says page {page}"


def fetch(query: str, page: int = 1) -> str:
    """Fetch it."""
    raise ConnectionError("connection refused")


async def yes() -> bool:
    """The human allows it."""
    return True


async def no() -> bool:
    """The human does not."""
    return False


async def silence() -> bool:
    """The human says nothing."""
    await asyncio.sleep(600)
    return True


async def broken() -> bool:
    """The human cannot be told."""
    raise ConnectionError(PAGE)


ANSWERS = {
    "approved": (yes, None),
    "refused": (no, "deadlock"),
    "escalation_timeout": (silence, "escalation_timeout"),
    "error": (broken, "deadlock"),
}
"""What a human may say, by what the telemetry says of it; and why the run is stopped then."""
DENIED = 5
"""So many calls are turned down before a human is asked."""
answers = pytest.mark.parametrize("answer", ANSWERS)


class Deleting:
    """A tool that refuses until a human has allowed it.

    Args:
        answer: what the human says.
        stays: it refuses even then.

    Attributes:
        asked: what the human was asked.
        called: set once that was asked.
        made: how often it was called.
    """

    pattern = "guardrail_loop"

    def __init__(self, answer: str = "approved", *, stays: bool = False) -> None:
        self.allowed = False
        self.asked: list[Any] = []
        self.called = asyncio.Event()
        self.made = 0
        self._answer, self._stays = ANSWERS[answer][0], stays

    async def ask(self, request: Any, /) -> bool:
        """The human."""
        self.asked.append(request)
        self.called.set()
        self.allowed = await self._answer()
        return self.allowed

    def delete(self, query: str, page: int = 1) -> str:
        """Delete it."""
        self.made += 1
        refuses = self._stays or not self.allowed
        return "permission denied" if refuses else f"deleted page {page}"


class Rung(NamedTuple):
    """One loop.

    Attributes:
        pattern: what it is.
        model: the scenario.
        tools: what the model is offered.
        remedy: the rung that it ends on, and its level.
        calls: whether the note stands in the place of a tool's result.
    """

    pattern: str
    model: str
    tools: tuple[Callable[..., str], ...]
    remedy: tuple[str, int]
    calls: bool


RUNGS = (
    Rung("tool_oscillation", "cycle-2+told", (search,), ("apply_state_latch", 1), True),
    Rung("context_rot", "slices+told", (read,), ("inject_objective_anchor", 1), False),
    Rung("reflection_paralysis", "muse+told", (search,), ("force_action_prompt", 1), False),
    Rung("tool_hallucination", "ghost+told", (search,), ("inject_tool_schema", 1), False),
    Rung("retry_storm", "loop+told", (fetch,), ("activate_circuit_breaker", 1), True),
)
"""The sixth, guardrail_loop, asks a human: it has a test of its own."""


def assert_asked(telemetry: Telemetry, deleting: Deleting) -> None:
    """Words to the model did not help; a human was asked, and the call that is allowed went on."""
    assert deleting.allowed
    told = [event[:3] for event in interventions(telemetry)]
    word, human = ("inject_correction", 1), ("escalate_to_human", 3)
    assert told == [(deleting.pattern, *each) for each in (word, word, human)]
    assert [span.name for span in telemetry.spans if "escalation" in span.name] != []


def is_answer(event: Event) -> bool:
    """Whether an event says what a human said."""
    return VERDICT in (event.attributes or {})


async def assert_answered(
    telemetry: Telemetry,
    server: ScriptedModel,
    deleting: Deleting,
    answer: str,
    work: Callable[[], Awaitable[Any]],
) -> None:
    """A human was asked once before a request; without a yes that request was never sent.

    Args:
        telemetry: where it is told.
        server: what the model was asked.
        deleting: the tool, and the human.
        answer: what the human says.
        work: what leads there.
    """
    reason = ANSWERS[answer][1]
    if reason is None:
        await work()
    else:
        with pytest.raises(loopguard.DeadlockError) as stopped:
            await work()
        assert stopped.value.reason == reason
    (request,) = deleting.asked
    assert (request.tool, request.pattern.value) == (None, deleting.pattern)
    assert deleting.made == DENIED + (reason is None)
    assert len(server.requests) == DENIED + 2 * (reason is None)
    told = [event[:3] for event in interventions(telemetry)]
    word, human = ("inject_correction", 1), ("escalate_to_human", 3)
    assert told == [(deleting.pattern, *each) for each in (word, word, human)]
    said = [(event.attributes or {}).get(VERDICT) for event in intervention_events(telemetry)]
    assert said == [None, None, answer]
    (wait,) = (span for span in telemetry.spans if span.name == "loopguard.escalation")
    assert (of(wait, VERDICT), of(wait, "gen_ai.tool.name")) == (answer, None)
    (agent,) = telemetry.agents
    assert_below(agent, wait)
    (asking,) = (span for span in telemetry.chats if any(map(is_answer, span.events)))
    assert (wait.end_time or 0) <= (asking.end_time or 0)
    assert (of(asking, "loopguard.intervention") is None) == (reason is None)
    assert reason in (None, of(agent, "loopguard.end_reason"))
    assert PAGE not in "".join(span.to_json() for span in telemetry.spans)
    assert telemetry.open.spans == {}
    await assert_nothing_goes_on()


def parameters(function: Callable[..., Any]) -> dict[str, Any]:
    """The schema of a tool's arguments."""
    names = [name for name in function.__annotations__ if name != "return"]
    kinds = {name: "string" if name in ("query", "path") else "integer" for name in names}
    properties = {name: {"type": kind} for name, kind in kinds.items()}
    return {"type": "object", "properties": properties, "required": list(properties)}


class Agent(Conversation):
    """A hand-written agent, which lets the guard decide about its calls.

    Attributes:
        functions: its tools.
    """

    functions: tuple[Callable[..., str], ...] = ()

    @property
    def spoken(self) -> list[Any]:
        """What the user said, as the agent's own history has it."""
        mine = [each for each in self.history if each.get("role") == "user"]
        return [each["content"] for each in mine if isinstance(each["content"], str)]

    async def run(self, call_id: str, name: str, args: str) -> str:
        """One execution of a tool; a failure is a text."""
        function = next((each for each in self.functions if each.__name__ == name), None)
        if function is None:
            return f"Error: there is no tool {name}"
        try:
            return await maybe(loopguard.call_tool(function, name, args, call_id))
        except ConnectionError as error:
            return f"Error: {error}"

    async def go(self) -> str:
        """All of it, until there is a real answer."""
        with loopguard.run("agent"):  # who only talks does not show that it is one
            while self.asked < self.most:
                said: Said = await self.step()
                if said.text.startswith("Finished"):
                    return said.text
        return ""


def assert_recovered(telemetry: Telemetry, rung: Rung, requests: list[dict[str, Any]]) -> None:
    """One rung was taken, the model was told so in its next request, and it ended."""
    told = [event[:3] for event in interventions(telemetry)]
    assert told == [(rung.pattern, *rung.remedy)]
    first, last = (json.dumps(requests[n]["body"]) for n in (-2, -1))
    assert len(last) > len(first)
    user = [json.dumps(each["body"]).count('"role": "user"') for each in requests]
    assert (user[-1] > user[0]) or rung.calls
    assert not any(of(span, "loopguard.user_turn") for span in telemetry.chats)
    assert PAGE not in "".join(span.to_json() for span in telemetry.spans)
    assert telemetry.open.spans == {}
