"""anthropic: N model calls and M tools are N chat and M execute_tool spans of one trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anthropic
import pytest

import otel_loopguard as loopguard
from tests.frameworks.anthropic_apis import BetaMessages, Messages, connect
from tests.frameworks.loops import Loops, every_way
from tests.frameworks.support import (
    USER,
    Conversation,
    Telemetry,
    drained,
    entered,
    maybe,
    of,
    offers,
)
from tests.frameworks.unwrapping import assert_inert_below_another, assert_restored

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from opentelemetry.sdk.trace import ReadableSpan

    from examples.scripted_model import ScriptedModel

HAS_SPANS = hasattr(anthropic._base_client.BaseClient, "_tracer")
"""Whether the installed version makes spans of its own."""


class TestMessages(Loops):
    api, connect = Messages(), staticmethod(connect)


class TestBetaMessages(Loops):
    api, connect = BetaMessages(), staticmethod(connect)


def spans_of(telemetry: Telemetry, *, native: bool) -> dict[str, Any]:
    """The option of a client that makes spans of its own, or of one that does not."""
    if not HAS_SPANS:
        if native:
            pytest.skip("this version makes no spans")
        return {}
    return {"open_telemetry": {"tracer_provider": telemetry.provider} if native else False}


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@every_way
async def test_the_sdks_own_spans_are_taken(
    telemetry: Telemetry, server: ScriptedModel, way: str, *, is_async: bool
) -> None:
    options = spans_of(telemetry, native=True)
    async with entered(connect(server.base_url, is_async=is_async, **options)) as client:
        if not offers(Messages(), client, way):
            pytest.skip(f"this version cannot {way}")
        await Conversation(Messages(), client, "loop-3", way).go()
    telemetry.assert_run(chats=4, tools=3)
    assert {scope(span) for span in telemetry.chats} == {"com.anthropic.sdk.python"}
    assert telemetry.patterns == [("hard_loop", "warning")]


def test_streams_at_the_same_time_have_a_span_each(
    telemetry: Telemetry, server: ScriptedModel
) -> None:
    """The span of a stream that is still open surrounds no other call."""
    options = spans_of(telemetry, native=True)
    with connect(server.base_url, is_async=False, **options) as client, loopguard.run("reader"):
        users = [{"role": "user", "content": f"Question {n}"} for n in range(3)]
        requests = [Messages().request("loop-1", [user]) for user in users]
        streams = [client.messages.create(**request, stream=True) for request in requests]
        for events in zip(*streams, strict=True):
            assert len({event.type for event in events}) == 1
    telemetry.assert_run(chats=3, tools=0)


class TestToolRunner:
    """The runner of the SDK: its hook shows the executions, its model calls make the run."""

    @pytest.fixture(params=[False, True], ids=["sync", "async"])
    def is_async(self, request: pytest.FixtureRequest) -> bool:
        return request.param

    @pytest.fixture(params=[False, True], ids=["ours", "native"])
    async def client(
        self,
        request: pytest.FixtureRequest,
        telemetry: Telemetry,
        server: ScriptedModel,
        *,
        is_async: bool,
    ) -> AsyncIterator[Any]:
        options = spans_of(telemetry, native=request.param)
        async with entered(connect(server.base_url, is_async=is_async, **options)) as client:
            yield client

    async def run(self, client: Any, model: str, result: Any = "nothing", **options: Any) -> str:
        """The runner, with a tool that gives a result or raises it; returns the answer."""
        runners = pytest.importorskip("anthropic.lib.tools._beta_runner")
        if not hasattr(runners.BaseSyncToolRunner, "_run_tool"):
            pytest.skip("the runner of this version cannot be hooked")

        def search(query: str, page: int) -> str:
            """Search."""
            if isinstance(result, BaseException):
                raise result
            return result

        async def asearch(query: str, page: int) -> str:
            """Search."""
            return search(query, page)

        if isinstance(client, anthropic.Anthropic):
            tool = anthropic.beta_tool(search)
        else:
            tool = anthropic.beta_async_tool(asearch, name="search")
        try:
            runner = client.beta.messages.tool_runner(
                model=model, max_tokens=100, messages=[USER], tools=[tool], **options
            )
        except TypeError as error:
            pytest.skip(f"this version: {error}")
        if options.get("stream"):
            for stream in await drained(Drained(runner)):
                message = stream
        else:
            message = await maybe(runner.until_done())
        return "".join(block.text for block in message.content if block.type == "text")

    @pytest.mark.parametrize(
        "options",
        [{}, {"thread": False}, {"stream": True}, {"stream": True, "run_tools_eagerly": True}],
        ids=["plain", "history", "stream", "eager"],
    )
    async def test_a_run(self, telemetry: Telemetry, client: Any, options: Any) -> None:
        assert await self.run(client, "parallel-2x3", **options) == "Finished after 3 turns."
        assert len(telemetry.chats) == 4
        tools = telemetry.tools
        assert [of(span, "loopguard.iteration") for span in tools] == [1, 1, 2, 2, 3, 3]
        assert {of(span, "gen_ai.tool.name") for span in tools} == {"search"}
        assert len({of(span, "gen_ai.tool.call.id") for span in tools}) == 6
        assert {severity for _, severity in telemetry.patterns} == {"warning"}
        assert_one_run(telemetry)

    async def test_a_tool_that_raises(self, telemetry: Telemetry, client: Any) -> None:
        answers = []
        for watched in (True, False):
            if not watched:
                telemetry.uninstrument()
            answers.append(await self.run(client, "loop-3", ValueError("secret")))
        assert answers[0] == answers[1] == "Finished after 3 turns."
        assert [of(span, "loopguard.outcome") for span in telemetry.tools[:3]] == ["error"] * 3
        assert {of(span, "error.type") for span in telemetry.tools[:3]} <= {"tool_error"}
        assert [pattern for pattern, _ in telemetry.patterns] == ["retry_storm"]
        assert "secret" not in "".join(span.to_json() for span in telemetry.spans)

    @pytest.mark.filterwarnings("ignore:Tool 'ghost_tool' not found")
    async def test_a_tool_that_does_not_exist(self, telemetry: Telemetry, client: Any) -> None:
        assert await self.run(client, "ghost-2") == "Finished after 2 turns."
        assert [of(span, "loopguard.outcome") for span in telemetry.tools] == ["unknown_tool"] * 2
        assert "ghost" not in "".join(span.to_json() for span in telemetry.tools)
        assert_one_run(telemetry)


class Drained:
    """A runner that streams, as the messages that its streams give."""

    def __init__(self, runner: Any) -> None:
        self._runner = runner
        if hasattr(runner, "__aiter__"):
            self.__class__ = AsyncDrained

    def __iter__(self) -> Any:
        return (stream.get_final_message() for stream in self._runner)


class AsyncDrained(Drained):
    """The same of an async runner."""

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for stream in self._runner:
            yield await stream.get_final_message()


def assert_one_run(telemetry: Telemetry) -> None:
    """All is below one agent's span, in one trace and run."""
    (agent,) = telemetry.agents
    parts = [*telemetry.chats, *telemetry.tools]
    assert len(telemetry.spans) == 1 + len(parts)
    assert {span.parent and span.parent.span_id for span in parts} == {agent.context.span_id}
    assert len({of(span, "loopguard.run_id") for span in parts}) == 1


def scope(span: ReadableSpan) -> str:
    assert span.instrumentation_scope is not None
    return span.instrumentation_scope.name


POSTS = ("SyncAPIClient.post", "AsyncAPIClient.post")


def test_what_was_wrapped_is_restored() -> None:
    assert_restored(anthropic._base_client, POSTS)


def test_below_another_wrapper_ours_is_inert(server: ScriptedModel) -> None:
    def ask() -> None:
        with connect(server.base_url, is_async=False) as client:
            client.messages.create(**Messages().request("loop-1", [USER]))

    assert_inert_below_another(anthropic._base_client, POSTS[0], ask)
