"""What holds of broken loops in any framework: how often the tool ran, what the model was told."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.thread import _worker as worker
from contextlib import AsyncExitStack
from contextvars import copy_context
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

import otel_loopguard as loopguard
from tests.frameworks.loops import tick
from tests.frameworks.support import (
    MARKER,
    Api,
    Conversation,
    Said,
    Telemetry,
    entered,
    maybe,
    of,
    offers,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.sdk.trace import Event, ReadableSpan

    from examples.scripted_model import ScriptedModel

PAGE = "nothing was found, here or anywhere else, by nobody who has ever looked for it so far"
EVER = 50
"""So many rounds are for ever."""
both = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


class Counted:
    """A tool that finds nothing, and counts how often it really looked.

    Args:
        healthy: it finds something else each time.
    """

    def __init__(self, *, healthy: bool = False) -> None:
        self.made = 0
        self._pages = count(1) if healthy else None

    def look(self) -> str:
        self.made += 1
        return PAGE if self._pages is None else f"{PAGE} on page {next(self._pages)}"

    def search(self, query: str, page: int) -> str:
        return self.look()

    async def asearch(self, query: str, page: int) -> str:
        await asyncio.sleep(0)
        return self.look()


GUARDS = ("decorated", "call_tool", "held")
"""How a hand-written loop lets the guard decide about its calls."""


class Guarded(Conversation):
    """A hand-written agent, the calls of one response at once, each decided about before."""

    def of(self, tool: Counted, guard: str, *, is_async: bool) -> Guarded:
        """Give it a tool, and the way in which its calls are decided about."""
        function = tool.asearch if is_async else tool.search
        self.is_async = is_async
        if guard == "decorated":
            guarded = loopguard.tool(function, name="search")
            self.call: Callable[..., Any] = lambda _id, _name, args: guarded(**json.loads(args))
        elif guard == "call_tool":
            self.call = lambda call_id, name, args: loopguard.call_tool(
                function, name, args, call_id
            )
        else:
            self.call = partial(self.ask_first, function)
        return self

    def ask_first(self, function: Callable[..., Any], call_id: str, name: str, args: str) -> Any:
        note = loopguard.held(name, args, call_id)
        return function(**json.loads(args)) if note is None else note

    async def answers(self, said: Said) -> list[str]:
        if self.is_async or len(said.calls) < 2:
            return await asyncio.gather(*(self.run(*call) for call in said.calls))
        with ThreadPoolExecutor(len(said.calls)) as pool:
            jobs = [pool.submit(copy_context().run, self.call, *call) for call in said.calls]
            return [job.result() for job in jobs]

    async def run(self, call_id: str, name: str, args: str) -> str:
        return await maybe(self.call(call_id, name, args))


def interventions(telemetry: Telemetry) -> list[tuple[Any, ...]]:
    """The ladder as the events tell it: pattern, what was done, on which level, in which mode."""
    names = ("pattern", "intervention", "recovery_level", "mode")
    return [
        tuple((event.attributes or {})[f"loopguard.{name}"] for name in names)
        for event in intervention_events(telemetry)
    ]


def intervention_events(telemetry: Telemetry) -> list[Event]:
    """The events that say what was done, in their order."""
    events = [event for span in telemetry.spans for event in span.events]
    told = [event for event in events if event.name == "loopguard.intervention"]
    return sorted(told, key=lambda event: event.timestamp)


def held(telemetry: Telemetry) -> list[ReadableSpan]:
    """The spans of calls that were not made."""
    return [span for span in telemetry.tools if of(span, "loopguard.intervention")]


def assert_nudged(telemetry: Telemetry, server: ScriptedModel, tool: Counted) -> None:
    """The fourth equal call was not made, and the model was told so under its id, and ended."""
    assert tool.made == 3
    assert len(telemetry.tools) == 3 + 1
    assert len(server.requests) <= 3 + 4
    assert interventions(telemetry) == [("hard_loop", "inject_correction", 1, "nudge")]
    (span,) = held(telemetry)
    call_id = of(span, "gen_ai.tool.call.id")
    (told,) = answers(server.requests[-1]["body"], call_id)
    assert MARKER in told
    assert "3 times" in told
    assert of(span, "loopguard.outcome") is None
    assert of(span, "loopguard.status") == "deadlocked"


SKIPPED = "loopguard.skipped_interventions"
LADDER = [
    *[("hard_loop", "inject_correction", 1, "break")] * 2,
    ("hard_loop", "force_final_answer", 2, "break"),
    ("hard_loop", "end_run", 3, "break"),
]


async def assert_broken(
    telemetry: Telemetry, server: ScriptedModel, tool: Counted, *, at_once: int = 1
) -> None:
    """A model that ignores notes was stopped at the sixth call, and nothing of it goes on."""
    tick()  # a stream that was left is over by now
    assert tool.made == 3 * at_once
    assert len(server.requests) <= 6
    done = interventions(telemetry)
    kept = any("thread" in each["body"] for each in server.requests)
    if at_once == 1:  # where the server keeps the tools, they cannot be taken away
        assert done == [each for each in LADDER if not (kept and each[1] == "force_final_answer")]
        skipped = (intervention_events(telemetry)[-1].attributes or {}).get(SKIPPED, ())
        assert tuple(skipped) == tuple(["force_final_answer"] * kept)
    assert done[-1] == LADDER[-1]
    (agent,) = telemetry.agents
    assert of(agent, "loopguard.end_reason") == "deadlock"
    assert len(telemetry.chats) == len(server.requests)
    assert "nothing was found" not in "".join(span.to_json() for span in telemetry.spans)
    assert telemetry.open.spans == {}
    await assert_nothing_goes_on()


OTHERS = ("MainThread", "loopguard", "(_serve)", "(serve_forever)")
"""In the names of threads that may be there: ours, and the scripted model's."""


