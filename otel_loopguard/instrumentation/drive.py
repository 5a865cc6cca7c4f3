"""Run the application's code inside a scope, whatever its kind: call, coroutine, generator, stream.

The context is attached only while the application's code runs, never across a yield: a consumer may
go on in another task, or never come back.
"""

from __future__ import annotations

import sys
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from opentelemetry import context as otel_context

from otel_loopguard.core.model import MISSING
from otel_loopguard.instrumentation.held import Held
from otel_loopguard.runtime import guarded
from otel_loopguard.sdk.scope import PLACE, attach, detach, entered

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterator,
        Awaitable,
        Callable,
        Generator,
        Iterator,
        Mapping,
    )

    from opentelemetry.context import Context

_R = TypeVar("_R")
MAX_ITEMS: Final = 256
"""How many items of a stream are kept as its result; a longer one is unknown."""


class Scope(Protocol):
    """A tool call or an agent run under way."""

    @property
    def context(self) -> Context:
        """The context that the application's code runs in."""
        ...

    def finish(self, result: object = ..., /) -> None:
        """It is done."""
        ...

    def fail(self, error: BaseException, /) -> None:
        """It raised."""
        ...


class _NoScope:
    """Where nothing is told: the application's code runs as if we were not there."""

    @property
    def context(self) -> Context:
        return otel_context.get_current()

    def finish(self, result: object = MISSING, /) -> None:
        """Say nothing."""

    def fail(self, error: BaseException, /) -> None:
        """Say nothing."""


NO_SCOPE: Final = _NoScope()


def call(
    scope: Scope | Held,
    function: Callable[..., _R],
    args: tuple[object, ...] = (),
    kwargs: Mapping[str, object] = MappingProxyType({}),
) -> _R:
    """Call a function inside a scope, unless the call is held back."""
    if isinstance(scope, Held):
        scope = scope.settled()
        if isinstance(scope, Held):
            return scope.give()
    inside = scope.context
    place: Any = inside.get(PLACE)
    # As `attach` and `detach` do, in fewer steps.
    token, before = otel_context.attach(inside), entered.set(place)
    try:
        result = function(*args, **kwargs)
    except BaseException as error:
        detach((token, before))
        scope.fail(error)
        raise
    otel_context.detach(token)
    try:  # noqa: SIM105
        entered.reset(before)
    except ValueError:
        pass
    scope.finish(result)
    return result


async def await_(scope: Scope | Held, function: Callable[[], Awaitable[_R]]) -> _R:
    """Await what a function gives inside a scope, unless the call is held back."""
    if isinstance(scope, Held):
        scope = await scope.settled_async()
        if isinstance(scope, Held):
            return scope.give()
    try:
        result = await _attached_async(scope, function)
    except BaseException as error:
        scope.fail(error)
        raise
    scope.finish(result)
    return result


class Items(Protocol):
    """Reads the result of a stream out of its items."""

    def add(self, item: object, /) -> None:
        """The next item."""
        ...

    @property
    def result(self) -> object:
        """What the stream gave back, MISSING if that is not known."""
        ...


class _AllItems:
    """The items of a stream, as far as they are few enough to be its result."""

    def __init__(self) -> None:
        self._items: list[object] | None = []

    def add(self, item: object) -> None:
        if self._items is not None:
            self._items.append(item)
            if len(self._items) > MAX_ITEMS:
                self._items = None

    @property
    def result(self) -> object:
        return MISSING if self._items is None else self._items


class _Told:
    """A stream's scope, and what reads its result: neither may raise into the application."""

    def __init__(self, scope: Scope | None, make_items: Callable[[], Items]) -> None:
        self.scope = scope or NO_SCOPE
        self._items = make_items()

    @guarded("item of a stream")
    def add(self, item: object) -> None:
        self._items.add(item)

    @guarded("end of a stream")
    def finish(self) -> None:
        self.scope.finish(self._items.result)


