"""Raw responses of the model SDKs: their body is read by the application, now or later."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from otel_loopguard.instrumentation.streams import Watched, watched
from otel_loopguard.runtime import guarded

if TYPE_CHECKING:
    from collections.abc import Callable

    from otel_loopguard.instrumentation.watch import Watch

READING: Final = frozenset({"parse", "read", "json", "text"})
"""Methods of a raw response that read its body."""


def is_raw(result: Any) -> bool:
    """Whether this is a raw response."""
    return hasattr(result, "http_response")


def body_of(raw: Any) -> object:
    """The body of a raw response that has been read; None if it is no JSON."""
    try:
        return raw.http_response.json()
    except (ValueError, RuntimeError):  # no JSON; not read (what httpx raises is a RuntimeError)
        return None


class WatchedRaw(Watched):
    """A raw response whose body is not read yet, sync or async."""

    def __init__(self, wrapped: Any, watch: Watch) -> None:
        super().__init__(wrapped, watch)
        self._self_stream: tuple[object, object] = (None, None)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.__wrapped__, name)
        if name == "close" or (name in READING and callable(found)):
            read = self._self_aread if inspect.iscoroutinefunction(found) else self._self_read
            return partial(read, name, found)
        return found

    def _self_read(self, name: str, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        try:
            result = method(*args, **kwargs)
        except BaseException as error:
            self._self_watch.fail(error)
            raise
        return self._self_after(name, result)

    async def _self_aread(
        self, name: str, method: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Any:
        try:
            result = await method(*args, **kwargs)
        except BaseException as error:
            self._self_watch.fail(error)
            raise
        return self._self_after(name, result)

    def _self_after(self, name: str, result: object) -> object:
        if name == "close":
            self._self_watch.end()
            return result
        before, proxy = self._self_stream
        if before is None or before is not result:
            proxy = self._self_received(result)
            self._self_stream = (result, proxy)
        return result if proxy is None else proxy

    @guarded("body of a raw response")
    def _self_received(self, result: object) -> object:
        if hasattr(result, "__stream__"):
            return watched(result, self._self_watch)
        body = body_of(self.__wrapped__)
        if body is not None:
            self._self_watch.whole(body)
        return result
