"""Streams, passed on behind proxies that look and behave as they do.

What comes is read along as the application reads it; nothing is taken early, and no context is
attached meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import wrapt

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from otel_loopguard.instrumentation.watch import Watch

if TYPE_CHECKING:
    Proxy = wrapt.BaseObjectProxy[Any]
else:
    Proxy = wrapt.BaseObjectProxy


class Watched(Proxy):
    """A proxy of something that the response is read through."""

    def __init__(self, wrapped: Any, watch: Watch) -> None:
        super().__init__(wrapped)
        self._self_watch = watch

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


class WatchedBody(Watched):
    """The HTTP response below a stream, which some helpers close instead of the stream."""

    def close(self) -> None:
        """Close it."""
        try:
            self.__wrapped__.close()
        finally:
            self._self_watch.end()

    async def aclose(self) -> None:
        """Close it."""
        try:
            await self.__wrapped__.aclose()
        finally:
            self._self_watch.end()


class WatchedStream(Watched):
    """A stream of events, read along."""

    @property
    def response(self) -> Any:
        """The HTTP response."""
        return WatchedBody(self.__wrapped__.response, self._self_watch)

    def __next__(self) -> Any:
        return self._self_watch.step(self.__wrapped__.__next__)

    def __iter__(self) -> Iterator[Any]:
        advance = iter(self.__wrapped__).__next__
        try:
            while True:
                try:
                    event = self._self_watch.step(advance)
                except StopIteration:
                    return
                yield event
        except GeneratorExit:
            self._self_watch.pause()
            raise

    def __enter__(self) -> Any:
        self.__wrapped__.__enter__()
        return self

    def __exit__(self, *error: object) -> Any:
        try:
            return self.__wrapped__.__exit__(*error)
        finally:
            self._self_watch.end()

    def close(self) -> None:
        """Close it."""
        try:
            self.__wrapped__.close()
        finally:
            self._self_watch.end()


class WatchedAsyncStream(Watched):
    """An async stream of events, read along."""

    @property
    def response(self) -> Any:
        """The HTTP response."""
        return WatchedBody(self.__wrapped__.response, self._self_watch)

    async def __anext__(self) -> Any:
        return await self._self_watch.astep(self.__wrapped__.__anext__)

    async def __aiter__(self) -> AsyncIterator[Any]:
        advance = self.__wrapped__.__aiter__().__anext__
        try:
            while True:
                try:
                    event = await self._self_watch.astep(advance)
                except StopAsyncIteration:
                    return
                yield event
        except GeneratorExit:
            self._self_watch.pause()
            raise

    async def __aenter__(self) -> Any:
        await self.__wrapped__.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> Any:
        try:
            return await self.__wrapped__.__aexit__(*error)
        finally:
            self._self_watch.end()

    async def close(self) -> None:
        """Close it."""
        try:
            await self.__wrapped__.close()
        finally:
            self._self_watch.end()


def watched(stream: Any, watch: Watch) -> object:
    """A stream behind the proxy of its kind."""
    proxy = WatchedAsyncStream if hasattr(stream, "__anext__") else WatchedStream
    return proxy(stream, watch)
