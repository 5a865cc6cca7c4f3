"""anthropic: loops that are broken, in its tool runner and by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anthropic
import pytest

import otel_loopguard as loopguard
from tests.frameworks.anthropic_apis import BetaMessages, Messages, connect
from tests.frameworks.breaking import (
    EVER,
    ByHand,
    Counted,
    assert_broken,
    assert_nudged,
    both,
)
from tests.frameworks.declared import Declared
from tests.frameworks.support import USER, Telemetry, drained, entered, maybe
from tests.frameworks.test_anthropic import Drained, spans_of

if TYPE_CHECKING:
    from examples.scripted_model import ScriptedModel


class TestMessages(ByHand):
    api, connect = Messages(), staticmethod(connect)


class TestBetaMessages(ByHand):
    api, connect = BetaMessages(), staticmethod(connect)


@pytest.mark.parametrize(
    "options",
    [{}, {"thread": False}, {"stream": True}],
    ids=["plain", "history", "stream"],
)
@both
class TestToolRunner:
    async def run(
        self, server: ScriptedModel, tool: Counted, model: str, options: Any, client: Any
    ) -> str:
        runners = pytest.importorskip("anthropic.lib.tools._beta_runner")
        if not hasattr(runners.BaseSyncToolRunner, "_run_tool"):
            pytest.skip("the runner of this version cannot be hooked")

        def search(query: str, page: int) -> str:
            """Search."""
            return tool.look()

        async def asearch(query: str, page: int) -> str:
            """Search."""
            return tool.look()

        if isinstance(client, anthropic.Anthropic):
            offered = anthropic.beta_tool(search)
        else:
            offered = anthropic.beta_async_tool(asearch, name="search")
        try:
            runner = client.beta.messages.tool_runner(
                model=model,
                max_tokens=100,
                messages=[USER],
                tools=[offered],
                max_iterations=EVER,
                **options,
            )
        except TypeError as error:
            pytest.skip(f"this version: {error}")
        if options.get("stream"):
            for stream in await drained(Drained(runner)):
                message = stream
        else:
            message = await maybe(runner.until_done())
        return "".join(block.text for block in message.content if block.type == "text")

    async def test_observed_it_goes_on(
        self, telemetry: Telemetry, server: ScriptedModel, options: Any, *, is_async: bool
    ) -> None:
        telemetry.instrument(action="observe")
        tool = Counted()
        async with entered(connect(server.base_url, is_async=is_async)) as client:
            await self.run(server, tool, "nudge", options, client)
        assert tool.made >= EVER - 1

    @pytest.mark.parametrize("native", [False, True], ids=["ours", "native"])
    async def test_a_note_ends_it(
        self,
        telemetry: Telemetry,
        server: ScriptedModel,
        options: Any,
        *,
        is_async: bool,
        native: bool,
    ) -> None:
        spans = spans_of(telemetry, native=native)
        telemetry.instrument(action="nudge")
        tool = Counted()
        async with entered(connect(server.base_url, is_async=is_async, **spans)) as client:
            answer = await self.run(server, tool, "nudge", options, client)
        assert answer == "Finished after 4 turns."
        assert_nudged(telemetry, server, tool)

    @pytest.mark.parametrize("native", [False, True], ids=["ours", "native"])
    async def test_who_ignores_notes_is_stopped(
        self,
        telemetry: Telemetry,
        server: ScriptedModel,
        options: Any,
        *,
        is_async: bool,
        native: bool,
    ) -> None:
        spans = spans_of(telemetry, native=native)
        telemetry.instrument(action="break")
        tool = Counted()
        async with entered(connect(server.base_url, is_async=is_async, **spans)) as client:
            with pytest.raises(loopguard.DeadlockError):
                await self.run(server, tool, "loop+deaf", options, client)
        await assert_broken(telemetry, server, tool)

    async def test_calls_at_once_are_stopped(
        self, telemetry: Telemetry, server: ScriptedModel, options: Any, *, is_async: bool
    ) -> None:
        telemetry.instrument(action="break")
        tool = Counted()
        async with entered(
            connect(server.base_url, is_async=is_async, **spans_of(telemetry, native=False))
        ) as client:
            with pytest.raises(loopguard.DeadlockError):
                await self.run(server, tool, "parallel-2+deaf", options, client)
        await assert_broken(telemetry, server, tool, at_once=2)


class TestDeclaredTools(Declared):
    """Tools of the runner, declared by the settings."""

    @pytest.fixture(params=[False, True], ids=["sync", "async"])
    def way(self, request: pytest.FixtureRequest) -> Any:
        return request.param

    async def go(self, server: ScriptedModel, tool: Counted, model: str, way: Any) -> Any:
        async with entered(connect(server.base_url, is_async=way)) as client:
            return await TestToolRunner().run(server, tool, model, {}, client)
