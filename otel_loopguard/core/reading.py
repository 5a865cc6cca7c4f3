"""Reduces any value to plain JSON types that are equal where users would call the values the same.

`1`, `1.0` and `-0.0` become whole numbers, tuples lists, strings Unicode form C; dates, paths,
UUIDs and enums their plain value; keys what JSON makes of them; dataclasses and pydantic models the
mapping of their fields. What JSON cannot say is marked with `#`: bytes, sets, other objects.

Reading a value runs as little of its code as possible: never its `repr`, `str`, `==`, `hash` or a
property, and iteration only of mappings, sequences and sets. Iterators, coroutines, files are left
alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from hashlib import blake2b
from itertools import islice
from pathlib import PurePath
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Final, cast
from uuid import UUID

from otel_loopguard.core.inside import attributes, declared_fields, is_lazy, type_name
from otel_loopguard.core.plain import BIG, UnknownValueError, encode
from otel_loopguard.core.texts import blocks, sample

_items: Final = dict[object, object].items  # past an `items` of a subclass's own
_LEAST: Final = 64  # characters of a text that are read even when all room is used up


class Reader:
    """Reads one value, within limits. Use once.

    Attributes:
        left_out: characters of text that were not read because there was no room.
    """

    def __init__(self, max_chars: int, max_nodes: int, max_depth: int, *, named: bool) -> None:
        self.left_out = 0
        self._room = max_chars
        self._nodes = max_nodes
        self._max_depth = max_depth
        self._named = named
        self._level = 0  # how many containers are around this place
        self._inside_object = False

    def reduce(self, value: object) -> object:
        """Returns the value reduced to plain JSON types.

        Raises:
            UnknownValueError: it has no stable content, exceeds the limits, or its code raised.
        """
        try:
            return self.read(value)
        except UnknownValueError:
            raise
        except Exception as error:
            raise UnknownValueError from error

    def read(self, value: object) -> object:
        """Reduces a value at the present place."""
        self._nodes -= 1
        if self._nodes < 0:
            raise UnknownValueError
        kind = type(value)
        read = _READERS.get(kind)
        if read is not None:
            return read(self, value)
        for base in kind.__mro__:
            read = _READERS.get(base)
            if read is not None:
                return read(self, value)
        return self._foreign(value, kind)

    def text(self, text: str) -> str:
        """Takes a text as far as there is room."""
        if type(text) is str and len(text) <= self._room and text.isascii():
            self._room -= len(text)
            return text
        size = str.__len__(text)
        taken = sample(text, max(self._room, _LEAST))
        self._room -= size
        if self._room < 0:
            self._room = 0
            self.left_out += max(size - len(taken), 0)
        return taken

    def data(self, value: Any) -> str:
        """Takes bytes as the digest of their content."""
        view = memoryview(value).cast("B")
        room = max(self._room, _LEAST)
        digest = blake2b(digest_size=16)
        for block in [slice(None)] if len(view) <= room else blocks(len(view), room):
            digest.update(view[block])
        self._room = max(self._room - len(view), 0)
        return f"#bytes:{len(view)}:{digest.hexdigest()}"

    def mapping(self, items: Iterable[tuple[object, object]]) -> dict[str, object]:
        """Takes a mapping in the order of its keys, whatever its own order is."""
        self._enter()
        room = self._room
        pairs = [
            (self.text(key) if type(key) is str else self._key(key), value)
            for key, value in self._few(items)
        ]
        self._check_order(room)
        found = dict(pairs)
        if len(found) < len(pairs):
            raise UnknownValueError  # two keys that JSON writes alike
        reduced = {key: self.read(found[key]) for key in sorted(found)}
        self._level -= 1
        return reduced

    def sequence(self, items: Iterable[object]) -> list[object]:
        """Takes a sequence in its order."""
        self._enter()
        reduced = [self.read(item) for item in self._few(items)]
        self._level -= 1
        return reduced

    def bag(self, items: Iterable[object]) -> dict[str, object]:
        """Takes a set in the order of its members' forms."""
        room = self._room
        texts = sorted(map(encode, self.sequence(items)))
        self._check_order(room)
        return {"#set": texts}

    def parts(self, name: str, items: Sequence[object]) -> dict[str, object]:
        """Takes something that has a name and parts."""
        return {f"#{name}": self.sequence(items)}

    def _enter(self) -> None:
        self._level += 1
        if self._level > self._max_depth:
            raise UnknownValueError

    def _few(self, items: Any) -> Iterable[Any]:
        """The items, if they are sure to be no more than may still be visited."""
        if type(items) in _SIZED:
            if len(items) > self._nodes:
                raise UnknownValueError
            return items
        return islice(items, self._nodes + 1)

    def _check_order(self, room_before: int) -> None:
        """Which texts are sampled must not depend on the order of what has no order."""
        if room_before > 0 and self._room == 0:
            raise UnknownValueError

    def _key(self, key: object) -> str:
        if isinstance(key, str):
            return self.text(key)
        reduced = self.read(key)
        return reduced if isinstance(reduced, str) else encode(reduced)

    def _foreign(self, value: object, kind: type[object]) -> object:
        """Takes what is none of the known types."""
        fields = declared_fields(value)
        if fields is not None:
            return self.mapping(fields.items())
        if issubclass(kind, Mapping):
            return self.mapping(cast("Mapping[object, object]", value).items())
        if issubclass(kind, Sequence):
            return self.sequence(cast("Sequence[object]", value))
        if issubclass(kind, AbstractSet):
            return self.bag(cast("AbstractSet[object]", value))
        return self._object(value, kind)

    def _object(self, value: object, kind: type[object]) -> object:
        """Takes an object as its type and attributes: in arguments only the public ones."""
        name = f"#{type_name(kind)}"
        state = {} if is_lazy(kind) else attributes(value)
        if not self._named:
            if not state:
                raise UnknownValueError
            return {name: self.mapping(state.items())}
        return self._argument(name, {k: v for k, v in state.items() if not k.startswith("_")})

    def _argument(self, name: str, state: dict[str, object]) -> object:
        """Takes an object among arguments; by name if it has no content or is part of another."""
        level = self._level
        if state and not self._inside_object:
            self._inside_object = True
            try:
                return {name: self.mapping(state.items())}
            except UnknownValueError:
                self._level = level
            finally:
                self._inside_object = False
        if level == 0:
            raise UnknownValueError
        return name