def iterate(
    begin: Callable[[], Scope | Held | None],
    iterator: Iterator[Any],
    make_items: Callable[[], Items] = _AllItems,
) -> Generator[Any, Any, Any]:
    """Pass on what an iterator yields; each step of it runs inside a scope.

    The scope begins with the first step, as the application's own code does. Where `begin` gives
    None, the iterator is passed on as it is; where the call is held back, what it gives instead is
    the only item. `make_items` makes what reads the result. What is sent and thrown, an abandonment
    included, goes to the iterator.
    """
    scope = begin()
    if isinstance(scope, Held):
        scope = scope.settled()
    if isinstance(scope, Held):
        yield scope.give()
        return scope.instead
    told = _Told(scope, make_items)
    step: Callable[[], Any] = partial(next, iterator)
    while True:
        try:
            item = _attached(told.scope, step)
        except StopIteration as stop:
            told.finish()
            return stop.value
        except BaseException as error:
            told.scope.fail(error)
            raise
        told.add(item)
        try:
            sent = yield item
        except BaseException as error:  # noqa: BLE001 - goes into the application's iterator
            step = partial(_throw, iterator, error)
        else:
            step = partial(next, iterator) if sent is None else partial(_send, iterator, sent)


def _throw(iterator: Any, error: BaseException) -> Any:
    """Raise where the iterator stands; one that is no generator can only be closed."""
    if hasattr(iterator, "throw"):
        return iterator.throw(error)
    if hasattr(iterator, "close"):
        iterator.close()
    raise error


def _send(iterator: Any, value: object) -> Any:
    return iterator.send(value)


def aiterate(
    begin: Callable[[], Scope | Held | None],
    iterator: AsyncIterator[Any],
    make_items: Callable[[], Items] = _AllItems,
) -> AsyncGenerator[Any, Any]:
    """Pass on what an async iterator yields; like `iterate`."""
    return async_generator(lambda _args, _kwargs: begin(), lambda: iterator, make_items)()


def async_generator(
    begin: Callable[[tuple[Any, ...], dict[str, Any]], Scope | Held | None],
    function: Callable[..., AsyncIterator[Any]],
    make_items: Callable[[], Items] = _AllItems,
) -> Callable[..., AsyncGenerator[Any, Any]]:
    """An async generator function around another function that gives an async iterator.

    `begin` gets the call's arguments.
    """

    async def generate(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        scope = begin(args, kwargs)
        if isinstance(scope, Held):
            scope = await scope.settled_async()
        if isinstance(scope, Held):
            yield scope.give()
            return
        iterator = function(*args, **kwargs)
        told = _Told(scope, make_items)
        step: Callable[[], Awaitable[Any]] = iterator.__anext__
        while True:
            try:
                item = await _attached_async(told.scope, step)
            except StopAsyncIteration:
                told.finish()
                return
            except BaseException as error:
                told.scope.fail(error)
                raise
            told.add(item)
            try:
                sent = yield item
            except BaseException as error:  # noqa: BLE001 - goes into the application's iterator
                step = partial(_athrow, iterator, error)
            else:
                step = iterator.__anext__ if sent is None else partial(_asend, iterator, sent)

    return generate


async def _athrow(iterator: Any, error: BaseException) -> Any:
    """Like `_throw`."""
    if hasattr(iterator, "athrow"):
        return await iterator.athrow(error)
    if hasattr(iterator, "aclose"):
        await iterator.aclose()
    raise error


async def _asend(iterator: Any, value: object) -> Any:
    return await iterator.asend(value)


def _attached(scope: Scope, step: Callable[[], _R]) -> _R:
    tokens = attach(scope.context)
    try:
        return step()
    finally:
        detach(tokens)


async def _attached_async(scope: Scope, step: Callable[[], Awaitable[_R]]) -> _R:
    inside = scope.context
    tokens = attach(inside)
    try:
        return await step()
    finally:
        # A coroutine that nobody awaits any longer is closed from somewhere else: there is nothing
        # to take off there.
        if otel_context.get_current() is inside or sys.exc_info()[0] is not GeneratorExit:
            detach(tokens)
