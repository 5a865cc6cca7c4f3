"""Application code of every kind behaves inside a scope as it does outside."""

from __future__ import annotations

import asyncio
import gc
import inspect
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import context as otel_context

from otel_loopguard.core.model import MISSING
from otel_loopguard.instrumentation import drive
from otel_loopguard.runtime import boundary

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator

    from opentelemetry.context import Context

KEY = "test_drive"


class Scope:
    """Notes how it ends."""

    def __init__(self) -> None:
        self.context: Context = otel_context.set_value(KEY, self, otel_context.Context())
        self.ends: list[object] = []

    def finish(self, result: object = MISSING, /) -> None:
        self.ends.append(result)

    def fail(self, error: BaseException, /) -> None:
        self.ends.append(error)


@pytest.fixture
def scope() -> Iterator[Scope]:
    yield Scope()
    assert otel_context.get_value(KEY) is None


def here() -> object:
    return otel_context.get_value(KEY)


class TestCalls:
    def test_a_result_passes_and_the_code_runs_inside(self, scope: Scope) -> None:
        assert drive.call(scope, here) is scope
        assert scope.ends == [scope]

    @pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), StopIteration(3)])
    def test_an_exception_passes_as_it_is(self, scope: Scope, error: BaseException) -> None:
        def fail() -> None:
            raise error

        with pytest.raises(type(error)) as caught:
            drive.call(scope, fail)
        assert caught.value is error
        assert scope.ends == [error]

    async def test_a_coroutine(self, scope: Scope) -> None:
        async def work() -> object:
            await asyncio.sleep(0)
            return here()

        assert await drive.await_(scope, work) is scope
        assert scope.ends == [scope]

    async def test_a_coroutine_that_is_cancelled(self, scope: Scope) -> None:
        started = asyncio.Event()

        async def work() -> None:
            started.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(drive.await_(scope, work))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        (end,) = scope.ends
        assert isinstance(end, asyncio.CancelledError)

    def test_a_coroutine_that_is_closed_where_it_was_not_begun(
        self, scope: Scope, caplog: pytest.LogCaptureFixture
    ) -> None:
        class Pause:
            def __await__(self) -> Generator[None, None, None]:
                yield

        async def work() -> None:
            await Pause()

        coroutine = drive.await_(scope, work)

        async def begin() -> None:
            coroutine.send(None)

        asyncio.run(begin())
        coroutine.close()
        (end,) = scope.ends
        assert isinstance(end, GeneratorExit)
        assert caplog.messages == []

    def test_a_coroutine_that_is_closed_where_it_was_begun(self, scope: Scope) -> None:
        class Pause:
            def __await__(self) -> Generator[None, None, None]:
                yield

        async def work() -> None:
            await Pause()

        coroutine = drive.await_(scope, work)
        coroutine.send(None)
        coroutine.close()
        assert here() is None


def conversation() -> Generator[object, Any, str]:
    """Answers what it is sent and survives one exception."""
    heard = yield "hello"
    try:
        heard = yield f"heard {heard}"
    except KeyError as error:
        heard = yield f"caught {error}"
    yield here()
    return "bye"


class TestGenerators:
    def test_next_send_throw_and_the_return_value(self, scope: Scope) -> None:
        talk = drive.iterate(lambda: scope, conversation())
        assert next(talk) == "hello"
        assert here() is None
        assert talk.send("you") == "heard you"
        assert talk.throw(KeyError("x")) == "caught 'x'"
        assert next(talk) is scope
        with pytest.raises(StopIteration) as stop:
            next(talk)
        assert stop.value.value == "bye"
        assert scope.ends == [["hello", "heard you", "caught 'x'", scope]]

    def test_an_exception_that_comes_out(self, scope: Scope) -> None:
        error = ValueError("mine")
        talk = drive.iterate(lambda: scope, conversation())
        next(talk)
        with pytest.raises(ValueError, match="mine") as caught:
            talk.throw(error)
        assert caught.value is error
        assert caught.value.__context__ is None
        assert scope.ends == [error]

    def test_closed(self, scope: Scope) -> None:
        where: list[object] = []

        def stream() -> Generator[int, None, None]:
            try:
                yield 1
            finally:
                where.append(here())

        items = drive.iterate(lambda: scope, stream())
        next(items)
        items.close()
        assert where == [scope]
        assert isinstance(scope.ends[0], GeneratorExit)
        assert len(scope.ends) == 1

    def test_one_that_refuses_to_be_closed(self, scope: Scope) -> None:
        def stubborn() -> Generator[int, None, None]:
            try:
                yield 1
            except GeneratorExit:
                yield 2

        items = drive.iterate(lambda: scope, stubborn())
        next(items)
        with pytest.raises(RuntimeError, match="ignored GeneratorExit"):
            items.close()
        items.close()

    def test_one_that_nobody_begins(self) -> None:
        def never() -> Scope:
            raise AssertionError

        drive.iterate(never, conversation()).close()

    def test_abandoned(self, scope: Scope) -> None:
        items = drive.iterate(lambda: scope, conversation())
        next(items)
        del items
        gc.collect()
        assert isinstance(scope.ends[0], GeneratorExit)

    def test_an_iterator_that_is_no_generator(self, scope: Scope) -> None:
        assert list(drive.iterate(lambda: scope, iter([1, 2]))) == [1, 2]
        assert scope.ends == [[1, 2]]

    @pytest.mark.parametrize("closable", [True, False])
    def test_closing_and_throwing_into_such_an_iterator(
        self, scope: Scope, *, closable: bool
    ) -> None:
        closed: list[object] = []

        class Plain:
            def __iter__(self) -> Plain:
                return self

            def __next__(self) -> int:
                return 1

        class Closable(Plain):
            def close(self) -> None:
                closed.append(here())

        items = drive.iterate(lambda: scope, Closable() if closable else Plain())
        next(items)
        items.close()
        assert closed == ([scope] if closable else [])
        again = drive.iterate(lambda: scope, Plain())
        next(again)
        with pytest.raises(KeyError):
            again.throw(KeyError())

    def test_without_a_scope_it_passes(self) -> None:
        talk = drive.iterate(lambda: None, conversation())
        assert [next(talk), talk.send("you")] == ["hello", "heard you"]
        assert isinstance(next(talk), str | None)
        broken = drive.iterate(lambda: None, conversation())
        next(broken)
        with pytest.raises(OSError, match="x"):
            broken.throw(OSError("x"))

    def test_the_items_of_a_long_stream_are_unknown(self) -> None:
        short, long = Scope(), Scope()
        list(drive.iterate(lambda: short, iter(range(drive.MAX_ITEMS))))
        list(drive.iterate(lambda: long, iter(range(drive.MAX_ITEMS + 9))))
        assert short.ends == [list(range(drive.MAX_ITEMS))]
        assert long.ends == [MISSING]

    def test_a_reader_of_items_that_raises_is_contained(self, scope: Scope) -> None:
        class Reader:
            def add(self, item: object) -> None:
                raise RuntimeError(item)

            @property
            def result(self) -> object:
                raise RuntimeError

        boundary.reraise = False
        assert list(drive.iterate(lambda: scope, iter([1, 2]), Reader)) == [1, 2]
        assert boundary.faults == {"item of a stream": 2, "end of a stream": 1}
        boundary.faults.clear()


