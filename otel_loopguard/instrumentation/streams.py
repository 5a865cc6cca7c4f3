"""Streams of the model SDKs, read along as the application reads them.

Their iterator is replaced in place, so that the application has the very stream that it would have
without us: nothing is taken early, and no context is attached meanwhile.
"""

from __future__ import annotations

import inspect
import weakref
from typing import TYPE_CHECKING, Any, cast

import wrapt

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from otel_loopguard.instrumentation.watch import Watch

    Proxy = wrapt.BaseObjectProxy[Any]
else:
    Proxy = wrapt.BaseObjectProxy


def is_stream(result: Any) -> bool:
    """Whether this is a stream that can be read along."""
    return hasattr(result, "_iterator") and hasattr(result, "response")


def read_along(stream: Any, watch: Watch) -> None:
    """Have a watch see all that a stream gives; once, however often it is called."""
    events = stream._iterator  # noqa: SLF001 - where all versions read from, and put wrappers too
    if isinstance(events, (_Events, _AsyncEvents)):
        return
    is_async = hasattr(events, "__anext__")
    stream._iterator = (_AsyncEvents if is_async else _Events)(events, watch)  # noqa: SLF001
    stream.close = _closing(stream, watch)
    stream.response = WatchedBody(stream.response, watch)


class _Events:
    """The events of a stream."""

    def __init__(self, events: Iterator[Any], watch: Watch) -> None:
        self._events = events
        self._watch = watch

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            event = next(self._events)
        except StopIteration:
            self._watch.end()
            raise
        except BaseException as error:
            self._watch.fail(error)
            raise
        self._watch.feed(event)
        return event


class _AsyncEvents:
    """The events of an async stream."""

    def __init__(self, events: AsyncIterator[Any], watch: Watch) -> None:
        self._events = events
        self._watch = watch

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        try:
            event = await self._events.__anext__()
        except StopAsyncIteration:
            self._watch.end()
            raise
        except BaseException as error:
            self._watch.fail(error)
            raise
        self._watch.feed(event)
        return event


def _closing(stream: Any, watch: Watch) -> Callable[[], Any]:
    """The `close` of a stream, which may be async. It keeps no stream alive.

    A stream that is gone by then was closed in the expression that made it.
    """
    function, body = cast("Callable[[Any], Any]", type(stream).close), stream.response
    reference = weakref.ref(stream)

    def close() -> None:
        try:
            body.close() if (stream := reference()) is None else function(stream)
        finally:
            watch.end()

    async def aclose() -> None:
        try:
            await (body.aclose() if (stream := reference()) is None else function(stream))
        finally:
            watch.end()

    return aclose if inspect.iscoroutinefunction(function) else close


class WatchedBody(Proxy):
    """The HTTP response below a stream. Helpers close it instead of the stream.

    So does the stream's own generator, even when it is collected as garbage.
    """

    def __init__(self, wrapped: Any, watch: Watch) -> None:
        super().__init__(wrapped)
        self._self_watch = watch

    def __repr__(self) -> str:
        return repr(self.__wrapped__)

    def close(self) -> None:
        """Close it."""
        self._self_watch.release()
        self.__wrapped__.close()

    async def aclose(self) -> None:
        """Close it."""
        self._self_watch.release()
        await self.__wrapped__.aclose()
