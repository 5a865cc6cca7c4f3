"""A latch on states that are set and undone and set again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

_V = TypeVar("_V")


class StateLatch(Generic[_V]):
    """Lets a state change freely until it goes back and forth, then holds it.

    A change to a value that the state had before is a return. After `returns` of them the state is
    held: it can only change to a value that it never had, which also sets the count back.
    Thread-safe. Bounded: of each state the newest 16 values are known, and of all states the
    newest `max_states`.

    Args:
        returns: how many times a state may go back to a value that it had.
        max_states: how many states are watched at once.

    Raises:
        ValueError: a number is out of its range.
    """

    KNOWN = 16

    def __init__(self, *, returns: int = 2, max_states: int = 256) -> None:
        if returns < 0 or max_states < 1:
            raise ValueError("returns >= 0 and max_states >= 1 are needed")
        self._returns, self._max = returns, max_states
        self._lock = threading.Lock()
        self._states: OrderedDict[str, _Held[_V]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._states)

    def allows(self, name: str, value: _V) -> bool:
        """Whether a state may be set to a value now. Takes note of nothing."""
        with self._lock:
            held = self._states.get(name)
            return held is None or held.allows(value, self._returns)

    def set(self, name: str, value: _V) -> bool:
        """Take note that a state is to be set; False if it is held and must stay as it is.

        Args:
            name: the state, such as the path of a file or the id of a ticket.
            value: what it is to be; compared by equality.
        """
        with self._lock:
            held = self._states.setdefault(name, _Held())
            self._states.move_to_end(name)
            if len(self._states) > self._max:
                self._states.popitem(last=False)
            if not held.allows(value, self._returns):
                return False
            held.take(value, self.KNOWN)
            return True

    def release(self, name: str) -> None:
        """Forget a state: somebody has decided."""
        with self._lock:
            self._states.pop(name, None)


class _Held(Generic[_V]):
    """The values that one state had, newest last, and how often it went back to one of them."""

    __slots__ = ("returned", "values")

    def __init__(self) -> None:
        self.values: list[_V] = []
        self.returned = 0

    def allows(self, value: _V, returns: int) -> bool:
        return self.returned < returns or not self._goes_back(value)

    def take(self, value: _V, known: int) -> None:
        if self._goes_back(value):
            self.returned += 1
            self.values.remove(value)
        elif not self.values or value != self.values[-1]:
            self.returned = 0
        else:
            return
        self.values.append(value)
        del self.values[:-known]

    def _goes_back(self, value: _V) -> bool:
        return value in self.values[:-1]
