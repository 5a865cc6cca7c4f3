"""What the three endpoints have in common."""

from __future__ import annotations

import json
import uuid
from collections import OrderedDict
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .script import Call, Json, Reply, Turn

Event: TypeAlias = "tuple[str, Json | str]"
"""A server-sent event: its name (empty for none) and its data."""

T = TypeVar("T")


class Wire(Protocol):
    """One endpoint: requests in, replies out, both ways of sending them."""

    call_prefix: str

    def read(self, request: Json) -> Turn:
        """What the request asks.

        Raises:
            WireError: It refers to a state that the server does not have.
        """
        ...

    def plain(self, turn: Turn, reply: Reply) -> Json:
        """The reply as one object."""
        ...

    def stream(self, turn: Turn, reply: Reply) -> Iterator[Event]:
        """The reply as events."""
        ...

    def error(self, status: int, code: str, message: str) -> Json:
        """The body of a failed request."""
        ...


class WireError(Exception):
    """A request that gets an HTTP error instead of a reply.

    Args:
        status: The HTTP status.
        code: The provider's name for the error.
        message: The text of the error.
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class Memory(Generic[T]):
    """What the server keeps of past requests, by id; the oldest goes first when it is full.

    Args:
        capacity: The sum of the sizes that it holds. The newest entry always stays.
    """

    def __init__(self, capacity: int = 100_000) -> None:
        self._entries: OrderedDict[str, tuple[T, int]] = OrderedDict()
        self._lock = Lock()
        self._room = capacity

    def keep(self, key: str, value: T, size: int) -> None:
        """Remember a value, in the place of an older one of that key."""
        with self._lock:
            self._room += self._entries.pop(key, (None, 0))[1] - size
            self._entries[key] = value, size
            while self._room < 0 and len(self._entries) > 1:
                self._room += self._entries.popitem(last=False)[1][1]

    def get(self, key: str) -> T | None:
        """The value of a key, or None."""
        with self._lock:
            return self._entries.get(key, (None, 0))[0]


def fresh_id(prefix: str) -> str:
    """An id that nobody else has."""
    return f"{prefix}_{uuid.uuid4().hex[:24]}"


def with_call_ids(reply: Reply, prefix: str) -> Reply:
    """The reply with an id on each call."""
    calls = (replace(call, id=call.id or fresh_id(prefix)) for call in reply.calls)
    return replace(reply, calls=tuple(calls))


def arguments_text(call: Call) -> str:
    """The call's arguments as the model wrote them."""
    return call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)


def pieces(text: str) -> Iterator[str]:
    """The text in up to three pieces, as a stream carries it."""
    size = max(1, -(-len(text) // 3))
    return (text[start : start + size] for start in range(0, len(text), size))


def schema_at(request: Json, *path: str) -> Json | None:
    """The object at a path of keys in a request, or None."""
    value: Any = request
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else None
