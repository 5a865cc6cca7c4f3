"""openai: loops that are broken, in its tool runner and by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openai
import pytest

import otel_loopguard as loopguard
from tests.frameworks.breaking import (
    ByHand,
    Counted,
    assert_broken,
    assert_nudged,
    both,
)
from tests.frameworks.declared import Declared
from tests.frameworks.openai_apis import Chat, Responses, connect
from tests.frameworks.support import USER, Telemetry, entered, maybe

if TYPE_CHECKING:
    from examples.scripted_model import ScriptedModel


class TestChat(ByHand):
    api, connect = Chat(), staticmethod(connect)


class TestResponses(ByHand):
    api, connect = Responses(), staticmethod(connect)


@pytest.mark.parametrize(
    "options",
    [{}, {"stream": True}, {"stream": True, "eager": True}],
    ids=["plain", "stream", "eager"],
)
@both
class TestToolRunner:
    async def run(
        self, server: ScriptedModel, tool: Counted, model: str, options: Any, *, is_async: bool
    ) -> Any:
        runners = pytest.importorskip("openai.lib.responses_tool_runner")

        async def alook(_: Any) -> str:
            return tool.look()

        async with entered(connect(server.base_url, is_async=is_async)) as client:
            if isinstance(client, openai.OpenAI):
                search = runners.RegisteredFunction(Responses.tools[0], lambda _: tool.look())
                runner = runners.ResponsesToolRunner(functions=[search])
            else:
                search = runners.AsyncRegisteredFunction(Responses.tools[0], alook)
                runner = runners.AsyncResponsesToolRunner(functions=[search])
            asked = {"model": model, "input": [USER]}
            return await maybe(runner.run(client, asked, max_steps=50, **options))

    async def test_observed_it_goes_on(
        self, telemetry: Telemetry, server: ScriptedModel, options: Any, *, is_async: bool
    ) -> None:
        telemetry.instrument(action="observe")
        tool = Counted()
        with pytest.raises(Exception, match="max_steps"):
            await self.run(server, tool, "nudge", options, is_async=is_async)
        assert tool.made >= 49

    async def test_a_note_ends_it(
        self, telemetry: Telemetry, server: ScriptedModel, options: Any, *, is_async: bool
    ) -> None:
        telemetry.instrument(action="nudge")
        tool = Counted()
        response = await self.run(server, tool, "nudge", options, is_async=is_async)
        assert response.output_text == "Finished after 4 turns."
        assert_nudged(telemetry, server, tool)

    async def test_who_ignores_notes_is_stopped(
        self, telemetry: Telemetry, server: ScriptedModel, options: Any, *, is_async: bool
    ) -> None:
        """The runner raises an error of its own for whatever a tool raises."""
        telemetry.instrument(action="break")
        tool = Counted()
        with pytest.raises(Exception, match="stopped before completion") as caught:
            await self.run(server, tool, "loop+deaf", options, is_async=is_async)
        assert isinstance(caught.value.__context__, loopguard.DeadlockError)
        await assert_broken(telemetry, server, tool)

    async def test_calls_at_once_are_stopped(
        self, telemetry: Telemetry, server: ScriptedModel, options: Any, *, is_async: bool
    ) -> None:
        telemetry.instrument(action="break")
        tool = Counted()
        with pytest.raises(Exception, match="stopped before completion") as caught:
            await self.run(server, tool, "parallel-2+deaf", options, is_async=is_async)
        assert isinstance(caught.value.__context__, loopguard.DeadlockError)
        await assert_broken(telemetry, server, tool, at_once=2)


class TestDeclaredTools(Declared):
    """Tools of the runner, declared by the settings."""

    @pytest.fixture(params=[False, True], ids=["sync", "async"])
    def way(self, request: pytest.FixtureRequest) -> Any:
        return request.param

    async def go(self, server: ScriptedModel, tool: Counted, model: str, way: Any) -> Any:
        return await TestToolRunner().run(server, tool, model, {}, is_async=way)
