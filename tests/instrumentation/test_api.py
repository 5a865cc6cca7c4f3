"""The decorators and `run`, as programs use them."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import inspect
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import Empty
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import StatusCode

from otel_loopguard import agent, run, tool
from tests.signals import Signals, attributes

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Iterator


@pytest.fixture
def signals() -> Iterator[Signals]:
    signals = Signals()
    with signals.instrumented():
        yield signals
    assert otel_context.get_current() == {}


@tool
def search(query: str, *, page: int = 1) -> str:
    """Look for something."""
    return f"nothing about {query} on page {page}"


@tool(name="search_async")
async def asearch(query: str) -> str:
    await asyncio.sleep(0)
    return f"nothing about {query}"


@tool
def lines(text: str) -> Generator[str, str | None, int]:
    for number, word in enumerate(text.split()):
        yield f"{number}: {word}"
    return len(text)


@tool
async def alines(text: str) -> AsyncGenerator[str, str]:
    for word in text.split():
        await asyncio.sleep(0)
        yield word


class Library:
    """Tools of every kind of method."""

    @tool
    def lend(self, title: str) -> str:
        return title

    @tool
    @classmethod
    def open(cls, door: str) -> str:
        return f"{cls.__name__} {door}"

    @classmethod
    @tool
    def close(cls, door: str) -> str:
        return f"{cls.__name__} {door}"

    @tool
    @staticmethod
    def ring(times: int) -> int:
        return times

    @staticmethod
    @tool
    def knock(times: int) -> int:
        return times


def keys(signals: Signals, name: str) -> list[Any]:
    """The arguments' digest of each call of a tool."""
    spans = signals.named(f"execute_tool {name}")
    return [attributes(span)["loopguard.args_fingerprint"] for span in spans]


class TestWhatStaysTheSame:
    def test_metadata(self) -> None:
        assert search.__name__ == "search"
        assert search.__doc__ == "Look for something."
        assert list(inspect.signature(search).parameters) == ["query", "page"]
        assert search.__wrapped__(query="x") == "nothing about x on page 1"  # type: ignore[attr-defined]
        assert inspect.iscoroutinefunction(asearch)
        assert inspect.isgeneratorfunction(lines)
        assert inspect.isasyncgenfunction(alines)

    @pytest.mark.usefixtures("signals")
    async def test_results(self) -> None:
        assert search("x") == "nothing about x on page 1"
        assert await asearch("x") == "nothing about x"
        assert list(lines("a b")) == ["0: a", "1: b"]
        assert [word async for word in alines("a b")] == ["a", "b"]

    @pytest.mark.usefixtures("signals")
    def test_methods(self) -> None:
        library = Library()
        assert library.lend("Emma") == "Emma"
        assert library.open("front") == Library.open("front") == "Library front"
        assert Library.close("back") == "Library back"
        assert library.ring(2) == Library.ring(2) == Library.knock(2) == 2

    @pytest.mark.usefixtures("signals")
    @pytest.mark.parametrize("error", [KeyError("x"), SystemExit(3), KeyboardInterrupt()])
    def test_exceptions(self, error: BaseException) -> None:
        @tool
        def fail() -> None:
            raise error

        with pytest.raises(type(error)) as caught:
            fail()
        assert caught.value is error

    def test_wrong_arguments_are_a_type_error(self, signals: Signals) -> None:
        with pytest.raises(TypeError, match="unexpected keyword argument 'q'"):
            search(q="x")  # type: ignore[call-arg]
        (span,) = signals.named("execute_tool search")
        assert span.status.status_code is StatusCode.ERROR

    @pytest.mark.usefixtures("signals")
    def test_what_is_no_function(self) -> None:
        class Shelf:
            def __call__(self, n: int) -> int:
                return n

        assert tool(Shelf())(3) == 3
        assert tool(partial(max, 2))(1) == 2
        assert tool(name="biggest")(max)(1, 2) == 2


class TestSpans:
    def test_a_tool(self, signals: Signals) -> None:
        search("x")
        span = signals.span("execute_tool search")
        assert attributes(span)["gen_ai.tool.name"] == "search"
        assert "loopguard.run_id" not in attributes(span)  # it is in no run

    async def test_an_own_name(self, signals: Signals) -> None:
        await asearch("x")
        assert signals.span("execute_tool search_async")

    @pytest.mark.parametrize(
        ("error", "name"), [(KeyError("x"), "KeyError"), (Empty(), "_queue.Empty")]
    )
    def test_a_failure(self, signals: Signals, error: Exception, name: str) -> None:
        @tool
        def fail() -> None:
            raise error

        with run("finder"), pytest.raises(type(error)):
            fail()
        span = signals.span("execute_tool fail")
        assert attributes(span)["error.type"] == name
        assert attributes(span)["loopguard.outcome"] == "error"
        assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, name)
        assert span.events == ()  # no exception text

    async def test_a_cancellation_is_no_failure_of_the_tool(self, signals: Signals) -> None:
        @tool
        async def wait() -> None:
            await asyncio.Event().wait()

        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert signals.span("execute_tool wait").status.status_code is StatusCode.UNSET

    def test_a_generator_is_one_call_from_its_first_step_to_its_end(self, signals: Signals) -> None:
        items = lines("a b")
        assert signals.spans == []
        assert next(items) == "0: a"
        assert not trace.get_current_span().is_recording()
        assert signals.spans == []
        assert list(items) == ["1: b"]
        assert signals.span("execute_tool lines")

    def test_an_abandoned_generator_ends_its_span(self, signals: Signals) -> None:
        items = lines("a b")
        next(items)
        del items
        gc.collect()
        assert signals.span("execute_tool lines").status.status_code is StatusCode.UNSET

    def test_code_inside_hangs_below(self, signals: Signals) -> None:
        tracer = signals.tracer_provider.get_tracer("app")

        @tool
        def work() -> None:
            with tracer.start_as_current_span("inner"):
                pass

        work()
        assert (
            signals.span("inner").parent.span_id
            == signals.span("execute_tool work").context.span_id
        )


