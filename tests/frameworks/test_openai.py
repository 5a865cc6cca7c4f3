"""openai: N model calls and M tools are N chat and M execute_tool spans of one trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openai
import pytest

from tests.frameworks.loops import Loops
from tests.frameworks.openai_apis import Chat, Responses, connect
from tests.frameworks.support import USER, Telemetry, entered, maybe, of
from tests.frameworks.unwrapping import assert_inert_below_another, assert_restored

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from examples.scripted_model import ScriptedModel


class TestChat(Loops):
    api, connect = Chat(), staticmethod(connect)


class TestResponses(Loops):
    api, connect = Responses(), staticmethod(connect)


class TestToolRunner:
    """The runner of the SDK: its hook shows the executions, its model calls make the run."""

    @pytest.fixture(params=[False, True], ids=["sync", "async"])
    async def client(
        self, request: pytest.FixtureRequest, server: ScriptedModel
    ) -> AsyncIterator[Any]:
        async with entered(connect(server.base_url, is_async=request.param)) as client:
            yield client

    async def run(self, client: Any, model: str, result: Any, **options: Any) -> Any:
        """The runner, with a tool that gives a result or raises it."""
        runners = pytest.importorskip("openai.lib.responses_tool_runner")

        def search(_: Any) -> str:
            if isinstance(result, BaseException):
                raise result
            return result

        async def asearch(_: Any) -> str:
            return search(_)

        tool = Responses.tools[0]
        if isinstance(client, openai.OpenAI):
            function = runners.RegisteredFunction(tool, search, independent=True)
            runner = runners.ResponsesToolRunner(functions=[function])
        else:
            function = runners.AsyncRegisteredFunction(tool, asearch, independent=True)
            runner = runners.AsyncResponsesToolRunner(functions=[function])
        return await maybe(runner.run(client, {"model": model, "input": [USER]}, **options))

    @pytest.mark.parametrize(
        "options",
        [{}, {"stream": True}, {"stream": True, "eager": True}],
        ids=["plain", "stream", "eager"],
    )
    async def test_a_run(self, telemetry: Telemetry, client: Any, options: Any) -> None:
        response = await self.run(client, "parallel-2x3", "nothing", **options)
        assert response.output_text == "Finished after 3 turns."
        telemetry.assert_run(chats=4, tools=6)
        assert {of(span, "loopguard.span_origin") for span in telemetry.tools} == {None}
        assert [of(span, "loopguard.iteration") for span in telemetry.tools] == [1, 1, 2, 2, 3, 3]
        assert len({of(span, "gen_ai.tool.call.id") for span in telemetry.tools}) == 6
        assert {severity for _, severity in telemetry.patterns} == {"warning"}

    async def test_a_tool_that_raises(self, telemetry: Telemetry, client: Any) -> None:
        raised: list[str] = []
        for watched in (True, False):
            if not watched:
                telemetry.uninstrument()
            with pytest.raises(Exception, match="stopped before completion") as caught:
                await self.run(client, "loop-1", ValueError("secret"))
            raised.append(repr(caught.value))
        assert raised[0] == raised[1]
        (tool,) = telemetry.tools
        assert of(tool, "error.type") == "ValueError"
        assert of(tool, "loopguard.outcome") == "error"
        assert "secret" not in tool.to_json()


POSTS = ("SyncAPIClient.post", "AsyncAPIClient.post")


def test_what_was_wrapped_is_restored() -> None:
    assert_restored(openai._base_client, POSTS)


def test_below_another_wrapper_ours_is_inert(server: ScriptedModel) -> None:
    def ask() -> None:
        with connect(server.base_url, is_async=False) as client:
            client.responses.create(**Responses().request("loop-1", [USER]))

    assert_inert_below_another(openai._base_client, POSTS[0], ask)
