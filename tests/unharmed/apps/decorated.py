"""Decorated functions of every kind, in every trouble; prints what comes back."""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import contextvars
import gc
import inspect
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import otel_loopguard as loopguard
from tests.unharmed.apps import odd
from tests.unharmed.apps.said import ashow, given, show

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

MEGABYTE = 1_000_000


@loopguard.tool
def echo(value: Any = None, *more: Any, **named: Any) -> Any:
    """Give back what is given."""
    return value if not more and not named else (value, more, sorted(named))


@loopguard.tool(name="search")
def search(query: str) -> str:
    return f"nothing on {query}"


@loopguard.tool
def fail(error: Any) -> None:
    raise error


@loopguard.tool
def fail_from(cause: BaseException, error: BaseException) -> None:
    try:
        raise cause
    except BaseException as held:
        raise error from held


@loopguard.tool
async def aecho(value: Any) -> Any:
    await asyncio.sleep(0)
    return value


@loopguard.tool
async def afail(error: BaseException) -> None:
    await asyncio.sleep(0)
    raise error


@loopguard.tool
async def wait(seconds: float) -> str:
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        print("the tool is cancelled")
        raise
    return "waited"


@loopguard.tool
def count(to: int, stubborn: bool = False) -> Iterator[Any]:
    """Yield; say what is sent and thrown in."""
    try:
        for n in range(to):
            try:
                sent = yield n
                if sent is not None:
                    print("the tool is sent", sent)
            except KeyError as error:  # noqa: PERF203
                print("the tool is thrown", repr(error))
        return "counted"
    except GeneratorExit:
        print("the tool is closed")
        if stubborn:
            yield "no"
        raise
    finally:
        if not stubborn:
            print("the tool is over")


@loopguard.tool
def count_then_fail(error: BaseException) -> Iterator[int]:
    yield 1
    raise error


@loopguard.tool
async def acount(to: int) -> AsyncIterator[Any]:
    try:
        for n in range(to):
            await asyncio.sleep(0)
            try:
                sent = yield n
                if sent is not None:
                    print("the tool is sent", sent)
            except KeyError as error:
                print("the tool is thrown", repr(error))
    except GeneratorExit:
        print("the tool is closed")
        raise
    finally:
        print("the tool is over")


class Shop:
    """Methods of all kinds are tools too."""

    @loopguard.tool
    def method(self, word: str) -> tuple[str, str]:
        return type(self).__name__, word

    @classmethod
    @loopguard.tool
    def of_class(cls, word: str) -> tuple[str, str]:
        return cls.__name__, word

    @staticmethod
    @loopguard.tool
    def static(word: str) -> str:
        return word


def errors() -> dict[str, BaseException]:
    return {
        "value": ValueError("no such order", 7),
        "empty": ValueError(),
        "odd": odd.OddError(),
        "key": KeyError("order"),
        "stop": StopIteration("value"),
        "astop": StopAsyncIteration("value"),
        "exit": SystemExit(3),
        "interrupt": KeyboardInterrupt("now"),
        "generator": GeneratorExit("now"),
        "cancelled": asyncio.CancelledError("now"),
        "base": odd.Worse("worse"),
        "group": _group(),
        "argument": ValueError(odd.odd("__repr__"), odd.cyclic()),
        "unicode": UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
    }


def _group() -> BaseException:
    group: Any = getattr(builtins, "ExceptionGroup", None)  # since Python 3.11
    return group("two", [ValueError("one"), TypeError("two")]) if group else ValueError("two")


def calls() -> None:
    show("plain", lambda: search("chairs"))
    show("keyword", lambda: search(query="chairs"))
    show("missing", search)
    show("too many", lambda: search("a", "b"))
    show("unknown", lambda: search(word="a"))
    show("rest", lambda: echo(1, 2, 3, a=4))
    show("method", lambda: Shop().method("chair"))
    show("class", lambda: Shop.of_class("chair"))
    show("static", lambda: Shop.static("chair"))
    for name, error in errors().items():
        show(f"fail {name}", partial(fail, error))
    show("fail from", lambda: fail_from(KeyError("cause"), ValueError("error")))
    show("no exception", lambda: fail("text"))
    show("recursion", lambda: _depth(echo))


