"""What cannot be undone is done with a yes or not at all, where its run is in trouble."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import otel_loopguard
from otel_loopguard.runtime import boundary
from otel_loopguard.sdk import attributes as names
from tests.signals import Signals, attributes
from tests.test_interventions import told

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from otel_loopguard.breaking import Request

ROOT = Path(__file__).resolve().parents[1]
WHOM = "Mrs Sample, who is not to be named"
RECEIPT = "The payment was made, and this is its receipt, which says no more than that it was made."
WAIT = {
    "gen_ai.agent.name": str,
    "gen_ai.tool.name": str,
    "loopguard.finding_id": str,
    "loopguard.pattern": str,
    "loopguard.run_id": str,
    "loopguard.severity": str,
    "loopguard.verdict": str,
}


@pytest.fixture
def signals() -> Signals:
    return Signals()


class Pay:
    """An irreversible tool of each kind, which counts what it really did."""

    def __init__(self, **options: Any) -> None:
        self.made = 0
        decorate = otel_loopguard.tool(name="pay", irreversible=True, **options)
        self.plain = decorate(self._plain)
        self.coroutine = decorate(self._coroutine)
        self.generator = decorate(self._generator)
        self.async_generator = decorate(self._async_generator)

    def _plain(self, whom: str) -> str:
        self.made += 1
        return RECEIPT

    async def _coroutine(self, whom: str) -> str:
        await asyncio.sleep(0)
        return self._plain(whom)

    def _generator(self, whom: str) -> Iterator[str]:
        yield self._plain(whom)

    async def _async_generator(self, whom: str) -> AsyncIterator[str]:
        await asyncio.sleep(0)
        yield self._plain(whom)


async def drained(pay: Pay) -> list[Any]:
    return [each async for each in pay.async_generator(WHOM)]


KINDS: dict[str, Callable[[Pay], Any]] = {
    "plain": lambda pay: pay.plain(WHOM),
    "coroutine": lambda pay: asyncio.run(pay.coroutine(WHOM)),
    "generator": lambda pay: "".join(pay.generator(WHOM)),
    "async generator": lambda pay: asyncio.run(drained(pay))[0],
}
kinds = pytest.mark.parametrize("call", KINDS.values(), ids=KINDS)


class Human:
    """Somebody who is asked."""

    def __init__(self, answer: Callable[[], Awaitable[object]]) -> None:
        self.asked: list[Request] = []
        self._answer = answer

    async def __call__(self, request: Request, /) -> object:
        self.asked.append(request)
        return await self._answer()


async def yes() -> bool:
    return True


async def no() -> bool:
    return False


async def never() -> bool:
    await asyncio.sleep(600)
    return True


async def broken() -> bool:
    raise ValueError(WHOM)


def until_asked(pay: Pay, call: Callable[[Pay], Any]) -> None:
    """The calls before a human is asked: three are made, two get a note."""
    for _ in range(5):
        call(pay)
    assert pay.made == 3


@kinds
def test_with_a_yes_the_call_is_made_once(signals: Signals, call: Callable[[Pay], Any]) -> None:
    pay, human = Pay(), Human(yes)
    with signals.instrumented(escalate=human), otel_loopguard.run("booker"):
        until_asked(pay, call)
        assert call(pay) == RECEIPT
        assert pay.made == 4
        assert len(human.asked) == 1
        call(pay)
        assert len(human.asked) == 2, "one yes is for one call"
    (request, _) = human.asked
    assert (request.agent, request.tool) == ("booker", "pay")
    assert "3 times with the same arguments" in request.evidence
    assert WHOM not in repr(request)


@kinds
@pytest.mark.parametrize("answer", [no, broken])
def test_with_a_no_the_model_is_told_and_who_goes_on_is_stopped(
    signals: Signals, call: Callable[[Pay], Any], answer: Any
) -> None:
    pay, human = Pay(), Human(answer)
    with signals.instrumented(escalate=human), otel_loopguard.run("booker"):
        until_asked(pay, call)
        assert call(pay).startswith("This call was not made: a person was asked")
        for _ in range(3):
            with pytest.raises(otel_loopguard.DeadlockError) as stopped:
                call(pay)
            assert stopped.value.reason == "deadlock"
    assert pay.made == 3
    assert len(human.asked) == 1


@kinds
def test_without_an_answer_the_run_is_stopped(signals: Signals, call: Callable[[Pay], Any]) -> None:
    pay, human = Pay(), Human(never)
    settings = {"escalate": human, "escalate_timeout_s": 1}

    def work() -> None:
        with otel_loopguard.run("booker"):
            until_asked(pay, call)
            call(pay)

    with signals.instrumented(**settings):
        with pytest.raises(otel_loopguard.DeadlockError) as stopped:
            work()
        assert stopped.value.reason == "escalation_timeout"
    assert pay.made == 3
    agent = attributes(signals.span("invoke_agent booker"))
    assert agent["loopguard.end_reason"] == "escalation_timeout"
    (wait,) = signals.named("loopguard.escalation")
    assert attributes(wait)["loopguard.verdict"] == "escalation_timeout"


@pytest.mark.parametrize(
    ("answer", "verdict"), [(yes, "approved"), (no, "refused"), (broken, "error")]
)
def test_the_wait_is_a_span_below_the_agent_s(
    signals: Signals, answer: Any, verdict: str, caplog: pytest.LogCaptureFixture
) -> None:
    pay = Pay()
    with signals.instrumented(escalate=Human(answer), emit="span,metric,log"):
        with otel_loopguard.run("booker"):
            until_asked(pay, KINDS["plain"])
            pay.plain(WHOM)
        counted = signals.points("loopguard.interventions")
    wait = signals.span("loopguard.escalation")
    assert {name: type(value) for name, value in attributes(wait).items()} == WAIT
    said = attributes(wait)
    assert said["loopguard.verdict"] == verdict
    assert said["gen_ai.tool.name"] == "pay"
    agent = signals.span("invoke_agent booker")
    assert wait.parent is not None
    assert wait.parent.span_id == agent.context.span_id
    last = signals.named("execute_tool pay")[-1]
    assert last.start_time <= wait.start_time <= wait.end_time <= last.end_time
    event = attributes(told(signals)[-1])
    assert event["loopguard.intervention"] == "escalate_to_human"
    assert event["loopguard.recovery_level"] == 3
    assert event["loopguard.verdict"] == verdict
    assert event["loopguard.finding_id"] == said["loopguard.finding_id"]
    assert counted["booker", "escalate_to_human", "break", "hard_loop"] == 1
    made = verdict == "approved"
    assert ("loopguard.intervention" in attributes(last)) == (not made)
    assert ("loopguard.repeat_count" in attributes(last)) == made
    everything = [str(each.to_json()) for each in (*signals.spans, *signals.logs)]
    assert not [text for text in (*everything, caplog.text) if WHOM in text or RECEIPT in text]


def test_nobody_is_asked_in_a_healthy_run(signals: Signals) -> None:
    human = Human(no)
    pay = Pay()
    with signals.instrumented(escalate=human, action="break"), otel_loopguard.run("booker"):
        for n in range(20):
            assert pay.plain(f"bill {n}") == RECEIPT
    assert human.asked == []


def test_nobody_is_asked_about_a_tool_that_is_not_declared(signals: Signals) -> None:
    human = Human(no)

    @otel_loopguard.tool
    def search(query: str) -> str:
        return RECEIPT

    with signals.instrumented(escalate=human), otel_loopguard.run("booker"):
        assert [search("x") for _ in range(9)] == [RECEIPT] * 9
    assert human.asked == []


def test_in_a_shadow_it_is_only_said_that_somebody_would_be_asked(signals: Signals) -> None:
    human = Human(no)
    pay = Pay()
    with signals.instrumented(escalate=human, action="shadow"), otel_loopguard.run("booker"):
        for _ in range(6):
            pay.plain(WHOM)
    assert (pay.made, human.asked) == (6, [])
    last = attributes(told(signals)[-1])
    assert (last["loopguard.intervention"], last["loopguard.mode"]) == (
        "escalate_to_human", "shadow",
    )  # fmt: skip
    assert signals.named("loopguard.escalation") == []


@otel_loopguard.tool
def book(seat: int) -> str:
    raise PermissionError("not allowed")


def test_a_critical_guardrail_loop_has_somebody_asked_about_any_such_call(
    signals: Signals,
) -> None:
    human = Human(no)
    pay = Pay()
    with signals.instrumented(escalate=human), otel_loopguard.run("booker"):
        pay.plain("the first bill")
        for seat in range(5):
            with pytest.raises(PermissionError):
                book(seat)
        assert pay.plain(WHOM).startswith("This call was not made: a person was asked")
    assert pay.made == 1
    assert [request.pattern.value for request in human.asked if request.pattern] == [
        "guardrail_loop"
    ]


def test_a_tool_may_make_its_own_kind_of_refusal_and_if_it_cannot_the_run_is_stopped(
    signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(note: str) -> object:
        if "a person was asked" in note:
            raise ValueError(note)
        return {"error": note}

    monkeypatch.setattr(boundary, "reraise", False)
    pay = Pay(on_loop=fail)
    with signals.instrumented(escalate=Human(no)), otel_loopguard.run("booker"):
        until_asked(pay, KINDS["plain"])
        with pytest.raises(otel_loopguard.DeadlockError):
            pay.plain(WHOM)
    assert pay.made == 3
    assert boundary.faults == {"result of a tool that is not called": 1}
    boundary.faults.clear()


def test_a_fault_of_ours_on_the_way_is_no_yes(
    signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(*_: object) -> None:
        raise KeyError("a fault of ours")

    monkeypatch.setattr(boundary, "reraise", False)
    monkeypatch.setattr(names, "escalation_attributes", fault)
    pay = Pay()
    with signals.instrumented(escalate=Human(no)) as wired, otel_loopguard.run("booker"):
        monkeypatch.setattr(wired.pipeline.guard, "refuse", fault)
        until_asked(pay, KINDS["plain"])
        assert pay.plain(WHOM).startswith("This call was not made")
    assert pay.made == 3
    assert len(signals.named("execute_tool pay")) == 6, "no span is left open"
    assert boundary.faults == {"start of an escalation": 1, "end of an escalation": 1}
    boundary.faults.clear()


async def test_who_is_cancelled_while_it_waits_does_not_call(signals: Signals) -> None:
    pay, asked = Pay(), asyncio.Event()

    async def silent(_: Request, /) -> object:
        asked.set()
        return await never()

    with signals.instrumented(escalate=silent):
        async with otel_loopguard.run("booker"):
            for _ in range(5):
                await pay.coroutine(WHOM)
            task = asyncio.ensure_future(pay.coroutine(WHOM))
            await asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            with pytest.raises(otel_loopguard.DeadlockError):
                await pay.coroutine(WHOM)
    assert pay.made == 3
    assert attributes(signals.span("loopguard.escalation"))["loopguard.verdict"] == "error"
    assert len(signals.named("execute_tool pay")) == 7, "no span is left open"


async def test_others_go_on_while_one_waits(signals: Signals) -> None:
    pay = Pay()
    asked, answer = asyncio.Event(), asyncio.Event()

    async def later(_: Request, /) -> bool:
        asked.set()
        await answer.wait()
        return True

    with signals.instrumented(escalate=later):
        async with otel_loopguard.run("booker"):
            for _ in range(5):
                await pay.coroutine(WHOM)
            task = asyncio.ensure_future(pay.coroutine(WHOM))
            await asked.wait()
            assert pay.made == 3
            assert await pay.coroutine("another bill") == RECEIPT
            answer.set()
            assert await task == RECEIPT
    assert pay.made == 5


def test_a_sync_tool_may_ask_from_within_a_running_loop(signals: Signals) -> None:
    pay, human = Pay(), Human(yes)

    async def main() -> None:
        with otel_loopguard.run("booker"):
            for _ in range(6):
                pay.plain(WHOM)

    with signals.instrumented(escalate=human):
        asyncio.run(main())
    assert (pay.made, len(human.asked)) == (4, 1)


def test_a_callback_that_blocks_and_ignores_its_time_is_a_no(signals: Signals) -> None:
    over = threading.Event()

    async def stubborn(_: Request, /) -> bool:
        over.wait(60)
        return True

    pay = Pay()
    with (
        signals.instrumented(escalate=stubborn, escalate_timeout_s=1),
        otel_loopguard.run("booker"),
    ):
        until_asked(pay, KINDS["plain"])
        with pytest.raises(otel_loopguard.DeadlockError):
            pay.plain(WHOM)
    over.set()
    assert pay.made == 3


# Real processes

PROGRAM = """
import asyncio, os, signal, sys, threading, time
import otel_loopguard as loopguard

signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored around us
how, counter = sys.argv[1:]

@loopguard.tool(irreversible=True)
def pay(whom):
    with open(counter, "a") as file:
        file.write("paid\\n")
    return "The payment was made, and this is the receipt, which says that it was made."

@loopguard.tool(name="pay", irreversible=True)
async def apay(whom):
    return pay.__wrapped__(whom)

async def ask(request):
    print("asked", flush=True)
    if how == "raises":
        raise RuntimeError("no connection")
    if how in ("yes", "no"):
        return how == "yes"
    await asyncio.sleep(600)
    return True

def work():
    with loopguard.run("booker"):
        for _ in range(6):
            try:
                print(pay("a")[:20], flush=True)
            except loopguard.DeadlockError as error:
                print(error.reason, flush=True)

async def awork():
    async with loopguard.run("booker"):
        for _ in range(6):
            print((await apay("a"))[:20], flush=True)

if how == "named":
    how = "yes"
else:
    loopguard.instrument(escalate=ask, escalate_timeout_s=2 if how == "silence" else 300)
if how == "exit":
    threading.Thread(target=work).start()
    while open(counter).read().count("paid") < 3:
        time.sleep(0.01)
    time.sleep(0.5)
elif how == "exit at once":
    threading.Thread(target=work, daemon=True).start()
    while open(counter).read().count("paid") < 3:
        time.sleep(0.01)
    time.sleep(0.5)
