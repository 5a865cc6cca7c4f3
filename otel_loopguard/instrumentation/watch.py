"""One model call whose response is read after the call has returned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from otel_loopguard.runtime import guarded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from otel_loopguard.core.exchange import ModelRequest, ModelResponse
    from otel_loopguard.instrumentation.handwritten import Turn

_R = TypeVar("_R")


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

    def read_response(self, obj: object) -> ModelResponse:
        """The body of a response."""
        ...

    def StreamReader(self) -> StreamReader:  # noqa: N802 - it is a class
        """A reader for one streamed response."""
        ...


class Watch:
    """One model call whose response is still to be read. It ends once, with what has come so far.

    If the application lets go of the response, it ends with the next model call or soon after: the
    garbage collector may call while any lock is held, so nothing is done there and then.
    """

    def __init__(self, turn: Turn, wire: Wire) -> None:
        self._turn = turn
        self._wire = wire
        self._reader = wire.StreamReader()
        self._paused = False

    def step(self, advance: Callable[[], _R]) -> _R:
        """Take the next event from a stream."""
        self._paused = False
        try:
            event = advance()
        except StopIteration:
            self.end()
            raise
        except BaseException as error:
            self.fail(error)
            raise
        self._feed(event)
        return event

    async def astep(self, advance: Callable[[], Awaitable[_R]]) -> _R:
        """Take the next event from an async stream."""
        self._paused = False
        try:
            event = await advance()
        except StopAsyncIteration:
            self.end()
            raise
        except BaseException as error:
            self.fail(error)
            raise
        self._feed(event)
        return event

    @guarded("end of a stream")
    def end(self) -> None:
        """The response is over, or nobody wants more of it."""
        self._turn.finish(self._reader.response())

    @guarded("failure of a stream")
    def fail(self, error: BaseException) -> None:
        """Reading it raised."""
        self._turn.fail(error, self._reader.response())

    def pause(self) -> None:
        """A loop over the stream was left. Unless another one takes it up, that was the end."""
        self._paused = True
        self._turn.later(self._end_if_paused)

    def whole(self, body: object) -> None:
        """The response was read at once."""
        self._turn.finish(self._wire.read_response(body))

    @guarded("event of a stream")
    def _feed(self, event: object) -> None:
        self._reader.feed(event)

    def _end_if_paused(self) -> None:
        if self._paused:
            self.end()

    def __del__(self) -> None:
        turn, reader = self._turn, self._reader
        turn.later(lambda: turn.finish(reader.response()))
