"""A guarded run as it is seen: its span, its findings, its tokens, and how it ends."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.trace import StatusCode

import otel_loopguard as loopguard
from otel_loopguard import Done, run_guarded, run_guarded_async
from otel_loopguard.breaking import AgentResult, Progress, StopReason
from otel_loopguard.core.exchange import ModelResponse
from otel_loopguard.instrumentation import wiring
from otel_loopguard.instrumentation.models import open_model
from tests.signals import Signals, attributes
from tests.test_interventions import told

if TYPE_CHECKING:
    from otel_loopguard.breaking import Request

ROOT = Path(__file__).resolve().parents[1]
PAGE = "The page that this search finds every time, whatever the agent hoped for, and then some."


@pytest.fixture
def signals() -> Signals:
    return Signals()


@loopguard.tool
def search(query: str) -> str:
    return PAGE


@loopguard.tool
def read(page: int) -> str:
    return f"page {page}: something else each time, and enough of it to be news for whoever reads"


def looping(_: Progress) -> None:
    search("where is it?")


def working(progress: Progress) -> None:
    read(progress.iteration)


def ask_model(tokens: int) -> None:
    wired = wiring.current()
    assert wired is not None
    call = open_model(wired.pipeline, "m-1", "somebody")
    assert call is not None
    call.finish(ModelResponse(text=f"so many: {tokens}", input_tokens=tokens - 1, output_tokens=1))


def reason(signals: Signals, name: str = "invoke_agent agent") -> tuple[object, ...]:
    span = signals.span(name)
    said = attributes(span)
    return said["loopguard.end_reason"], said.get("error.type"), span.status.status_code


def test_it_is_an_agent_run_and_its_steps_are_in_it(signals: Signals) -> None:
    def step(progress: Progress) -> Done | None:
        working(progress)
        return Done("found") if progress.iteration == 3 else None

    with signals.instrumented():
        result = run_guarded(step, name="finder")
    assert (result.success, result.output, result.iterations_used) == (True, "found", 3)
    agent = signals.span("invoke_agent finder")
    assert attributes(agent)["loopguard.iteration"] == 3
    assert reason(signals, "invoke_agent finder") == ("answer", None, StatusCode.UNSET)
    for span in signals.named("execute_tool read"):
        assert span.parent is not None
        assert span.parent.span_id == agent.context.span_id
        assert attributes(span)["gen_ai.agent.name"] == "finder"
    assert result.findings == ()


def test_a_critical_finding_ends_it_though_nothing_is_held_back(signals: Signals) -> None:
    with signals.instrumented():
        result = run_guarded(looping, partial_context=lambda p: p.iteration, final=str)
    assert result.stop_reason is StopReason.DEADLOCK
    assert (result.success, result.iterations_used) == (False, 5)
    assert (result.partial_context, result.output) == (5, "5")
    assert [each.severity.label for each in result.findings] == ["warning", "critical"]
    assert result.error is None
    assert reason(signals) == ("deadlock", "deadlock", StatusCode.ERROR)
    assert set(signals.points("loopguard.stuck_runs").values()) == {0}


def test_where_loops_are_broken_the_error_ends_it(signals: Signals) -> None:
    notes: list[str] = []
    with signals.instrumented(action="break"):
        result = run_guarded(lambda _: notes.append(search("where is it?")))
    assert result.stop_reason is StopReason.DEADLOCK
    assert result.iterations_used == 6
    assert isinstance(result.error, loopguard.DeadlockError)
    assert [note[:22] for note in notes[3:]] == ["This call was not made"] * 2
    assert reason(signals) == ("deadlock", "otel_loopguard.DeadlockError", StatusCode.ERROR)
    assert result.findings == (result.error.finding,)


def test_the_last_answer_may_call_models_and_tools_again(signals: Signals) -> None:
    def last(_: object) -> str:
        ask_model(10)
        return search("where is it?")

    with signals.instrumented(action="break"):
        result = run_guarded(looping, final=last)
    assert (result.stop_reason, result.output) == (StopReason.DEADLOCK, PAGE)
    model = signals.span("chat m-1")
    assert model.parent is not None
    assert model.parent.span_id == signals.span("invoke_agent agent").context.span_id


@pytest.mark.parametrize(
    ("options", "stop", "steps"),
    [
        ({}, StopReason.MAX_ITERATIONS, 10),
        ({"max_iterations": 3}, StopReason.MAX_ITERATIONS, 3),
        ({"max_iterations": None, "max_cost": 1.0}, StopReason.BUDGET, 4),
        ({"max_seconds": 0}, StopReason.BUDGET, 0),
    ],
)
def test_limits_end_it(
    signals: Signals, options: dict[str, Any], stop: StopReason, steps: int
) -> None:
    def step(progress: Progress) -> None:
        working(progress)
        progress.used(cost=0.25)

    with signals.instrumented():
        result = run_guarded(step, **options)
    assert (result.stop_reason, result.iterations_used) == (stop, steps)
    assert reason(signals) == (stop.value, None, StatusCode.UNSET)


def test_the_tokens_of_models_count_those_of_a_sub_agent_too(signals: Signals) -> None:
    spent: list[int] = []

    def step(progress: Progress) -> None:
        working(progress)
        ask_model(10)
        with loopguard.run("helper"):
            ask_model(5)
        progress.used(tokens=1)
        spent.append(progress.spent.tokens)

    with signals.instrumented():
        result = run_guarded(step, max_tokens=40)
        ask_model(1_000)
    assert spent == [16, 32, 48]
    assert (result.stop_reason, result.iterations_used) == (StopReason.BUDGET, 3)


def test_a_sub_agent_in_a_deadlock_is_told_of_and_does_not_end_the_run(signals: Signals) -> None:
    def step(progress: Progress) -> Done | None:
        if progress.iteration == 1:
            with loopguard.run("helper"):
                for _ in range(5):
                    search("where is it?")
        return Done("all the same") if progress.iteration == 2 else None

    with signals.instrumented():
        result = run_guarded(step)
    assert result.output == "all the same"
    assert [each.severity.label for each in result.findings] == ["warning", "critical"]


def test_runs_side_by_side_hear_of_their_own_findings_only(signals: Signals) -> None:
    def one(number: int) -> AgentResult:
        step = looping if number % 2 else working
        return run_guarded(step, name=f"agent-{number}")

    with signals.instrumented(), ThreadPoolExecutor(8) as pool:
        results = list(pool.map(one, range(16)))
    for number, result in enumerate(results):
        stuck = number % 2
        expected = StopReason.DEADLOCK if stuck else StopReason.MAX_ITERATIONS
        assert result.stop_reason is expected
        assert len(result.findings) == (2 if stuck else 0)


def test_one_within_another_is_its_sub_agent(signals: Signals) -> None:
    def outer(_: Progress) -> Done:
        return Done(run_guarded(looping, name="inner").stop_reason)

    with signals.instrumented():
        result = run_guarded(outer, name="outer")
    assert result.output is StopReason.DEADLOCK
    assert len(result.findings) == 2
    inner, around = signals.span("invoke_agent inner"), signals.span("invoke_agent outer")
    assert inner.parent is not None
    assert inner.parent.span_id == around.context.span_id


@pytest.mark.parametrize("leaving", [KeyboardInterrupt, SystemExit])
def test_who_leaves_passes_and_its_span_is_closed(
    signals: Signals, leaving: type[BaseException]
) -> None:
    def leave(_: Progress) -> None:
        raise leaving

    with signals.instrumented() as wired:
        with pytest.raises(leaving):
            run_guarded(leave)
        assert wired.pipeline.listeners == {}
    assert reason(signals) == ("closed", None, StatusCode.UNSET)


def test_what_a_step_raises_is_said_by_its_class(signals: Signals) -> None:
    def fail(_: Progress) -> None:
        raise ValueError(PAGE)

    with signals.instrumented() as wired:
        result = run_guarded(fail)
        assert wired.pipeline.listeners == {}
    assert result.stop_reason is StopReason.ERROR
    assert reason(signals) == ("error", "ValueError", StatusCode.ERROR)
    assert not [span for span in signals.spans if PAGE in span.to_json()]


def test_a_limit_that_is_none_is_refused_before_anything_is_opened(signals: Signals) -> None:
    with signals.instrumented(), pytest.raises(ValueError, match="tokens"):
        run_guarded(looping, max_tokens=-1)
    assert signals.spans == []


# async


@loopguard.tool(name="search")
async def asearch(query: str) -> str:
    await asyncio.sleep(0)
    return PAGE


async def test_async_steps_and_hooks(signals: Signals) -> None:
    async def step(_: Progress) -> None:
        await asearch("where is it?")

    async def final(partial: object) -> str:
        await asyncio.sleep(0)
        return f"out of {partial}"

    with signals.instrumented(action="break"):
        result = await run_guarded_async(
            step, name="finder", partial_context=lambda p: p.iteration, final=final
        )
    assert (result.stop_reason, result.iterations_used) == (StopReason.DEADLOCK, 6)
    assert result.output == "out of 6"
    assert len(told(signals)) == 3
    assert reason(signals, "invoke_agent finder")[0] == "deadlock"


async def test_a_step_that_hangs_is_cancelled_when_the_time_is_up(signals: Signals) -> None:
    undone: list[str] = []

    @loopguard.tool
    async def hang() -> None:
        try:
            await asyncio.sleep(600)
        finally:
            undone.append("undone")

    async def step(_: Progress) -> None:
        await hang()

    with signals.instrumented():
        result = await run_guarded_async(step, max_seconds=0.05, final=lambda _: "in time")
    assert (result.stop_reason, result.output) == (StopReason.BUDGET, "in time")
    assert undone == ["undone"]
    assert result.execution_time >= 0.05
    assert len(signals.named("execute_tool hang")) == 1, "no span is left open"
    assert reason(signals) == ("budget", None, StatusCode.UNSET)


async def test_a_cancellation_from_outside_passes_and_closes_the_span(signals: Signals) -> None:
    started = asyncio.Event()

    async def step(_: Progress) -> None:
        started.set()
        await asyncio.sleep(600)

    with signals.instrumented() as wired:
        task = asyncio.ensure_future(run_guarded_async(step, max_seconds=600))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert wired.pipeline.listeners == {}
    assert reason(signals) == ("closed", None, StatusCode.UNSET)


async def test_many_at_once_hear_of_their_own_findings_only(signals: Signals) -> None:
    async def one(number: int) -> AgentResult:
        async def step(progress: Progress) -> None:
            await asearch("where is it?" if number % 2 else f"{number} {progress.iteration}")
            await asyncio.sleep(0)

        return await run_guarded_async(step, max_iterations=5)

    with signals.instrumented(muted_patterns="result_stagnation"):
        results = await asyncio.gather(*map(one, range(20)))
    assert [len(result.findings) for result in results] == [0, 2] * 10


# Somebody to ask


def paying(made: list[str]) -> Any:
    @loopguard.tool(irreversible=True)
    def pay(whom: str) -> str:
        made.append(whom)
        return PAGE

    def step(_: Progress) -> None:
        pay("a bill")

    return step


def asks(answer: object, asked: list[Request]) -> Any:
    async def ask(request: Request, /) -> object:
        asked.append(request)
        if answer is None:
            await asyncio.sleep(600)
        return answer

    return ask


@pytest.mark.parametrize(
    ("answer", "stop", "payments"),
    [
        (True, StopReason.DEADLOCK, 5),
        (False, StopReason.DEADLOCK, 3),
        (None, StopReason.ESCALATION_TIMEOUT, 3),
    ],
)
def test_who_is_asked_in_one_run(
    signals: Signals, answer: object, stop: StopReason, payments: int
) -> None:
    made: list[str] = []
    asked: list[Request] = []
    with signals.instrumented():
        result = run_guarded(
            paying(made), name="payer", escalate=asks(answer, asked), escalate_timeout_s=0.2
        )
        elsewhere: list[str] = []
        run_guarded(paying(elsewhere), name="other")
    assert result.stop_reason is stop
    assert len(made) == payments
    assert {request.agent for request in asked} == {"payer"}
    assert len(elsewhere) == 5, "nobody is asked in another run"
    assert reason(signals, "invoke_agent payer")[0] == stop.value


def test_a_sub_agent_asks_whom_the_run_around_it_asks(signals: Signals) -> None:
    made: list[str] = []
    asked: list[Request] = []
    step = paying(made)

    def around(progress: Progress) -> None:
        with loopguard.run("helper"):
            for _ in range(6):
                step(progress)

    with signals.instrumented():
        run_guarded(around, max_iterations=1, escalate=asks(False, asked))
    assert (len(made), len(asked)) == (3, 1)
    assert asked[0].agent == "helper"


def test_a_limit_that_the_tool_declares_holds_in_it(signals: Signals) -> None:
    pages: list[str] = []

    @loopguard.tool(max_repeats=2)
    def look(where: str) -> str:
        pages.append(where)
        return f"page {len(pages)}: " + PAGE

    with signals.instrumented(action="break"):
        result = run_guarded(lambda _: look("here") and None)
    assert result.stop_reason is StopReason.DEADLOCK
    assert len(pages) == 2


# Processes of their own

PROGRAM = """
import otel_loopguard as loopguard

@loopguard.tool
def search(query):
    return "The page that this search finds every time, whatever the agent hoped for. " * 3

result = loopguard.run_guarded(lambda progress: search("x") and None)
print(result.stop_reason.value, result.iterations_used, len(result.findings))
"""


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "deadlock 5 2"),
        ({"OTEL_SDK_DISABLED": "true"}, "deadlock 5 2"),
        ({"OTEL_LOOPGUARD_ACTION": "break"}, "deadlock 6 1"),
        ({"OTEL_LOOPGUARD_DISABLED": "true"}, "max_iterations 10 0"),
        ({"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "loopguard"}, "max_iterations 10 0"),
    ],
)
def test_without_any_instrumentation_or_sdk_it_works(
    environment: dict[str, str], expected: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip()) == (0, expected), done.stderr
