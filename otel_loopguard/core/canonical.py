"""The canonical form of a value: one text for all the values that users would call the same.

The form is compact JSON with sorted keys, so that an object, its JSON text and the same object with
its keys in another order have one form. `reading` says what else counts as the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from otel_loopguard.core.plain import BIG, UnknownValueError, encode, quote
from otel_loopguard.core.texts import is_form_c

if TYPE_CHECKING:
    from otel_loopguard.core.reading import Reader

    def _type_of(value: object) -> type[object]: ...  # which a type checker does not narrow by
else:
    _type_of = type

MAX_CHARS: Final = 262_144
MAX_NODES: Final = 10_000
MAX_DEPTH: Final = 32

_LEAST: Final = -BIG
_MAX_WORD: Final = (1 << 63) - 1
_MIN_WORD: Final = -(1 << 63)
_BOXES: Final = frozenset({dict, list, tuple})
_TEXT: Final = {str}
_NAMES: Final = {True: "true", False: "false", None: "null"}


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
        max_depth: how many levels are entered; a deeper structure is unknown, and so is a cycle.
        named: write an object without readable content by its type's name where it stands inside
            another value (a client among arguments), instead of giving up on the whole.
    """
    form = form_of(value, max_chars, max_nodes, max_depth, named=named)
    return None if form is None else form.text


def plain(value: object) -> object:
    """Returns a value as plain JSON types; None if unknown."""
    try:
        if _survey(value, MAX_CHARS, MAX_NODES, MAX_DEPTH) is not None:
            return value
        return _reader(MAX_CHARS, MAX_NODES, MAX_DEPTH, named=True).reduce(value)
    except (UnknownValueError, RuntimeError):  # the latter: another thread is changing it
        return None


def form_of(
    value: object, max_chars: int, max_nodes: int, max_depth: int, *, named: bool
) -> Form | None:
    """Like `canonical`, together with the length in full."""
    text = plain_form(value, max_chars, max_nodes, max_depth)
    if text is not None:
        return Form(text, len(text))
    return read_form(value, max_chars, max_nodes, max_depth, named=named)


def plain_form(value: object, max_chars: int, max_nodes: int, max_depth: int) -> str | None:
    """The form of a value that is plain JSON and within the limits already; None of any other."""
    try:
        whole_floats = _survey(value, max_chars, max_nodes, max_depth)
        if whole_floats is None:
            return None
        text = encode(_whole(value) if whole_floats else value)
    except (RuntimeError, TypeError, ValueError):  # another thread is changing it, or no stack left
        return None
    return text if text.isascii() or is_form_c(text) else None


def read_form(
    value: object, max_chars: int, max_nodes: int, max_depth: int, *, named: bool
) -> Form | None:
    """Like `form_of`, for a value that has no `plain_form`."""
    reader = _reader(max_chars, max_nodes, max_depth, named=named)
    try:
        text = encode(reader.reduce(value))
    except (UnknownValueError, RecursionError, ValueError):  # the last: Python's limit of digits
        return None
    return Form(text, len(text) + reader.left_out)


def _reader(max_chars: int, max_nodes: int, max_depth: int, *, named: bool) -> Reader:
    """What reads values of other types; most processes never need it."""
    from otel_loopguard.core.reading import Reader  # noqa: PLC0415

    return Reader(max_chars, max_nodes, max_depth, named=named)


def flat_form(value: Any, room: int, nodes: int, depth: int) -> str | None:
    """Like `plain_form`, for an object of ASCII texts and numbers like most arguments.

    It takes half as long, and finds that another value is none as soon as it can.

    Raises:
        RuntimeError, LookupError: another thread is changing it.
    """
    if _type_of(value) is not dict or depth < 1 or len(value) >= nodes:
        return None
    keys, left = value, room
    if len(value) > 1:
        # Keys of other types would be asked how they compare.
        if {*map(_type_of, value)} != _TEXT or sum(map(len, value)) > room:
            return None
        keys = sorted(value)
    said: list[str] = []
    for key in keys:
        if _type_of(key) is not str:
            return None
        item = value[key]
        kind = _type_of(item)
        if kind is str and len(item) <= left:
            left -= len(item)
            said.append(f"{quote(key)}:{quote(item)}")
        elif kind is int and _MIN_WORD <= item <= _MAX_WORD:
            said.append(f"{quote(key)}:{item}")
        elif item is None or kind is bool:
            said.append(f"{quote(key)}:{_NAMES[item]}")
        else:
            return None
    text = f"{{{','.join(said)}}}"
    return text if len(text) <= room and text.isascii() else None


def _survey(value: Any, room: int, nodes: int, depth: int) -> bool | None:  # noqa: C901, PLR0912 - one loop
    """Whether there are whole floats in a value; None unless it is plain JSON within the limits.

    Goes through the value level by level, so that no cycle holds it up.
    """
    whole_floats = False
    nodes -= 1
    level = [value]
    while level:
        depth -= 1
        deeper: list[Any] = []
        for item in level:
            kind = _type_of(item)
            if kind is str:
                room -= len(item)
            elif kind in _BOXES:
                nodes -= len(item)
                if nodes < 0 or depth < 0:
                    return None
                if kind is dict:
                    for key in item:
                        if _type_of(key) is not str:
                            return None
                        room -= len(key)
                    deeper += item.values()
                else:
                    deeper += item
            elif kind is int:
                if not _LEAST < item < BIG:
                    return None
            elif kind is float:
                whole_floats = whole_floats or item.is_integer()
            elif item is not None and kind is not bool:
                return None
        level = deeper
    return None if room < 0 or nodes < 0 else whole_floats


def _whole(value: Any) -> Any:
    """A plain value with its whole floats as whole numbers."""
    kind = _type_of(value)
    if kind is dict:
        return {k: v if _type_of(v) is str else _whole(v) for k, v in value.items()}
    if kind is list or kind is tuple:
        return [v if _type_of(v) is str else _whole(v) for v in value]
    return int(value) if kind is float and value.is_integer() else value
