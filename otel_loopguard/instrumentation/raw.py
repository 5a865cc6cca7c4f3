"""Raw responses of the model SDKs: their body is read by the application, now or later."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from otel_loopguard.instrumentation.streams import Proxy, is_stream, read_along
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


def _as_it_is(name: str) -> Any:
    """What the class of a proxy shows, and a proxy has only if the thing behind it does."""
    return property(lambda proxy: proxy.__getattr__(name))


class WatchedRaw(Proxy):
    """A raw response whose body is not read yet, sync or async."""

    __enter__ = _as_it_is("__enter__")
    __exit__ = _as_it_is("__exit__")
    __aenter__ = _as_it_is("__aenter__")
    __aexit__ = _as_it_is("__aexit__")
    parse = _as_it_is("parse")  # others look for these two on the class
    http_response = _as_it_is("http_response")

    def __init__(self, wrapped: Any, watch: Watch) -> None:
        super().__init__(wrapped)
        self._self_watch = watch

    def __repr__(self) -> str:
        return repr(self.__wrapped__)

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
        self._self_received(name, result)
        return result

    async def _self_aread(
        self, name: str, method: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Any:
        try:
            result = await method(*args, **kwargs)
        except BaseException as error:
            self._self_watch.fail(error)
            raise
        self._self_received(name, result)
        return result

    @guarded("body of a raw response")
    def _self_received(self, name: str, result: object) -> None:
        if name == "close":
            self._self_watch.end()
        elif is_stream(result):
            read_along(result, self._self_watch)
        elif (body := body_of(self.__wrapped__)) is not None:
            self._self_watch.whole(body)
