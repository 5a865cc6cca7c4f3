"""Six loops, each of which ends on its own rung of the ladder: what they are, and how to tell."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import otel_loopguard as loopguard
from tests.frameworks.breaking import interventions
from tests.frameworks.support import Conversation, maybe, of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.frameworks.support import Said, Telemetry

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


class Deleting:
    """A tool that refuses until a human has allowed it."""

    pattern = "guardrail_loop"

    def __init__(self) -> None:
        self.allowed = False

    async def ask(self, request: Any, /) -> bool:
        """The human, who says yes."""
        self.allowed = True
        return True

    def delete(self, query: str, page: int = 1) -> str:
        """Delete it."""
        return f"deleted page {page}" if self.allowed else "permission denied"


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
