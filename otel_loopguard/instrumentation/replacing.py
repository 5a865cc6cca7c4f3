"""Wrappers of functions whose arguments a hook may replace: like `hooks`, for models."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from otel_loopguard.instrumentation import drive
from otel_loopguard.runtime import guarded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator

    from otel_loopguard.instrumentation.held import Held
    from otel_loopguard.instrumentation.table import Factory, Wrapper
    from otel_loopguard.instrumentation.wiring import Wiring


class Given:
    """The arguments of a call.

    Attributes:
        args, kwargs: as they are passed on.
    """

    __slots__ = ("args", "kwargs")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args = args
        self.kwargs = kwargs

    def first(self, name: str) -> Any:
        """The first of them, by whatever way it was given."""
        return self.args[0] if self.args else self.kwargs.get(name)

    def replace_first(self, name: str, value: Any, more: dict[str, Any]) -> None:
        """Put something else in its place, and more arguments by name."""
        if self.args:
            self.args, self.kwargs = (value, *self.args[1:]), {**self.kwargs, **more}
        else:
            self.kwargs = {**self.kwargs, name: value, **more}

    def call(self, function: Callable[..., Any]) -> Any:
        """Call a function with them."""
        return function(*self.args, **self.kwargs)

    def iterate(self, function: Callable[..., Any]) -> Generator[Any, Any, Any]:
        """Call a generator function with them, once the first item is asked for."""
        return (yield from cast("Generator[Any, Any, Any]", self.call(function)))


Begin = Callable[["Wiring", Any, Given], "drive.Scope | Held | None"]
"""Begins the scope of one call, whose arguments it may replace; as in `hooks`."""


def calls(begin: Begin) -> Factory:
    """For a function."""
    safe = guarded("start of a hook")(begin)

    def factory(wired: Wiring) -> Wrapper:
        def wrapper(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
            given = Given(args, kwargs)
            scope = safe(wired, instance, given)
            return (
                given.call(wrapped) if scope is None else drive.call(scope, given.call, (wrapped,))
            )

        return wrapper

    return factory


def awaits(begin: Begin) -> Factory:
    """For a coroutine function."""
    safe = guarded("start of a hook")(begin)

    def factory(wired: Wiring) -> Wrapper:
        async def wrapper(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
            given = Given(args, kwargs)
            scope = safe(wired, instance, given)
            call = partial(given.call, wrapped)
            return await (call() if scope is None else drive.await_(scope, call))

        return wrapper

    return factory


def iterates(begin: Begin, items: Callable[[], drive.Items]) -> Factory:
    """For a generator function; `items` makes what reads the result out of what is yielded."""
    safe = guarded("start of a hook")(begin)

    def factory(wired: Wiring) -> Wrapper:
        def wrapper(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
            given = Given(args, kwargs)
            return drive.iterate(
                partial(safe, wired, instance, given), given.iterate(wrapped), items
            )

        return wrapper

    return factory


def aiterates(begin: Begin, items: Callable[[], drive.Items]) -> Factory:
    """For an async generator function."""
    safe = guarded("start of a hook")(begin)

    def factory(wired: Wiring) -> Wrapper:
        def wrapper(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
            given = Given(args, kwargs)

            def start(*_: Any) -> AsyncIterator[Any]:
                return given.call(wrapped)

            def started(_args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
                return safe(wired, instance, given)

            return drive.async_generator(started, start, items)()

        return wrapper

    return factory
