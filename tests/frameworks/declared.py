"""What holds in any framework of tools that the settings declare, as one does not own them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from otel_loopguard.breaking.guarded import deadlock_in
from tests.frameworks.breaking import PAGE, Counted, answers, interventions
from tests.frameworks.support import Telemetry, of

if TYPE_CHECKING:
    from examples.scripted_model import ScriptedModel
    from otel_loopguard.breaking import Request


class Varied(Counted):
    """A tool that finds something else each time, so that no detector minds."""

    def look(self) -> str:
        return f"{super().look()}, and not in place {self.made} either, which nobody knew so far"


class Human:
    """Gives these answers in turn; after them none."""

    def __init__(self, *answers: object) -> None:
        self.asked: list[Request] = []
        self._answers = list(answers)

    async def __call__(self, request: Request, /) -> object:
        self.asked.append(request)
        if not self._answers:
            await asyncio.sleep(600)
        return self._answers.pop(0)


ASKED = ("hard_loop", "escalate_to_human", 3, "break")


class Declared:
    """A framework whose tool `search` is declared by the settings only."""

    async def go(self, server: ScriptedModel, tool: Counted, model: str, way: Any) -> Any:
        """Run an agent with this tool to its end, or as far as it is let."""
        raise NotImplementedError

    async def test_a_poll_is_waiting(
        self, telemetry: Telemetry, server: ScriptedModel, way: Any
    ) -> None:
        telemetry.instrument(action="break", tools="search:poll")
        tool = Counted()
        await self.go(server, tool, "loop-9", way)
        assert tool.made == 9
        assert interventions(telemetry) == []

    async def test_a_limit_is_kept(
        self, telemetry: Telemetry, server: ScriptedModel, way: Any
    ) -> None:
        telemetry.instrument(action="nudge", tools="search:max_repeats=2")
        tool = Varied()
        await self.go(server, tool, "nudge", way)
        assert tool.made == 2
        assert interventions(telemetry) == [("hard_loop", "inject_correction", 1, "nudge")]
        call_id = of(telemetry.tools[-1], "gen_ai.tool.call.id")
        (told,) = answers(server.requests[-1]["body"], call_id)
        assert "2 times with these arguments, which is as often as it may be" in told

    async def test_with_a_yes_what_cannot_be_undone_is_done_once(
        self, telemetry: Telemetry, server: ScriptedModel, way: Any
    ) -> None:
        human = Human(True, False)
        telemetry.instrument(escalate=human, tools={"search": "irreversible"})
        tool = Counted()
        with pytest.raises(Exception) as caught:
            await self.go(server, tool, "loop", way)
        stopped = deadlock_in(caught.value)
        assert stopped is not None
        assert stopped.reason == "deadlock"
        assert tool.made == 4
        assert [each.tool for each in human.asked] == ["search"] * 2
        assert interventions(telemetry)[2:4] == [ASKED] * 2
        verdicts = [
            of(span, "loopguard.verdict")
            for span in telemetry.spans
            if span.name == "loopguard.escalation"
        ]
        assert verdicts == ["approved", "refused"]
        refusal = "a person was asked, and did not allow it"
        assert refusal in str(server.requests[-1]["body"])
        assert PAGE not in "".join(span.to_json() for span in telemetry.spans)

    async def test_without_an_answer_it_is_not_done_and_the_run_is_stopped(
        self, telemetry: Telemetry, server: ScriptedModel, way: Any
    ) -> None:
        human = Human()
        telemetry.instrument(escalate=human, escalate_timeout_s=1, tools="search:irreversible")
        tool = Counted()
        with pytest.raises(Exception) as caught:
            await self.go(server, tool, "loop", way)
        stopped = deadlock_in(caught.value)
        assert stopped is not None
        assert stopped.reason == "escalation_timeout"
        assert (tool.made, len(human.asked)) == (3, 1)
        (agent,) = telemetry.agents
        assert of(agent, "loopguard.end_reason") == "escalation_timeout"
