"""Model SDKs whose clients send every request through one `post`: their calls, each seen once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from otel_loopguard.instrumentation import drive
from otel_loopguard.instrumentation.raw import WatchedRaw, body_of, is_raw
from otel_loopguard.instrumentation.streams import watched
from otel_loopguard.instrumentation.watch import Watch, Wire
from otel_loopguard.runtime import guarded

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from otel_loopguard.instrumentation.handwritten import Turn
    from otel_loopguard.instrumentation.table import Factory, Wrapper
    from otel_loopguard.instrumentation.wiring import Wiring

Wires = Mapping[str, Wire]
"""How an endpoint's bodies are read, by the end of its path."""
Traces = Callable[[Any], bool]
"""Whether a client makes spans of its own."""


def _never(_: Any) -> bool:
    return False


def post(wires: Wires, traces: Traces = _never) -> Factory:
    """For the `post` of a client."""

    def factory(wired: Wiring) -> Wrapper:
        def wrapper(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
            exchange = _begin(wired, wires, args, kwargs, traces=partial(traces, instance))
            if exchange is None:
                return wrapped(*args, **kwargs)
            drive.call(exchange, partial(wrapped, *args, **kwargs))
            return exchange.result

        return wrapper

    return factory


def async_post(wires: Wires, traces: Traces = _never) -> Factory:
    """For the `post` of an async client."""

    def factory(wired: Wiring) -> Wrapper:
        async def wrapper(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
            exchange = _begin(wired, wires, args, kwargs, traces=partial(traces, instance))
            if exchange is None:
                return await wrapped(*args, **kwargs)
            await drive.await_(exchange, partial(wrapped, *args, **kwargs))
            return exchange.result

        return wrapper

    return factory


@guarded("request of a model client")
def _begin(
    wired: Wiring,
    wires: Wires,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    traces: Callable[[], bool],
) -> _Exchange | None:
    path, body = args[0] if args else kwargs.get("path"), kwargs.get("body")
    if not isinstance(path, str) or not isinstance(body, Mapping):
        return None
    endpoint = path.partition("?")[0]
    wire = next((wire for end, wire in wires.items() if endpoint.endswith(end)), None)
    if wire is None:
        return None
    wired.attachment.ensure()
    request = wire.read_request(cast("Mapping[str, object]", body))
    turn = wired.handwritten.begin(request, later=traces())
    return None if turn is None else _Exchange(turn, wire, streams=bool(kwargs.get("stream")))


class _Exchange:
    """One request with its response.

    Attributes:
        result: what the application gets.
    """

    def __init__(self, turn: Turn, wire: Wire, *, streams: bool) -> None:
        self._turn = turn
        self._wire = wire
        self._streams = streams
        self.result: Any = None

    @property
    def context(self) -> Context:
        """The context that the request is sent in."""
        return self._turn.call.context

    def finish(self, result: object = None, /) -> None:
        """The client has returned."""
        self.result = result
        if (proxy := self._proxy(result)) is not None:
            self.result = proxy
        else:
            self._turn.finish(self._read(result))

    def fail(self, error: BaseException, /) -> None:
        """The client raised."""
        self._turn.fail(error)

    @guarded("stream of a model client")
    def _proxy(self, result: Any) -> object:
        """What reads along a response that is read later; None for one that is here."""
        raw = is_raw(result)
        if raw and (self._streams or not result.http_response.is_closed):
            return WatchedRaw(result, Watch(self._turn, self._wire))
        if self._streams and not raw:
            return watched(result, Watch(self._turn, self._wire))
        return None

    @guarded("response of a model client")
    def _read(self, result: Any) -> Any:
        body = body_of(result) if is_raw(result) else result
        return None if body is None else self._wire.read_response(body)