def _depth(tool: Any) -> str:
    def down() -> Any:
        return tool(down())

    try:
        down()
    except RecursionError as error:
        return type(error).__name__
    return "no end"


def odd_values() -> None:
    """Each as argument, keyword, result and yielded item, alone and inside of others, thrice."""
    odd.touched.clear()
    for name, value in odd.values().items():
        for _ in range(3):
            assert echo(value) is value, name
            assert echo({"key": [value]})["key"][0] is value, name
            assert echo((value, 1))[0] is value, name
            echo(1, value, named=value)
            assert next(passing(value)) is value, name
            with contextlib.suppress(Exception):
                fail(value if issubclass(type(value), BaseException) else ValueError(value))
    keys = [odd.odd("__eq__", str), odd.odd("__repr__"), ("a", 1), frozenset({1}), b"key", None]
    for key in keys:
        with contextlib.suppress(odd.Odd, TypeError):
            table = {key: "value"}
            assert echo(table) is table
    print("odd values touched", odd.touched)
    deep = odd.deep()
    assert echo(deep) is deep


@loopguard.tool
def passing(value: Any) -> Iterator[Any]:
    yield value


def large() -> None:
    for result in (
        "x" * 10 * MEGABYTE,
        b"x" * 10 * MEGABYTE,
        ["item"] * MEGABYTE,
        {str(n): n for n in range(MEGABYTE // 2)},
        [{"id": n, "text": "x" * 100} for n in range(MEGABYTE // 10)],
    ):
        for _ in range(2):
            assert echo(result) is result
        print("large", given(result))


def generators() -> None:
    show("all", lambda: list(count(3)))
    show("value", lambda: _value(count(2)))
    steps = count(9)
    show("next", lambda: next(steps))
    show("send", lambda: steps.send("a word"))
    show("throw", lambda: steps.throw(KeyError("thrown")))
    show("close", steps.close)
    show("after", lambda: next(steps))
    stubborn = count(9, stubborn=True)
    show("next", lambda: next(stubborn))
    show("stubborn close", stubborn.close)
    thrown = count(9)
    show("next", lambda: next(thrown))
    show("throw another", lambda: thrown.throw(ValueError("thrown")))
    early = count(9)
    show("send first", lambda: early.send("too early"))
    show("close first", lambda: count(9).close())
    show("throw exit", lambda: _after_one(count(9)).throw(GeneratorExit("thrown")))
    show("throw stop", lambda: _after_one(count(9)).throw(StopIteration("thrown")))
    for name, error in errors().items():
        show(f"fail later {name}", lambda error=error: list(count_then_fail(error)))
    abandoned = count(9)
    next(abandoned)
    del abandoned
    show("wrong arguments", lambda: list(count()))


def _after_one(steps: Any) -> Any:
    next(steps)
    return steps


def _value(steps: Any) -> Any:
    while True:
        try:
            next(steps)
        except StopIteration as stop:  # noqa: PERF203
            return stop.value


async def coroutines() -> None:
    await ashow("await", lambda: aecho("a"))
    for name, error in errors().items():
        if name not in ("interrupt", "exit"):  # these stop an event loop, whatever is around
            await ashow(f"await fail {name}", lambda error=error: afail(error))
    await ashow("timeout", lambda: asyncio.wait_for(wait(60), 0.01))
    if hasattr(asyncio, "timeout"):
        await ashow("timeout block", _in_time)
    task = asyncio.ensure_future(wait(60))
    await asyncio.sleep(0)
    print("cancel", task.cancel("a reason"))
    await ashow("cancelled", lambda: task)
    many = [aecho(n) for n in range(20)]
    await ashow("gather", lambda: asyncio.gather(*many))
    await ashow("gather failing", lambda: asyncio.gather(aecho(1), afail(KeyError("x"))))
    unawaited = aecho("never")
    unawaited.close()
    show("closed", lambda: unawaited.send(None))


async def _in_time() -> str:
    async with asyncio.timeout(0.01):
        return await wait(60)


async def async_generators() -> None:
    await ashow("async all", lambda: _all(acount(3)))
    steps = acount(9)
    await ashow("async next", steps.__anext__)
    await ashow("async send", lambda: steps.asend("a word"))
    await ashow("async throw", lambda: steps.athrow(KeyError("thrown")))
    await ashow("async close", steps.aclose)
    await ashow("async after", steps.__anext__)
    thrown = acount(9)
    await ashow("async next", thrown.__anext__)
    await ashow("async throw another", lambda: thrown.athrow(ValueError("thrown")))
    async for _ in acount(9):
        break
    gc.collect()
    await asyncio.sleep(0.01)


async def _all(items: Any) -> list[Any]:
    return [item async for item in items]


word: contextvars.ContextVar[str] = contextvars.ContextVar("word", default="unset")


@loopguard.tool
def set_word(text: str) -> str:
    word.set(text)
    return text


@loopguard.tool
async def aset_word(text: str) -> str:
    word.set(text)
    return text


@loopguard.tool
def yield_word(text: str) -> Iterator[str]:
    word.set(text)
    yield word.get()
    yield word.get()


def contexts() -> None:
    set_word("plain")
    print("context", word.get())
    asyncio.run(_acontexts())
    steps = yield_word("inside")
    print("context", next(steps), word.get())
    set_word("between")
    print("context", next(steps), word.get())


async def _acontexts() -> None:
    await aset_word("async")
    print("context", word.get())


class Thing:
    """Something whose end can be seen."""


def lifetimes() -> None:
    """What we are shown is not kept: it ends when the application lets go of it."""
    gc.disable()
    try:
        for name, function in (("echo", echo), ("passing", lambda thing: list(passing(thing)))):
            thing = Thing()
            seen = weakref.ref(thing)
            function(thing)
            del thing
            print("lifetime", name, seen() is None)
        error = ValueError(Thing())
        seen = weakref.ref(error.args[0])
        with contextlib.suppress(ValueError):
            fail(error)
        error.__traceback__ = None
        del error
        print("lifetime error", seen() is None)
    finally:
        gc.enable()


def looks() -> None:
    """What frameworks ask of a function before they take it for a tool."""
    for function in (echo, search, aecho, count, acount, Shop.method, Shop().of_class):
        print(
            function.__name__,
            function.__doc__,
            inspect.signature(function),
            inspect.iscoroutinefunction(function),
            inspect.isgeneratorfunction(function),
            inspect.isasyncgenfunction(function),
            function.__annotations__ == inspect.unwrap(function).__annotations__,
        )
    show("partial", loopguard.tool(partial(search, "chairs")))
    show("builtin", lambda: loopguard.tool(max)([1, 3, 2]))
    show("class", lambda: given(loopguard.tool(Thing)()))
    show("agent partial", loopguard.agent(partial(search, "chairs")))


def threads() -> None:
    context = contextvars.copy_context()
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(echo, range(50)))
        copied = [pool.submit(context.copy().run, echo, n).result() for n in range(50)]
    print("threads", results == copied == list(range(50)))
    started = [threading.Thread(target=fail, args=(SystemExit(),)) for _ in range(3)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


@loopguard.agent(name="shop")
def work() -> str:
    for part in PARTS:
        part()
    return "done"


@loopguard.agent
def failing_agent() -> None:
    raise ValueError("the agent fails")


@loopguard.agent
async def async_agent() -> str:
    await coroutines()
    await async_generators()
    return "done"


@loopguard.agent
def stuck() -> int:
    return sum(len(search("chairs")) for _ in range(12))


def runs() -> None:
    show("failing agent", failing_agent)
    show("stuck agent", stuck)
    with loopguard.run("block"):
        show("in a run", lambda: search("chairs"))
    show("run fails", _failing_run)
    asyncio.run(_async_run())


def _failing_run() -> None:
    with loopguard.run("block"):
        fail(KeyError("in the run"))


async def _async_run() -> None:
    async with loopguard.run("block"):
        await aecho(1)


PARTS = (calls, odd_values, generators, contexts, lifetimes, looks, threads)


def brief() -> None:
    """As much as shows each kind of call."""
    calls()
    generators()
    runs()
    asyncio.run(async_agent())


def main() -> None:
    print("the agent is", work())
    large()
    runs()
    print("the async agent is", asyncio.run(async_agent()))


if __name__ == "__main__":
    main()