def _int(value: int) -> object:
    return int.__index__(value) if -BIG < value < BIG else f"#{int.__index__(value):x}"


def _float(value: float) -> object:
    return int(value) if float.is_integer(value) else float.__pos__(value)


def _decimal(value: Decimal) -> object:
    """As the float of the same value, if there is one."""
    if value.is_nan():
        return float("nan")
    number = float(value)
    return _float(number) if Decimal(float.__repr__(number)) == value else f"#{value!s}"


_SIZED: Final[frozenset[type[object]]] = frozenset(
    {dict, list, tuple, set, frozenset, type(_items({}))}
)
_READERS: Final[Mapping[type, Callable[[Reader, Any], object]]] = {
    type(None): lambda _, v: v,
    bool: lambda _, v: v,
    int: lambda _, v: _int(v),
    float: lambda _, v: _float(v),
    str: Reader.text,
    dict: lambda r, v: r.mapping(_items(v)),
    list: Reader.sequence,
    tuple: Reader.sequence,
    deque: Reader.sequence,
    set: Reader.bag,
    frozenset: Reader.bag,
    bytes: Reader.data,
    bytearray: Reader.data,
    memoryview: Reader.data,
    Enum: lambda r, v: r.read(object.__getattribute__(v, "_value_")),
    datetime: lambda _, v: datetime.isoformat(v),
    date: lambda _, v: date.isoformat(v),
    time: lambda _, v: time.isoformat(v),
    timedelta: lambda r, v: r.parts("timedelta", (v.days, v.seconds, v.microseconds)),
    UUID: lambda _, v: UUID.__str__(v),
    Decimal: lambda _, v: _decimal(v),
    Fraction: lambda r, v: r.parts("fraction", (v.numerator, v.denominator)),
    complex: lambda r, v: r.parts("complex", (v.real, v.imag)),
    PurePath: lambda r, v: r.text(PurePath.__str__(v)),
    BaseException: lambda r, v: r.parts(type_name(cast("type[object]", type(v))), v.args),
    type: lambda _, v: f"#{type_name(v)}",
    FunctionType: lambda _, v: f"#{v.__module__}.{v.__qualname__}",
    BuiltinFunctionType: lambda _, v: f"#{v.__module__}.{v.__qualname__}",
    MethodType: lambda r, v: r.read(v.__func__),
    ModuleType: lambda _, v: f"#{v.__name__}",
}
