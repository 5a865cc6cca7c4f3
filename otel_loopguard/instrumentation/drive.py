"""Run the application's code inside a scope, whatever its kind: call, coroutine, generator, stream.

The context is attached only while the application's code runs, never across a yield: a consumer may
go on in another task, or never come back.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from opentelemetry import context as otel_context

from otel_loopguard.core.model import MISSING

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterator,
        Awaitable,
        Callable,
        Generator,
        Iterator,
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


def call(scope: Scope, function: Callable[[], _R]) -> _R:
    """Call a function inside a scope."""
    token = otel_context.attach(scope.context)
    try:
        result = function()
    except BaseException as error:
        otel_context.detach(token)
        scope.fail(error)
        raise
    otel_context.detach(token)
    scope.finish(result)
    return result


async def await_(scope: Scope, function: Callable[[], Awaitable[_R]]) -> _R:
    """Await what a function gives inside a scope."""
    token = otel_context.attach(scope.context)
    try:
        result = await function()
    except BaseException as error:
        otel_context.detach(token)
        scope.fail(error)
        raise
    otel_context.detach(token)
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
            self._items = [*self._items, item] if len(self._items) < MAX_ITEMS else None

    @property
    def result(self) -> object:
        return MISSING if self._items is None else self._items


def iterate(
    begin: Callable[[], Scope | None],
    iterator: Iterator[Any],
    make_items: Callable[[], Items] = _AllItems,
) -> Generator[Any, Any, Any]:
    """Pass on what an iterator yields; each step of it runs inside a scope.

    The scope begins with the first step, as the application's own code does. Where `begin` gives
    None, the iterator is passed on as it is. `make_items` makes what reads the result.
    """
    scope = begin() or NO_SCOPE
    items = make_items()
    step: Callable[[], Any] = partial(next, iterator)
    while True:
        try:
            item = _attached(scope, step)
        except StopIteration as stop:
            scope.finish(items.result)
            return stop.value
        except BaseException as error:
            scope.fail(error)
            raise
        items.add(item)
        try:
            sent = yield item
        except GeneratorExit as abandoned:
            _attached(scope, getattr(iterator, "close", _nothing))
            scope.fail(abandoned)
            raise
        except BaseException as error:  # noqa: BLE001 - goes into the application's generator
            step = partial(_throw(iterator), error)
        else:
            step = partial(next, iterator) if sent is None else partial(_send(iterator), sent)


async def aiterate(
    begin: Callable[[], Scope | None],
    iterator: AsyncIterator[Any],
    make_items: Callable[[], Items] = _AllItems,
) -> AsyncGenerator[Any, Any]:
    """Pass on what an async iterator yields; like `iterate`."""
    scope = begin() or NO_SCOPE
    items = make_items()
    step: Callable[[], Awaitable[Any]] = iterator.__anext__
    while True:
        try:
            item = await _attached_async(scope, step)
        except StopAsyncIteration:
            scope.finish(items.result)
            return
        except BaseException as error:
            scope.fail(error)
            raise
        items.add(item)
        try:
            sent = yield item
        except GeneratorExit as abandoned:
            await _attached_async(scope, getattr(iterator, "aclose", _nothing_async))
            scope.fail(abandoned)
            raise
        except BaseException as error:  # noqa: BLE001 - goes into the application's generator
            step = partial(getattr(iterator, "athrow"), error)  # noqa: B009
        else:
            step = iterator.__anext__ if sent is None else partial(_asend(iterator), sent)


def _attached(scope: Scope, step: Callable[[], _R]) -> _R:
    token = otel_context.attach(scope.context)
    try:
        return step()
    finally:
        otel_context.detach(token)


async def _attached_async(scope: Scope, step: Callable[[], Awaitable[_R]]) -> _R:
    token = otel_context.attach(scope.context)
    try:
        return await step()
    finally:
        otel_context.detach(token)


def _throw(iterator: Any) -> Callable[[BaseException], Any]:
    return iterator.throw


def _send(iterator: Any) -> Callable[[object], Any]:
    return iterator.send


def _asend(iterator: Any) -> Callable[[object], Awaitable[Any]]:
    return iterator.asend


def _nothing() -> None:
    """An iterator that cannot be closed."""


async def _nothing_async() -> None:
    """An async iterator that cannot be closed."""