class TestArguments:
    def test_the_same_call_in_other_words(self, signals: Signals) -> None:
        search("x")
        search(query="x")
        search("x", page=1)
        search("x", page=2)
        one, two, three, four = keys(signals, "search")
        assert one == two == three != four

    def test_the_instance_does_not_count(self, signals: Signals) -> None:
        Library().lend("Emma")
        Library().lend("Emma")
        assert len(set(keys(signals, "lend"))) == 1

    def test_names_that_could_be_confused(self, signals: Signals) -> None:
        @tool
        def put(a: int, /, *rest: int, **named: int) -> None:
            pass

        put(1, a=2)
        put(3, a=2)
        put(1, 2)
        put(1, 2, 3)
        assert len(set(keys(signals, "put"))) == 4

        @tool
        def only(a: int, /) -> None:
            pass

        only(1)
        only(2)
        assert len(set(keys(signals, "only"))) == 2

    def test_a_tool_that_changes_its_arguments(self, signals: Signals) -> None:
        @tool
        def drain(items: list[int]) -> None:
            items.clear()

        with run("finder"):
            for _ in range(3):
                drain([1, 2])
        assert len(set(keys(signals, "drain"))) == 1


class TestInsideOfOneAnother:
    def test_a_tool_that_calls_itself_is_one_call(self, signals: Signals) -> None:
        @tool
        def factorial(n: int) -> int:
            return 1 if n < 2 else n * factorial(n - 1)

        assert factorial(5) == 120
        assert len(signals.spans) == 1

    def test_a_tool_that_calls_another_tool(self, signals: Signals) -> None:
        @tool
        def ask(query: str) -> str:
            return search(query)

        with run("finder"):
            ask("x")
        inner, outer = signals.span("execute_tool search"), signals.span("execute_tool ask")
        assert inner.parent.span_id == outer.context.span_id
        assert attributes(inner)["loopguard.run_id"] == attributes(outer)["loopguard.run_id"]

    async def test_what_a_tool_leaves_running_is_no_part_of_it(self, signals: Signals) -> None:
        more: list[asyncio.Task[None]] = []

        @tool
        async def poll(again: bool) -> None:
            if again:
                more.append(asyncio.create_task(later()))

        async def later() -> None:
            await poll(again=False)

        await poll(again=True)
        await more[0]
        assert len(signals.named("execute_tool poll")) == 2

    def test_a_sub_agent_is_one_step_of_its_parent(self, signals: Signals) -> None:
        @agent
        def helper(task: str) -> str:
            for page in range(2):
                search(task, page=page)
            return "found nothing"

        @agent(name="boss")
        def supervise() -> None:
            for _ in range(3):
                helper("look")

        supervise()
        (event,) = signals.events
        boss = signals.span("invoke_agent boss")
        assert attributes(event)["loopguard.run_id"] == attributes(boss)["loopguard.run_id"]
        assert attributes(boss)["loopguard.iteration"] == 3
        helpers = signals.named("invoke_agent helper")
        assert len({attributes(span)["loopguard.run_id"] for span in helpers}) == 3
        assert {span.parent.span_id for span in helpers} == {boss.context.span_id}

    def test_an_agent_that_a_tool_runs_is_that_tool_to_its_parent(self, signals: Signals) -> None:
        @agent
        def helper() -> str:
            return search("x")

        @tool
        def delegate() -> str:
            return helper()

        with run("boss"):
            delegate()
        assert attributes(signals.span("invoke_agent boss"))["loopguard.iteration"] == 1

    def test_a_task_that_agents_pass_on_is_told_while_they_do(self, signals: Signals) -> None:
        depth: list[int] = []

        @agent(name="legal")
        def ask_legal(task: str) -> str:
            return "done" if len(depth) > 5 else ask_tech(task)

        @agent(name="tech")
        def ask_tech(task: str) -> str:
            depth.append(len(signals.events))
            return ask_legal(task)

        ask_legal("Check whether the retention of 90 days is allowed and feasible.")
        first = signals.events[0]
        assert attributes(first)["loopguard.pattern"] == "delegation_loop"
        assert attributes(first)["loopguard.severity"] == "warning"
        assert depth[0] == 0 < depth[3], "it was told before the innermost agent answered"
        assert len(signals.events) < 5, "once for all runs, and when it gets worse"

    def test_a_task_asked_again_in_other_words(self, signals: Signals) -> None:
        @agent(name="worker")
        def work(task: str) -> str:
            return f"{search(task)}: I cannot tell."

        with run("boss"):
            for words in ("Verify whether", "Please verify if", "Verify for me whether", "Verify"):
                work(f"{words} the invoice 4711 was paid before the end of March.")
        (event,) = signals.events
        assert attributes(event)["loopguard.pattern"] == "delegation_loop"
        boss = signals.span("invoke_agent boss")
        assert attributes(event)["loopguard.run_id"] == attributes(boss)["loopguard.run_id"]
        assert "4711" not in str(attributes(event))

    def test_another_task_each_time(self, signals: Signals) -> None:
        @agent(name="worker")
        def work(task: str) -> str:
            return f"{search(task)}: I cannot tell."

        with run("boss"):
            for number in range(6):
                work(f"Verify whether the invoice {4711 + number} was paid before March.")
        assert signals.events == []

    async def test_agents_of_every_kind(self, signals: Signals) -> None:
        @agent
        async def one() -> str:
            return await asearch("x")

        @agent
        def two() -> Generator[str, None, None]:
            yield search("x")

        @agent
        async def three() -> AsyncGenerator[str, None]:
            yield await asearch("x")

        await one()
        list(two())
        assert [item async for item in three()] == ["nothing about x"]
        for name in ("one", "two", "three"):
            assert attributes(signals.span(f"invoke_agent {name}"))["loopguard.iteration"] == 1