async def assert_nothing_goes_on() -> None:
    """No task was left behind, and no thread at work."""
    for _ in range(20):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    for thread in threading.enumerate():
        if not any(map(thread.name.__contains__, OTHERS)):
            for _ in range(100):
                if is_idle(thread):
                    break
                thread.join(0.1)
            assert is_idle(thread), thread.name


def is_idle(thread: threading.Thread) -> bool:
    """Whether a thread is over, or waits for work in a pool that somebody keeps."""
    frame = sys._current_frames().get(thread.ident or 0)
    return frame is None or frame.f_code is worker.__code__


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
    """A hand-written loop; one subclass an endpoint."""

    api: ClassVar[Api]
    connect: ClassVar[Callable[..., Any]]

    @pytest.fixture(params=GUARDS)
    def guard(self, request: pytest.FixtureRequest) -> str:
        return request.param

    @pytest.fixture(params=[False, True], ids=["sync", "async"])
    async def loop(self, request: pytest.FixtureRequest, server: ScriptedModel, guard: str) -> Any:
        """Makes a loop over a sync or an async client, with a tool of the same kind."""

        clients = AsyncExitStack()

        async def make(model: str, tool: Counted, way: str = "create", **options: Any) -> Guarded:
            # an old client keeps the methods that it finds when it is made: instrument comes first
            client = type(self).connect(server.base_url, is_async=request.param)
            client = await clients.enter_async_context(entered(client))
            if not offers(self.api, client, way):
                pytest.skip(f"this version cannot {way}")
            loop = Guarded(self.api, client, model, way, most=EVER, **options)
            return loop.of(tool, guard, is_async=request.param)

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
        talk = await loop("loop+deaf", tool, way)
        with pytest.raises(loopguard.DeadlockError) as caught:
            await talk.go()
        await assert_broken(telemetry, server, tool)
        (agent,) = telemetry.agents
        assert caught.value.run_id == of(agent, "loopguard.run_id")
        assert str(talk.history).count(MARKER) == 2  # all that there is so far is the caller's

    @pytest.mark.parametrize("way", ["create", "stream"])
    async def test_who_ignores_notes_is_made_to_answer(
        self, telemetry: Telemetry, server: ScriptedModel, loop: Any, way: str
    ) -> None:
        telemetry.instrument(action="break")
        tool = Counted()
        talk = await loop("loop", tool, way)
        assert (await talk.go()).startswith("Finished")
        assert tool.made == 3
        assert len(server.requests) == 6
        assert interventions(telemetry) == LADDER[:-1]
        assert "none" in str(server.requests[-1]["body"]["tool_choice"])
        assert all("tool_choice" not in each["body"] for each in server.requests[:-1])

    async def test_a_loop_that_swallows_the_error_stays_stopped(
        self, telemetry: Telemetry, loop: Any
    ) -> None:
        telemetry.instrument(action="break")
        tool = Counted()
        talk = await loop("loop", tool)
        call = talk.call

        async def swallowing(*asked: str) -> str:
            try:
                return await maybe(call(*asked))
            except loopguard.DeadlockError:
                return "stopped"

        talk.call = swallowing
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
        assert len(telemetry.tools) == 12
        assert len(held(telemetry)) == 6
        for span in held(telemetry):
            (told,) = answers(server.requests[-1]["body"], of(span, "gen_ai.tool.call.id"))
            assert MARKER in told

    @pytest.mark.parametrize("way", ["create", "stream"])
    async def test_calls_at_once_are_stopped(
        self, telemetry: Telemetry, server: ScriptedModel, loop: Any, way: str
    ) -> None:
        telemetry.instrument(action="break")
        tool = Counted()
        with pytest.raises(loopguard.DeadlockError):
            await (await loop("parallel-2+deaf", tool, way)).go()
        await assert_broken(telemetry, server, tool, at_once=2)

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
            answer = await (await loop(model, Counted(healthy=True))).go()
            told.append((answer, len(server.requests) - before))
            telemetry.uninstrument()
        assert told[0] == told[1]
        assert interventions(telemetry) == []
