"""What holds of broken loops in any framework: how often the tool ran, what the model was told."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

import otel_loopguard as loopguard
from tests.frameworks.loops import tick
from tests.frameworks.support import MARKER, Api, Conversation, Telemetry, entered, of, offers

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.sdk.trace import ReadableSpan

    from examples.scripted_model import ScriptedModel

PAGE = "nothing was found, here or anywhere else, by nobody who has ever looked for it so far"
EVER = 50
"""So many rounds are for ever."""
both = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


class Counted:
    """A tool that finds nothing, and counts how often it really looked."""

    def __init__(self) -> None:
        self.made = 0

    def look(self) -> str:
        self.made += 1
        return PAGE

    @property
    def decorated(self) -> Callable[[str], str]:
        """As a hand-written loop calls it, with arguments as JSON text."""

        @loopguard.tool
        def search(query: str, page: int) -> str:
            return self.look()

        return lambda args: search(**json.loads(args))

    @property
    def adecorated(self) -> Callable[[str], Any]:
        """The same, async."""

        @loopguard.tool(name="search")
        async def asearch(query: str, page: int) -> str:
            await asyncio.sleep(0)
            return self.look()

        return lambda args: asearch(**json.loads(args))


def interventions(telemetry: Telemetry) -> list[tuple[Any, ...]]:
    """The ladder as the events tell it: pattern, what was done, on which level, in which mode."""
    names = ("pattern", "intervention", "recovery_level", "mode")
    return [
        tuple((event.attributes or {})[f"loopguard.{name}"] for name in names)
        for span in telemetry.tools
        for event in span.events
        if event.name == "loopguard.intervention"
    ]


def held(telemetry: Telemetry) -> list[ReadableSpan]:
    """The spans of calls that were not made."""
    return [span for span in telemetry.tools if of(span, "loopguard.intervention")]


def assert_nudged(telemetry: Telemetry, server: ScriptedModel, tool: Counted) -> None:
    """The fourth equal call was not made, and the model was told so under its id, and ended."""
    assert tool.made == 3
    assert len(server.requests) <= 3 + 4
    assert interventions(telemetry) == [("hard_loop", "inject_correction", 1, "nudge")]
    (span,) = held(telemetry)
    call_id = of(span, "gen_ai.tool.call.id")
    (told,) = answers(server.requests[-1]["body"], call_id)
    assert MARKER in told
    assert "3 times" in told
    assert of(span, "loopguard.outcome") is None
    assert of(span, "loopguard.status") == "deadlocked"


LADDER = [
    *[("hard_loop", "inject_correction", 1, "break")] * 2,
    ("hard_loop", "end_run", 3, "break"),
]


def assert_broken(telemetry: Telemetry, server: ScriptedModel, tool: Counted) -> None:
    """A model that ignores notes was stopped at the sixth call, and no span is open."""
    assert tool.made == 3
    assert len(server.requests) <= 6
    assert interventions(telemetry) == LADDER
    (agent,) = telemetry.agents
    assert of(agent, "loopguard.end_reason") == "deadlock"
    tick()  # a stream that was left is over by now
    assert len(telemetry.chats) == len(server.requests)
    assert "nothing was found" not in "".join(span.to_json() for span in telemetry.spans)


def answers(body: Any, call_id: str) -> list[str]:
    """What a request says under the id of a call, whatever its form."""
    found: list[str] = []
    if isinstance(body, dict):
        answered = {body.get(key) for key in ("tool_call_id", "call_id", "tool_use_id")}
        said = body.get("output") or body.get("content")
        if call_id in answered and said is not None:
            found.append(json.dumps(said))
        body = list(body.values())
    if isinstance(body, list):
        found += [text for each in body for text in answers(each, call_id)]
    return found


class ByHand:
    """A hand-written loop whose tool is decorated; one subclass an endpoint."""

    api: ClassVar[Api]
    connect: ClassVar[Callable[..., Any]]

    @pytest.fixture(params=[False, True], ids=["sync", "async"])
    async def loop(self, request: pytest.FixtureRequest, server: ScriptedModel) -> Any:
        """Makes a loop over a sync or an async client, with a tool of the same kind."""

        clients = AsyncExitStack()

        async def make(
            model: str, tool: Counted, way: str = "create", **options: Any
        ) -> Conversation:
            # an old client keeps the methods that it finds when it is made: instrument comes first
            client = type(self).connect(server.base_url, is_async=request.param)
            client = await clients.enter_async_context(entered(client))
            if not offers(self.api, client, way):
                pytest.skip(f"this version cannot {way}")
            search = tool.adecorated if request.param else tool.decorated
            return Conversation(self.api, client, model, way, tool=search, most=EVER, **options)

        async with clients:
            yield make

    async def test_observed_it_goes_on(self, telemetry: Telemetry, loop: Any) -> None:
        telemetry.instrument(action="observe")
        tool = Counted()
        assert await (await loop("nudge", tool)).go() == ""
        assert tool.made == EVER
        assert interventions(telemetry) == []

    @pytest.mark.parametrize("way", ["create", "stream", "helper"])
    async def test_a_note_ends_it(
        self, telemetry: Telemetry, server: ScriptedModel, loop: Any, way: str
    ) -> None:
        telemetry.instrument(action="nudge")
        tool = Counted()
        assert await (await loop("nudge", tool, way)).go() == "Finished after 4 turns."
        assert_nudged(telemetry, server, tool)

    @pytest.mark.parametrize("way", ["create", "stream"])
    async def test_who_ignores_notes_is_stopped(
        self, telemetry: Telemetry, server: ScriptedModel, loop: Any, way: str
    ) -> None:
        telemetry.instrument(action="break")
        tool = Counted()
        with pytest.raises(loopguard.DeadlockError) as caught:
            await (await loop("loop", tool, way)).go()
        assert_broken(telemetry, server, tool)
        (agent,) = telemetry.agents
        assert caught.value.run_id == of(agent, "loopguard.run_id")

    async def test_a_loop_that_swallows_the_error_stays_stopped(
        self, telemetry: Telemetry, loop: Any
    ) -> None:
        telemetry.instrument(action="break")
        tool = Counted()
        talk = await loop("loop", tool)
        inner = talk.tool

        async def swallowing(args: str) -> str:
            try:
                value = inner(args)
                return await value if asyncio.iscoroutine(value) else value
            except loopguard.DeadlockError:
                return "stopped"

        talk.tool = swallowing
        for _ in range(20):
            await talk.step()
        assert tool.made == 3

    async def test_calls_at_once_are_decided_each_for_itself(
        self, telemetry: Telemetry, server: ScriptedModel, loop: Any
    ) -> None:
        telemetry.instrument(action="nudge")
        tool = Counted()
        await (await loop("parallel-2x6", tool)).go()
        assert tool.made == 6
        assert len(held(telemetry)) == 6
        for span in held(telemetry):
            (told,) = answers(server.requests[-1]["body"], of(span, "gen_ai.tool.call.id"))
            assert MARKER in told

    async def test_a_shadow_lets_every_call_go(self, telemetry: Telemetry, loop: Any) -> None:
        telemetry.instrument(action="shadow")
        tool = Counted()
        await (await loop("loop-6", tool)).go()
        assert tool.made == 6
        would = [of(span, "loopguard.would_intervene") for span in telemetry.tools]
        assert would == [None] * 3 + [True] * 3
        assert held(telemetry) == []
        assert [each[:3] for each in interventions(telemetry)] == [each[:3] for each in LADDER]

    @pytest.mark.parametrize("model", ["paging-12", "answer", "loop-2"])
    async def test_healthy_work_is_let_alone(
        self, telemetry: Telemetry, server: ScriptedModel, loop: Any, model: str
    ) -> None:
        told: list[Any] = []
        for action in ("observe", "break"):
            telemetry.instrument(action=action)
            before = len(server.requests)
            page = iter(range(100))
            talk = await loop(model, Counted())
            found = loopguard.tool(lambda query, page: f"{PAGE} on {page}", name="search")
            talk.tool = lambda args, page=page, found=found: (
                found(**json.loads(args)) + str(next(page))
            )
            answer = await talk.go()
            told.append((answer, len(server.requests) - before))
            telemetry.uninstrument()
        assert told[0] == told[1]
        assert interventions(telemetry) == []