class TestRun:
    def test_nested(self, signals: Signals) -> None:
        with run("outer"):
            search("x")
            with run("inner"):
                search("y")
            search("z")
        outer, inner = signals.span("invoke_agent outer"), signals.span("invoke_agent inner")
        assert attributes(outer)["loopguard.iteration"] == 3
        assert attributes(inner)["loopguard.iteration"] == 1
        assert inner.parent.span_id == outer.context.span_id

    async def test_async(self, signals: Signals) -> None:
        async with run("finder"):
            await asearch("x")
        assert attributes(signals.span("invoke_agent finder"))["loopguard.end_reason"] == "closed"

    def test_one_that_raises(self, signals: Signals) -> None:
        error = KeyError("x")
        with pytest.raises(KeyError) as caught, run("finder"):
            raise error
        assert caught.value is error
        span = signals.span("invoke_agent finder")
        assert attributes(span)["loopguard.end_reason"] == "error"
        assert attributes(span)["error.type"] == "KeyError"

    def test_one_after_the_other_with_the_same_object(self, signals: Signals) -> None:
        again = run("finder")
        for _ in range(2):
            with again as entered:
                assert entered is again
                search("x")
        assert len(signals.named("invoke_agent finder")) == 2

    async def test_two_in_one_event_loop(self, signals: Signals) -> None:
        async def work(name: str) -> None:
            async with run(name):
                for page in range(4):
                    await asearch(f"{name} {page}" if name == "calm" else "x")

        await asyncio.gather(work("calm"), work("stuck"))
        (event,) = signals.events
        assert attributes(event)["gen_ai.agent.name"] == "stuck"
        for name in ("calm", "stuck"):
            assert attributes(signals.span(f"invoke_agent {name}"))["loopguard.iteration"] == 4

    def test_threads(self, signals: Signals) -> None:
        """A thread is in the run if it is given the context, else it is in none."""
        with run("finder"), ThreadPoolExecutor(1) as pool:
            for _ in range(3):
                pool.submit(contextvars.copy_context().run, search, "x").result()
        assert len(signals.events) == 1
        with run("finder"):
            for _ in range(3):
                bare = threading.Thread(target=search, args=("x",))
                bare.start()
                bare.join()
        assert len(signals.events) == 1
        assert len(signals.named("execute_tool search")) == 6


def test_without_instrumentation_all_is_as_it_was() -> None:
    assert search("x") == "nothing about x on page 1"
    assert asyncio.run(asearch("x")) == "nothing about x"
    assert list(lines("a b")) == ["0: a", "1: b"]
    with run("finder"):
        assert Library().ring(1) == 1


def test_an_agent_below_a_web_request_is_no_sub_agent(signals: Signals) -> None:
    tracer = signals.tracer_provider.get_tracer("web")
    with tracer.start_as_current_span("POST /ask"):
        for _ in range(4):
            with run("finder"):
                search("x")
    assert signals.events == []


def test_tools_below_a_plain_span_are_a_run(signals: Signals) -> None:
    tracer = signals.tracer_provider.get_tracer("app")
    with tracer.start_as_current_span("main"):
        for _ in range(3):
            search("x")
    assert len(signals.events) == 1