async def async_conversation() -> AsyncGenerator[object, Any]:
    heard = yield "hello"
    try:
        await asyncio.sleep(0)
        heard = yield f"heard {heard}"
    except KeyError as error:
        heard = yield f"caught {error}"
    yield here()


class TestAsyncGenerators:
    async def test_anext_asend_and_athrow(self, scope: Scope) -> None:
        talk = drive.aiterate(lambda: scope, async_conversation())
        assert await anext(talk) == "hello"
        assert here() is None
        assert await talk.asend("you") == "heard you"
        assert await talk.athrow(KeyError("x")) == "caught 'x'"
        assert await anext(talk) is scope
        with pytest.raises(StopAsyncIteration):
            await anext(talk)
        assert scope.ends == [["hello", "heard you", "caught 'x'", scope]]

    async def test_an_exception_that_comes_out(self, scope: Scope) -> None:
        error = ValueError("mine")
        talk = drive.aiterate(lambda: scope, async_conversation())
        await anext(talk)
        with pytest.raises(ValueError, match="mine") as caught:
            await talk.athrow(error)
        assert caught.value is error
        assert scope.ends == [error]

    async def test_closed(self, scope: Scope) -> None:
        where: list[object] = []

        async def stream() -> AsyncGenerator[int, None]:
            try:
                yield 1
            finally:
                await asyncio.sleep(0)
                where.append(here())

        items = drive.aiterate(lambda: scope, stream())
        await anext(items)
        await items.aclose()
        assert where == [scope]
        assert isinstance(scope.ends[0], GeneratorExit)

    @pytest.mark.parametrize("closable", [True, False])
    async def test_closing_an_iterator_that_is_no_generator(
        self, scope: Scope, *, closable: bool
    ) -> None:
        closed: list[object] = []

        class Plain:
            def __aiter__(self) -> AsyncIterator[int]:
                return self

            async def __anext__(self) -> int:
                return 1

        class Closable(Plain):
            async def aclose(self) -> None:
                closed.append(here())

        items = drive.aiterate(lambda: scope, Closable() if closable else Plain())
        await anext(items)
        await items.aclose()
        assert closed == ([scope] if closable else [])

    def test_abandoned_streams_leave_nothing_behind(
        self, scope: Scope, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The loop closes them in a task of its own."""

        async def main() -> None:
            items = drive.aiterate(lambda: scope, async_conversation())
            await anext(items)
            del items
            gc.collect()
            for _ in range(9):
                await asyncio.sleep(0)

        asyncio.run(main())
        assert isinstance(scope.ends[0], GeneratorExit)
        assert caplog.messages == []

    async def test_steps_from_different_tasks(
        self, scope: Scope, caplog: pytest.LogCaptureFixture
    ) -> None:
        talk = drive.aiterate(lambda: scope, async_conversation())
        said = [await asyncio.create_task(anext(talk)) for _ in range(3)]
        assert said == ["hello", "heard None", scope]
        await talk.aclose()
        assert caplog.messages == []

    async def test_without_a_scope_it_passes(self) -> None:
        assert len([item async for item in drive.aiterate(lambda: None, async_conversation())]) == 3

    def test_what_it_makes_is_an_async_generator_function(self) -> None:
        made = drive.async_generator(lambda _args, _kwargs: None, async_conversation)
        assert inspect.isasyncgenfunction(made)
