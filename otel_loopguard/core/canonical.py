"""The canonical form of a value: one text for all the values that users would call the same.

The form is compact JSON with sorted keys, so that an object, its JSON text and the same object with
its keys in another order have one form. `1`, `1.0` and `-0.0` are written as whole numbers, tuples
as lists, strings in Unicode form C; dates, paths, UUIDs and enums as their plain value; dataclasses
and pydantic models as the mapping of their fields. What JSON cannot say starts with `#`: bytes,
sets, other objects, the way back up in a cycle.

Reading a value runs as little of its code as possible: never its `repr`, `str`, `==`, `hash` or a
property, and iteration only of mappings, sequences and sets. Iterators, coroutines, files are left
alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from hashlib import blake2b
from itertools import islice
from json.encoder import encode_basestring
from pathlib import PurePath
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Final, NamedTuple, cast
from uuid import UUID

from otel_loopguard.core.inside import attributes, declared_fields, is_lazy, type_name
from otel_loopguard.core.plain import BIG, form_c, plain_form

MAX_CHARS: Final = 262_144
MAX_NODES: Final = 10_000
MAX_DEPTH: Final = 32

_SAMPLES: Final = 16  # blocks that stand for a text that is too long
_NOT_FINITE: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
_LEAST: Final = 64  # characters of a text that are read even when all room is used up


class UnknownValueError(Exception):
    """The value has no stable content, or reading it would take more work than allowed."""


class Form(NamedTuple):
    """A canonical form and the length in characters that it would have in full."""

    text: str
    size: int


def canonical(
    value: object,
    *,
    max_chars: int = MAX_CHARS,
    max_nodes: int = MAX_NODES,
    max_depth: int = MAX_DEPTH,
    named: bool = False,
) -> str | None:
    """Returns the canonical form of a value; None if unknown.

    Args:
        value: anything.
        max_chars: how many characters of text are read; a longer text is sampled.
        max_nodes: how many values are visited; a larger structure is unknown.
        max_depth: how many levels are entered; a deeper structure is unknown.
        named: write an object without readable content by its type's name where it stands inside
            another value (a client among arguments), instead of giving up on the whole.
    """
    form = form_of(value, max_chars, max_nodes, max_depth, named=named)
    return None if form is None else form.text


def form_of(
    value: object, max_chars: int, max_nodes: int, max_depth: int, *, named: bool
) -> Form | None:
    """Like `canonical`, together with the length in full."""
    try:
        text = plain_form(value, max_chars, max_nodes, max_depth)
        if text is not None:
            return Form(text, len(text))
        return Writer(max_chars, max_nodes, max_depth, named=named).form(value)
    except UnknownValueError:
        return None


def sample(text: str, room: int) -> str:
    """Returns a text in Unicode form C; of one longer than `room` characters only a sample.

    The sample is the length and evenly spaced blocks, head and tail among them.
    """
    size = str.__len__(text)
    if size <= room:
        return form_c(str.__getitem__(text, slice(None)))
    blocks = (str.__getitem__(text, block) for block in _blocks(size, room))
    return f"#{size}:{''.join(blocks)}"


def _blocks(size: int, room: int) -> Iterable[slice]:
    """Slices of at most `room` items in all, evenly spaced over `size` items."""
    length = max(room // _SAMPLES, 1)
    gap = (size - length) / (_SAMPLES - 1)
    return (slice(int(i * gap), int(i * gap) + length) for i in range(_SAMPLES))


class Writer:
    """Writes one value the long way, within limits. Use once."""

    def __init__(self, max_chars: int, max_nodes: int, max_depth: int, *, named: bool) -> None:
        self._room = max_chars
        self._nodes = max_nodes
        self._max_nodes = max_nodes
        self._max_depth = max_depth
        self._named = named
        self._left_out = 0
        self._open: dict[int, int] = {}  # id -> level of every container around this place
        self._inside_object = False

    def form(self, value: object) -> Form:
        """Returns the value's form.

        Raises:
            UnknownValueError: there is none, or what the value's own code raised on the way.
        """
        try:
            text = self.write(value)
        except UnknownValueError:
            raise
        except Exception as error:
            raise UnknownValueError from error
        return Form(text, len(text) + self._left_out)

    def write(self, value: object) -> str:
        """Writes a value at the present place."""
        self._nodes -= 1
        if self._nodes < 0:
            raise UnknownValueError
        kind = type(value)
        for base in kind.__mro__:
            write = _WRITERS.get(base)
            if write is not None:
                return write(self, value)
        return self._foreign(value, kind)

    def text(self, text: str) -> str:
        """Takes a text as far as there is room."""
        size = str.__len__(text)
        taken = sample(text, max(self._room, _LEAST))
        self._left_out += max(size - len(taken), 0)
        self._room = max(self._room - size, 0)
        return taken

    def data(self, value: Any) -> str:
        """Writes bytes as the digest of their content."""
        view = memoryview(value).cast("B")
        room = max(self._room, _LEAST)
        whole = len(view) <= room
        digest = blake2b(digest_size=16)
        for block in [slice(None)] if whole else _blocks(len(view), room):
            digest.update(view[block])
        self._room = max(self._room - len(view), 0)
        return f"#bytes:{len(view)}:{digest.hexdigest()}"

    def mapping(self, value: object, items: Iterable[tuple[object, object]]) -> str:
        """Writes a mapping, sorted by key; keys as JSON would write them."""

        def inside() -> str:
            with self._any_order():
                pairs = [(self._key(k), v) for k, v in islice(items, self._max_nodes + 1)]
            if len({key for key, _ in pairs}) < len(pairs):
                raise UnknownValueError  # two keys that JSON would write alike
            pairs.sort(key=lambda pair: pair[0])
            return ",".join(f"{encode_basestring(k)}:{self.write(v)}" for k, v in pairs)

        return f"{{{self._enter(value, inside)}}}"

    def sequence(self, value: Iterable[object]) -> str:
        """Writes a sequence in its order."""

        def inside() -> str:
            return ",".join(self.write(v) for v in islice(value, self._max_nodes + 1))

        return f"[{self._enter(value, inside)}]"

    def bag(self, value: Iterable[object]) -> str:
        """Writes a set, sorted by what its members look like."""

        def inside() -> str:
            with self._any_order():
                texts = sorted(self.write(v) for v in islice(value, self._max_nodes + 1))
            return ",".join(texts)

        return f"#set[{self._enter(value, inside)}]"

    def named(self, name: str, items: Sequence[object]) -> str:
        """Writes something that has a name and parts."""
        return f"#{name}{self.sequence(items)}"

    @contextmanager
    def _any_order(self) -> Iterator[None]:
        """Guards texts that come in no order: which of them are sampled must not depend on it."""
        room = self._room
        yield
        if room > 0 and self._room == 0:
            raise UnknownValueError

    def _key(self, key: object) -> str:
        return self.text(key) if isinstance(key, str) else self.write(key)

    def _enter(self, value: object, inside: Callable[[], str]) -> str:
        """Writes what is inside a container, one level deeper, unless it is around itself."""
        level = len(self._open)
        around = self._open.get(id(value))
        if around is not None:
            return f"#up:{level - around}"
        if level >= self._max_depth:
            raise UnknownValueError
        self._open[id(value)] = level
        try:
            return inside()
        finally:
            del self._open[id(value)]

    def _foreign(self, value: object, kind: type) -> str:
        """Writes what is none of the known types."""
        fields = declared_fields(value)
        if fields is not None:
            return self.mapping(value, fields.items())
        if issubclass(kind, Mapping):
            return self.mapping(value, cast("Mapping[object, object]", value).items())
        if issubclass(kind, Sequence):
            return self.sequence(cast("Sequence[object]", value))
        if issubclass(kind, AbstractSet):
            return self.bag(cast("AbstractSet[object]", value))
        return self._object(value, kind)

    def _object(self, value: object, kind: type) -> str:
        """Writes an object by its type and attributes: of an argument only the public ones."""
        state = None if is_lazy(kind) else attributes(value)
        if state and self._named:
            state = None if self._inside_object else _public(state)
        if state:
            outer, self._inside_object = self._inside_object, True
            try:
                return f"#{type_name(kind)}{self.mapping(value, state.items())}"
            finally:
                self._inside_object = outer
        if self._named and self._open:
            return f"#{type_name(kind)}"
        raise UnknownValueError


def _public(state: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in state.items() if not name.startswith("_")}


def _int(value: int) -> str:
    return int.__repr__(value) if -BIG < value < BIG else f"#{int.__index__(value):x}"


def _float(value: float) -> str:
    if float.is_integer(value):
        return _int(int(value))
    return _NOT_FINITE.get(float.__repr__(value)) or float.__repr__(value)


def _decimal(value: Decimal) -> str:
    """As a float of the same value is written, if there is one."""
    if value.is_nan():
        return "NaN"
    number = float(value)
    return _float(number) if Decimal(float.__repr__(number)) == value else f"#{value!s}"


_WRITERS: Final[Mapping[type, Callable[[Writer, Any], str]]] = {
    type(None): lambda _, __: "null",
    bool: lambda _, v: "true" if v else "false",
    int: lambda _, v: _int(v),
    float: lambda _, v: _float(v),
    str: lambda w, v: encode_basestring(w.text(v)),
    dict: lambda w, v: w.mapping(v, dict.items(v)),
    list: lambda w, v: w.sequence(v),
    tuple: lambda w, v: w.sequence(v),
    deque: lambda w, v: w.sequence(v),
    set: lambda w, v: w.bag(v),
    frozenset: lambda w, v: w.bag(v),
    bytes: Writer.data,
    bytearray: Writer.data,
    memoryview: Writer.data,
    Enum: lambda w, v: w.write(object.__getattribute__(v, "_value_")),
    datetime: lambda w, v: encode_basestring(datetime.isoformat(v)),
    date: lambda w, v: encode_basestring(date.isoformat(v)),
    time: lambda w, v: encode_basestring(time.isoformat(v)),
    timedelta: lambda w, v: w.named("timedelta", (v.days, v.seconds, v.microseconds)),
    UUID: lambda w, v: encode_basestring(UUID.__str__(v)),
    Decimal: lambda _, v: _decimal(v),
    Fraction: lambda w, v: w.named("fraction", (v.numerator, v.denominator)),
    complex: lambda w, v: w.named("complex", (v.real, v.imag)),
    PurePath: lambda w, v: encode_basestring(w.text(PurePath.__str__(v))),
    BaseException: lambda w, v: w.named(type_name(type(v)), v.args),
    type: lambda _, v: f"#{type_name(v)}",
    FunctionType: lambda _, v: f"#{v.__module__}.{v.__qualname__}",
    BuiltinFunctionType: lambda _, v: f"#{v.__module__}.{v.__qualname__}",
    MethodType: lambda w, v: w.write(v.__func__),
    ModuleType: lambda _, v: f"#{v.__name__}",
}