elif how == "async":
    asyncio.run(awork())
else:
    work()
print("over", flush=True)
"""


def started(how: str, tmp_path: Path, **variables: str) -> tuple[subprocess.Popen[str], Path]:
    counter = tmp_path / "counter"
    counter.touch()
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OTEL_SDK_DISABLED": "true"}
    environment.update(variables)
    process = subprocess.Popen(
        [sys.executable, str(program), how, str(counter)],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    return process, counter


def paid(counter: Path) -> int:
    return counter.read_text().count("paid")


@pytest.mark.parametrize(
    ("how", "payments", "last"),
    [
        ("yes", 4, "The payment was made"),
        ("no", 3, "This call was not ma"),
        ("silence", 3, "escalation_timeout"),
        ("raises", 3, "This call was not ma"),
    ],
)
def test_a_process_pays_with_a_yes_only(tmp_path: Path, how: str, payments: int, last: str) -> None:
    process, counter = started(how, tmp_path)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out.splitlines()[-2:] == [last, "over"]
    assert out.count("asked") == 1
    assert paid(counter) == payments


@pytest.mark.parametrize(
    ("where", "payments"), [("__main__:ask", 4), ("__main__:nobody", 3), ("no.such:ask", 3)]
)
def test_who_is_asked_may_be_named_by_a_variable(tmp_path: Path, where: str, payments: int) -> None:
    process, counter = started("named", tmp_path, OTEL_LOOPGUARD_ESCALATE=where)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert ("asked" in out) == (payments == 4)
    assert ("an escalation failed" in err) == (payments == 3)
    assert paid(counter) == payments


@pytest.mark.parametrize("how", ["waits", "async"])
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_process_that_is_ended_while_it_waits_does_not_pay(
    tmp_path: Path, how: str, end: signal.Signals
) -> None:
    process, counter = started(how, tmp_path)
    assert process.stdout is not None
    for line in process.stdout:
        if line == "asked\n":
            break
    time.sleep(0.2)
    assert process.poll() is None
    process.send_signal(end)
    out, _ = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "over" not in out
    assert paid(counter) == 3


@pytest.mark.parametrize("how", ["exit", "exit at once"])
def test_a_program_that_comes_to_its_end_while_a_thread_waits_does_not_pay(
    tmp_path: Path, how: str
) -> None:
    process, counter = started(how, tmp_path)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "asked" in out
    assert paid(counter) == 3
