"""One model call whose response is read after the call has returned."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from otel_loopguard.runtime import guarded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from otel_loopguard.core.exchange import ModelRequest, ModelResponse
    from otel_loopguard.instrumentation.turns import Turn
    from otel_loopguard.instrumentation.wire.forms import Form


class StreamReader(Protocol):
    """Gathers a response from its events."""

    def feed(self, event: object) -> None:
        """Take in one event."""
        ...

    def response(self) -> ModelResponse:
        """What has come so far."""
        ...


class Wire(Protocol):
    """A module of `wire`: how one endpoint's bodies are read."""

    def read_request(self, body: Mapping[str, object]) -> ModelRequest:
        """The body of a request."""
        ...

    def form(self) -> Form:
        """How a request is changed."""
        ...

    def read_response(self, obj: object) -> ModelResponse:
        """The body of a response."""
        ...

    def StreamReader(self) -> StreamReader:  # noqa: N802 - it is a class
        """A reader for one streamed response."""
        ...


class Watch:
    """A model call whose response is still to be read. It ends once, with what came until then."""

    def __init__(self, turn: Turn, wire: Wire) -> None:
        self._turn = turn
        self._wire = wire
        self._reader = wire.StreamReader()

    @guarded("event of a stream")
    def feed(self, event: object) -> None:
        """The application reads an event."""
        self._reader.feed(event)

    @guarded("end of a stream")
    def end(self) -> None:
        """The response is over, or nobody wants more of it."""
        self._turn.finish(self._reader.response())

    @guarded("failure of a stream")
    def fail(self, error: BaseException) -> None:
        """Reading it raised."""
        self._turn.fail(error, self._reader.response())

    @guarded("body of a response")
    def whole(self, body: object) -> None:
        """The response was read at once."""
        self._turn.finish(self._wire.read_response(body))

    def release(self) -> None:
        """Nobody reads on, as it seems: end now, but do so with the next model call or tick.

        The garbage collector may call this while any lock is held, in our code or another's.
        """
        turn, reader, now_ns = self._turn, self._reader, time.time_ns()
        turn.later(lambda: turn.finish(reader.response(), now_ns))

    def __del__(self) -> None:
        self.release()
