"""Makes wrappers out of what a framework's table knows: how to begin the scope of one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from otel_loopguard.instrumentation import drive
from otel_loopguard.runtime import guarded

if TYPE_CHECKING:
    from otel_loopguard.instrumentation.held import Held
    from otel_loopguard.instrumentation.table import Factory, Wrapper
    from otel_loopguard.instrumentation.wiring import Wiring

Begin = Callable[["Wiring", Any, tuple[Any, ...], Mapping[str, Any]], "drive.Scope | Held | None"]
"""Begins the scope of one call, given the wiring, the instance and the call's arguments; None if
the call is to run as if we were not there, `Held` if it is not to be made."""


def calls(begin: Begin) -> Factory:
    """For a function: each call of it runs in a scope."""
    safe = guarded("start of a hook")(begin)

    def factory(wired: Wiring) -> Wrapper:
        def wrapper(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
            scope = safe(wired, instance, args, kwargs)
            if scope is None:
                return wrapped(*args, **kwargs)
            return drive.call(scope, wrapped, args, kwargs)

        return wrapper

    return factory


def awaits(begin: Begin) -> Factory:
    """For a coroutine function."""
    safe = guarded("start of a hook")(begin)

    def factory(wired: Wiring) -> Wrapper:
        async def wrapper(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
            scope = safe(wired, instance, args, kwargs)
            if scope is None:
                return await wrapped(*args, **kwargs)
            return await drive.await_(scope, partial(wrapped, *args, **kwargs))

        return wrapper

    return factory


def iterates(begin: Begin, items: Callable[[], drive.Items]) -> Factory:
    """For a generator function; `items` makes what reads the result out of what is yielded."""
    safe = guarded("start of a hook")(begin)

    def factory(wired: Wiring) -> Wrapper:
        def wrapper(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
            start = partial(safe, wired, instance, args, kwargs)
            return drive.iterate(start, wrapped(*args, **kwargs), items)

        return wrapper

    return factory


def aiterates(begin: Begin, items: Callable[[], drive.Items]) -> Factory:
    """For an async generator function."""
    safe = guarded("start of a hook")(begin)

    def factory(wired: Wiring) -> Wrapper:
        def wrapper(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
            start = partial(safe, wired, instance, args, kwargs)
            return drive.aiterate(start, wrapped(*args, **kwargs), items)

        return wrapper

    return factory
