"""Model SDKs whose clients send every request through one `post`: their calls, each seen once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from otel_loopguard.instrumentation import drive
from otel_loopguard.instrumentation.advising import advised
from otel_loopguard.instrumentation.asking import Asked
from otel_loopguard.instrumentation.held import Held
from otel_loopguard.instrumentation.raw import WatchedRaw, body_of, is_raw
from otel_loopguard.instrumentation.streams import is_stream, read_along
from otel_loopguard.instrumentation.watch import Watch, Wire
from otel_loopguard.runtime import guarded

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from otel_loopguard.breaking.brief import Brief
    from otel_loopguard.core.exchange import ModelResponse
    from otel_loopguard.instrumentation.table import Factory, Wrapper
    from otel_loopguard.instrumentation.turns import Later, Turn
    from otel_loopguard.instrumentation.wire.forms import Body
    from otel_loopguard.instrumentation.wiring import Wiring

Wires = Mapping[str, Wire]
"""How an endpoint's bodies are read, by the end of its path."""
Traces = Callable[[Any], "Later | None"]
"""When a client, or who has wrapped it, shows a call by a span; None if that is not to expect."""


def _never(_: Any) -> Later | None:
    return None


def post(wires: Wires, traces: Traces = _never) -> Factory:
    """For the `post` of a client."""

    def factory(wired: Wiring) -> Wrapper:
        def wrapper(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
            exchange = _begin(wired, wires, traces, instance, args, kwargs)
            if exchange is None:
                return wrapped(*args, **kwargs)
            drive.call(exchange.held or exchange, exchange.send, (wrapped, args, kwargs), {})
            return exchange.result

        return wrapper

    return factory


def async_post(wires: Wires, traces: Traces = _never) -> Factory:
    """For the `post` of an async client."""

    def factory(wired: Wiring) -> Wrapper:
        async def wrapper(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
            exchange = _begin(wired, wires, traces, instance, args, kwargs)
            if exchange is None:
                return await wrapped(*args, **kwargs)
            sent = partial(exchange.send, wrapped, args, kwargs)
            await drive.await_(exchange.held or exchange, sent)
            return exchange.result

        return wrapper

    return factory


@guarded("request of a model client")
def _begin(
    wired: Wiring,
    wires: Wires,
    traces: Traces,
    client: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> _Exchange | None:
    path, body = args[0] if args else kwargs.get("path"), _body(kwargs)
    if not isinstance(path, str) or body is None:
        return None
    endpoint = path.partition("?")[0]
    wire = next((wire for end, wire in wires.items() if endpoint.endswith(end)), None)
    if wire is None:
        return None
    wired.attachment.ensure()
    # Others put their span around the method that `post` calls.
    later = traces(client)
    if later is None and hasattr(getattr(client, "request", None), "__wrapped__"):
        later = "inside"
    request = wire.read_request(body)
    turn = wired.handwritten.begin(request, later)
    if turn is None:
        return None
    exchange = _Exchange(turn, wire, streams=bool(kwargs.get("stream")))
    sent = kwargs["body"]

    def draft(brief: Brief | None, language: str) -> Body:
        from otel_loopguard.instrumentation.wire.forms import Body  # noqa: PLC0415 - seldom needed

        form = wire.form()
        fixed = body is not sent and not form.touched().isdisjoint(_extra(kwargs))
        return Body(sent, form, request, brief, language, fixed=fixed)

    exchange.take(advised(wired, turn.call, draft))
    return exchange


def _body(kwargs: Mapping[str, Any]) -> Mapping[str, object] | None:
    """What is sent: the body, with what the application adds or replaces by `extra_body`."""
    body = kwargs.get("body")
    if not isinstance(body, Mapping):
        return None
    sent, extra = cast("Mapping[str, object]", body), _extra(kwargs)
    return {**sent, **extra} if extra else sent


def _extra(kwargs: Mapping[str, Any]) -> Mapping[str, object]:
    """What the application adds to the body, or replaces in it."""
    extra = cast("dict[str, object]", kwargs.get("options") or {}).get("extra_json")
    return cast("Mapping[str, object]", extra) if isinstance(extra, Mapping) else {}


class _Exchange:
    """One request with its response.

    Attributes:
        result: what the application gets.
        held: what stands in for the request if it is not sent.
    """

    def __init__(self, turn: Turn, wire: Wire, *, streams: bool) -> None:
        self._turn = turn
        self._wire = wire
        self._streams = streams
        self.result: Any = None
        self.held: Held | None = None
        self._sent: Any = None

    def take(self, advice: Any) -> None:
        """What becomes of the request."""
        if not isinstance(advice, Held):
            self._sent = advice
            return
        self._turn.drop()
        self.held = advice.then(self._resumed) if isinstance(advice, Asked) else advice

    def _resumed(self, _: object) -> _Exchange:
        self._turn.resume()
        return self

    def send(self, post: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the client's method, with what is sent instead."""
        return post(*args, **(kwargs if self._sent is None else {**kwargs, "body": self._sent}))

    @property
    def context(self) -> Context:
        """The context that the request is sent in."""
        return self._turn.call.context

    def finish(self, result: object = None, /) -> None:
        """The client has returned."""
        self.result = result
        if not self._later(result):
            self._turn.finish(self._read(result))

    def fail(self, error: BaseException, /) -> None:
        """The client raised."""
        self._turn.fail(error)

    @guarded("stream of a model client")
    def _later(self, result: Any) -> bool:
        """Whether the response is still to be read; from now on that is watched."""
        if is_raw(result):
            if not self._streams and result.http_response.is_closed:
                return False
            self.result = WatchedRaw(result, Watch(self._turn, self._wire))
            return True
        if not self._streams or not is_stream(result):
            return False
        read_along(result, Watch(self._turn, self._wire))
        return True

    @guarded("response of a model client")
    def _read(self, result: Any) -> ModelResponse | None:
        body = body_of(result) if is_raw(result) else result
        return None if body is None else self._wire.read_response(body)
