"""openai: each loop ends on its own rung."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

import otel_loopguard as loopguard
from otel_loopguard.runtime import boundary
from tests.frameworks.breaking import SKIPPED, intervention_events, interventions
from tests.frameworks.openai_apis import Chat, Responses, connect
from tests.frameworks.rungs import (
    ANSWERS,
    RUNGS,
    Agent,
    Deleting,
    Rung,
    answers,
    assert_answered,
    assert_asked,
    assert_recovered,
    parameters,
)
from tests.frameworks.support import Conversation, Telemetry, entered, of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from examples.scripted_model import ScriptedModel


def tools_of(api: Any, rung: Rung) -> list[dict[str, Any]]:
    """The tools of a loop, as an endpoint wants them."""
    told = [{"name": each.__name__, "parameters": parameters(each)} for each in rung.tools]
    if isinstance(api, Chat):
        return [{"type": "function", "function": each} for each in told]
    return [{"type": "function", **each} for each in told]


@pytest.mark.parametrize("way", ["create", "stream"])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("api", [Chat(), Responses()], ids=["chat", "responses"])
@pytest.mark.parametrize("rung", RUNGS, ids=[each.pattern for each in RUNGS])
async def test_a_loop_ends_on_its_rung(
    telemetry: Telemetry, server: ScriptedModel, rung: Rung, api: Any, way: str, *, is_async: bool
) -> None:
    telemetry.instrument(action="nudge")
    async with entered(connect(server.base_url, is_async=is_async)) as client:
        agent = Agent(api, client, rung.model, way, most=20, more={"tools": tools_of(api, rung)})
        agent.functions = rung.tools
        assert (await agent.go()).startswith("Finished")
    assert agent.spoken == ["Find it."]
    assert_recovered(telemetry, rung, server.requests)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("api", [Chat(), Responses()], ids=["chat", "responses"])
async def test_who_is_refused_asks_a_human(
    telemetry: Telemetry, server: ScriptedModel, api: Any, *, is_async: bool
) -> None:
    deleting = Deleting()
    telemetry.instrument(action="break", tools="delete:irreversible", escalate=deleting.ask)
    rung = Rung(deleting.pattern, "plead", (deleting.delete,), ("escalate_to_human", 3), True)
    async with entered(connect(server.base_url, is_async=is_async)) as client:
        agent = Agent(api, client, rung.model, most=20, more={"tools": tools_of(api, rung)})
        agent.functions = rung.tools
        assert (await agent.go()).startswith("Finished")
    assert_asked(telemetry, deleting)


def deleting_agent(api: Any, client: Any, deleting: Deleting, way: str = "create") -> Agent:
    """An agent whose calls are turned down until a human has said yes."""
    rung = Rung(deleting.pattern, "plead", (deleting.delete,), ("escalate_to_human", 3), True)
    agent = Agent(api, client, "plead", way, most=20, more={"tools": tools_of(api, rung)})
    agent.functions = rung.tools
    return agent


@answers
@pytest.mark.parametrize("way", ["create", "stream"])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("api", [Chat(), Responses()], ids=["chat", "responses"])
async def test_a_human_says_whether_the_next_request_is_sent(
    telemetry: Telemetry, server: ScriptedModel, api: Any, way: str, answer: str, *, is_async: bool
) -> None:
    deleting = Deleting(answer)
    telemetry.instrument(action="break", escalate=deleting.ask, escalate_timeout_s=1)
    async with entered(connect(server.base_url, is_async=is_async)) as client:
        agent = deleting_agent(api, client, deleting, way)
        await assert_answered(telemetry, server, deleting, answer, agent.go)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_after_a_yes_there_is_one_more_step_of_grace(
    telemetry: Telemetry, server: ScriptedModel, *, is_async: bool
) -> None:
    deleting = Deleting(stays=True)
    telemetry.instrument(action="break", escalate=deleting.ask)
    async with entered(connect(server.base_url, is_async=is_async)) as client:
        with pytest.raises(loopguard.DeadlockError):
            await deleting_agent(Chat(), client, deleting).go()
    assert (deleting.made, len(deleting.asked)) == (6, 1)
    told = [each[1] for each in interventions(telemetry)]
    assert told == [*["inject_correction"] * 2, "escalate_to_human", "end_run"]
    assert telemetry.agents[0].attributes["loopguard.end_reason"] == "deadlock"
    assert telemetry.open.spans == {}


async def test_who_has_nobody_to_ask_passes_the_human_over_and_says_so(
    telemetry: Telemetry, server: ScriptedModel
) -> None:
    deleting = Deleting()
    telemetry.instrument(action="break")
    async with entered(connect(server.base_url, is_async=False)) as client:
        with pytest.raises(loopguard.DeadlockError):
            await deleting_agent(Chat(), client, deleting).go()
    assert deleting.made == 5
    last = intervention_events(telemetry)[-1].attributes or {}
    assert last["loopguard.intervention"] == "end_run"
    assert last[SKIPPED] == ("escalate_to_human",)


async def test_in_a_shadow_nobody_is_asked_about_a_request(
    telemetry: Telemetry, server: ScriptedModel
) -> None:
    deleting = Deleting()
    telemetry.instrument(action="shadow", escalate=deleting.ask)
    async with entered(connect(server.base_url, is_async=False)) as client:
        await deleting_agent(Chat(), client, deleting).go()
    assert (deleting.made, deleting.asked) == (20, [])
    assert ("guardrail_loop", "escalate_to_human", 3, "shadow") in interventions(telemetry)


async def test_who_is_cancelled_while_a_human_is_asked_sends_nothing(
    telemetry: Telemetry, server: ScriptedModel
) -> None:
    deleting = Deleting("escalation_timeout")
    telemetry.instrument(action="break", escalate=deleting.ask)
    async with entered(connect(server.base_url, is_async=True)) as client:
        agent = deleting_agent(Chat(), client, deleting)
        async with loopguard.run("agent"):
            for _ in range(5):
                await agent.step()
            task = asyncio.ensure_future(agent.step())
            await deleting.called.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            with pytest.raises(loopguard.DeadlockError):
                await agent.step()
    assert len(server.requests) == 5
    (wait,) = (span for span in telemetry.spans if span.name == "loopguard.escalation")
    assert of(wait, "loopguard.verdict") == "error"
    assert telemetry.open.spans == {}


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_a_fault_of_ours_while_a_human_is_asked_is_no_yes(
    telemetry: Telemetry,
    server: ScriptedModel,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_async: bool,
) -> None:
    def fault(*_: object, **__: object) -> None:
        raise KeyError(0)

    monkeypatch.setattr(boundary, "reraise", False)
    monkeypatch.setattr("otel_loopguard.sdk.attributes.escalation_attributes", fault)
    monkeypatch.setattr("otel_loopguard.core.guard.Guard.answer", fault)
    deleting = Deleting("refused")
    telemetry.instrument(action="break", escalate=deleting.ask)
    async with entered(connect(server.base_url, is_async=is_async)) as client:
        with pytest.raises(loopguard.DeadlockError):
            await deleting_agent(Chat(), client, deleting).go()
    assert (deleting.made, len(server.requests)) == (5, 5)
    assert telemetry.open.spans == {}
    assert boundary.faults == {"start of an escalation": 1, "end of an escalation": 1}
    boundary.faults.clear()


@answers
async def test_before_a_run_ends_whose_calls_nobody_can_ask_about_a_human_is_asked(
    telemetry: Telemetry, server: ScriptedModel, client: Callable[[], Any], answer: str
) -> None:
    human = Deleting(answer)
    telemetry.instrument(action="break", tools="search:irreversible", hard_loop_critical=50)
    talk = Conversation(Chat(), client(), "loop+deaf")

    async def step(_: Any) -> None:
        await talk.step()

    result = await loopguard.run_guarded_async(
        step, name="clerk", escalate=human.ask, escalate_timeout_s=1, max_iterations=20
    )
    reason = ANSWERS[answer][1] or "deadlock"
    assert result.stop_reason.value == reason
    assert [request.agent for request in human.asked] == ["clerk"]
    assert talk.executed == (6 if answer == "approved" else 5)
    assert len(server.requests) == talk.executed
    told = [each[1] for each in interventions(telemetry)]
    assert told[:3] == ["inject_correction", "force_final_answer", "escalate_to_human"]
    assert told[3:] == ["end_run"] * (answer == "approved")
    assert telemetry.agents[0].attributes["loopguard.end_reason"] == reason
    assert telemetry.open.spans == {}


MUSING = next(each for each in RUNGS if each.pattern == "reflection_paralysis")


def musing(client: Any, model: str = "muse", **more: Any) -> Agent:
    """An agent that only talks, over chat completions."""
    more = {"tools": tools_of(Chat(), MUSING), **more}
    return Agent(Chat(), client, model, most=8, more=more)


@pytest.fixture
def client(server: ScriptedModel) -> Iterator[Callable[[], Any]]:
    """Makes a client, once this is instrumented: an old one keeps the methods that it finds."""
    with ExitStack() as clients:
        yield lambda: clients.enter_context(connect(server.base_url, is_async=False))


async def test_a_temperature_that_is_given_is_lowered(
    telemetry: Telemetry, server: ScriptedModel, client: Callable[[], Any]
) -> None:
    telemetry.instrument(action="break")
    with pytest.raises(loopguard.DeadlockError):
        await musing(client(), temperature=1.0).go()
    sent = [each["body"]["temperature"] for each in server.requests]
    assert sent == [1.0] * 4 + [0.5]
    done = [each[1] for each in interventions(telemetry)]
    assert done == ["force_action_prompt", "lower_temperature", "end_run"]
    assert telemetry.agents[0].attributes["loopguard.end_reason"] == "deadlock"
    assert telemetry.open.spans == {}


async def test_one_that_is_not_given_is_left_to_the_model(
    telemetry: Telemetry, server: ScriptedModel, client: Callable[[], Any]
) -> None:
    telemetry.instrument(action="break")
    with pytest.raises(loopguard.DeadlockError):
        await musing(client()).go()
    assert not any("temperature" in each["body"] for each in server.requests)
    skipped = [
        (event.attributes or {}).get(SKIPPED, ()) for event in intervention_events(telemetry)
    ]
    assert skipped == [(), ("lower_temperature",), ("lower_temperature",)]


async def test_a_shadow_changes_nothing(
    telemetry: Telemetry, server: ScriptedModel, client: Callable[[], Any]
) -> None:
    for action in ("observe", "shadow"):
        telemetry.instrument(action=action)
        await musing(client(), temperature=1.0).go()
        telemetry.uninstrument()
    bodies = [each["body"] for each in server.requests]
    assert bodies[:8] == bodies[8:]
    done = [each[1:] for each in interventions(telemetry)]
    assert done == [
        ("force_action_prompt", 1, "shadow"),
        ("lower_temperature", 2, "shadow"),
        *[("end_run", 3, "shadow")] * 3,
    ]
    assert sum(bool(of(span, "loopguard.would_intervene")) for span in telemetry.chats) == 5


async def test_what_the_application_replaces_is_left_as_it_is(
    telemetry: Telemetry, server: ScriptedModel, client: Callable[[], Any]
) -> None:
    telemetry.instrument(action="nudge")
    messages = [{"role": "user", "content": "Find it."}, {"role": "assistant", "content": "No."}]
    await musing(client(), extra_body={"messages": messages}).go()
    assert [each["body"]["messages"] for each in server.requests] == [messages] * 8
    assert interventions(telemetry) == []


async def test_constraints_are_said_again_each_fifth_iteration(
    telemetry: Telemetry, server: ScriptedModel, client: Callable[[], Any]
) -> None:
    telemetry.instrument(action="nudge")
    agent = Agent(Chat(), client(), "paging-11", most=20, more={"tools": tools_of(Chat(), MUSING)})
    agent.functions = (lambda query, page: f"row {page * 7919} of {query}",)
    agent.functions[0].__name__ = "search"
    with loopguard.run("kept", constraints=["Never delete anything."]):
        await agent.go()
    said = ["Never delete anything." in str(each["body"]) for each in server.requests]
    assert [n for n, each in enumerate(said) if each] == [5, 10]
    marked = [of(span, "loopguard.intervention") for span in telemetry.chats]
    assert [n for n, each in enumerate(marked) if each] == [5, 10]
    assert interventions(telemetry) == []
    assert "Never delete" not in "".join(span.to_json() for span in telemetry.spans)


async def test_a_history_is_left_out_but_for_its_ends(
    telemetry: Telemetry, server: ScriptedModel, client: Callable[[], Any]
) -> None:
    telemetry.instrument(action="break")
    rung = next(each for each in RUNGS if each.pattern == "context_rot")
    gone: list[int] = []

    def summarise(messages: Any) -> str:
        gone.append(len(messages))
        return "The notes were read twice."

    agent = Agent(Chat(), client(), "slices", most=20, more={"tools": tools_of(Chat(), rung)})
    agent.functions = rung.tools
    with (
        loopguard.run("reader", objective="Read the notes.", summarise=summarise),
        pytest.raises(loopguard.DeadlockError),
    ):
        await agent.go()
    told = ["The notes were read twice." in str(each["body"]) for each in server.requests]
    short = server.requests[told.index(True)]["body"]["messages"]
    assert [each["role"] for each in short] == [
        "user", "user", "assistant", "tool", "assistant", "tool", "user"
    ]  # fmt: skip
    assert gone == [len(server.requests[told.index(True) - 1]["body"]["messages"]) - 4]
    anchored = ["Your objective: Read the notes." in str(each["body"]) for each in server.requests]
    assert sum(anchored) == 2


async def test_a_fault_of_ours_lets_the_request_go(
    telemetry: Telemetry,
    server: ScriptedModel,
    client: Callable[[], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError

    telemetry.instrument(action="break")
    monkeypatch.setattr(boundary, "reraise", False)
    monkeypatch.setattr("otel_loopguard.instrumentation.wire.forms.Body.__init__", fail)
    assert await musing(client()).go() == ""
    assert len(server.requests) == 8
    assert len(telemetry.chats) == 8
    assert boundary.faults.pop("advice on a request") == 5
