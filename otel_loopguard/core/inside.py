"""What is inside an object, read without running its code: no property, no `__getattr__`."""

from __future__ import annotations

from dataclasses import fields
from types import BuiltinFunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Iterable

_HEAP_TYPE: Final = 1 << 9  # set in `__flags__` of every class that a class statement made
_ABSENT: Final = object()
_LAZY: Final = ("__next__", "__anext__", "__await__", "__iter__", "__aiter__", "__enter__")


def type_name(kind: type) -> str:
    """Returns module and qualified name of a type."""
    return f"{kind.__module__}.{kind.__qualname__}"


def is_lazy(kind: type) -> bool:
    """Whether instances hand out their content while it is asked for: streams, files, cursors."""
    return any(hasattr(kind, name) for name in _LAZY)


def declared_fields(value: object) -> dict[str, object] | None:
    """Returns the fields of a dataclass or pydantic instance; None for any other object.

    Fields that a dataclass leaves out of comparison are left out. One that keeps a field behind a
    property is like any other object.
    """
    kind: Any = type(value)
    if hasattr(kind, "__dataclass_fields__"):
        names = [field.name for field in fields(kind) if field.compare]
        found = _present(value, names)
        missing = (name for name in names if name not in found)
        return None if any(_is_property(_held(kind, name)) for name in missing) else found
    if hasattr(kind, "__pydantic_validator__"):
        names = getattr(kind, "__pydantic_fields__", None) or kind.model_fields
        extra = _present(value, ("__pydantic_extra__",)).get("__pydantic_extra__")
        return _present(value, names) | cast("dict[str, object]", extra or {})
    if hasattr(kind, "__fields__") and hasattr(kind, "__config__"):  # pydantic 1
        return dict(_state(value))
    return None


def attributes(value: object) -> dict[str, object]:
    """Returns all attributes that an instance of a Python class keeps, `__slots__` included.

    An object whose state is partly held by a C type has no attributes that tell it apart, so it
    has none here.
    """
    found: dict[str, object] = {}
    for base in type(value).__mro__[:-1]:
        inside = vars(base)
        if not base.__flags__ & _HEAP_TYPE or type(inside.get("__new__")) is BuiltinFunctionType:
            return {}
        if "__slots__" in inside:
            slots = (n for n, member in inside.items() if type(member) is MemberDescriptorType)
            found |= _present(value, slots)
    return found | _state(value)


def _present(value: object, names: Iterable[str]) -> dict[str, object]:
    """Those of the named attributes that the instance keeps, in its dictionary or a slot."""
    state = _state(value)
    found: dict[str, object] = {}
    for name in names:
        item = state[name] if name in state else _slot(value, name)
        if item is not _ABSENT:
            found[name] = item
    return found


def _state(value: object) -> dict[str, object]:
    """The instance's dictionary, unless its class puts something else under that name."""
    held: Any = _held(type(value), "__dict__")
    return held.__get__(value) if type(held) is GetSetDescriptorType else {}


def _slot(value: object, name: str) -> object:
    held: Any = _held(type(value), name)
    try:
        return held.__get__(value) if type(held) is MemberDescriptorType else _ABSENT
    except AttributeError:  # never set
        return _ABSENT


def _is_property(held: object) -> bool:
    return hasattr(type(held), "__set__") and type(held) is not MemberDescriptorType


def _held(kind: type[object], name: str) -> object:
    """What a class or its nearest base holds under a name."""
    for base in kind.__mro__:
        held = vars(base).get(name, _ABSENT)
        if held is not _ABSENT:
            return held
    return _ABSENT
