"""What is inside an object, read without running its code: no property, no `__getattr__`."""

from __future__ import annotations

from dataclasses import fields
from types import BuiltinFunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Iterable

_HEAP_TYPE: Final = 1 << 9  # set in `__flags__` of every class that a class statement made
_ABSENT: Final = object()
_STORED: Final = frozenset({GetSetDescriptorType, MemberDescriptorType})
_LAZY: Final = ("__next__", "__anext__", "__await__", "__iter__", "__aiter__", "__enter__")


def type_name(kind: type) -> str:
    """Returns module and qualified name of a type."""
    return f"{kind.__module__}.{kind.__qualname__}"


def is_lazy(kind: type) -> bool:
    """Whether instances hand out their content while it is asked for: streams, files, cursors."""
    return any(hasattr(kind, name) for name in _LAZY)


def declared_fields(value: object) -> dict[str, object] | None:
    """Returns the fields of a dataclass or pydantic instance; None for any other object.

    Fields that a dataclass leaves out of comparison are left out.
    """
    kind: Any = type(value)
    if hasattr(kind, "__dataclass_fields__"):
        return _present(value, (field.name for field in fields(kind) if field.compare))
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
    """Those of the named attributes that the instance has."""
    return {n: v for n in names if (v := _attribute(value, n)) is not _ABSENT}


def _state(value: object) -> dict[str, object]:
    return cast("dict[str, object]", _present(value, ("__dict__",)).get("__dict__", {}))


def _attribute(value: object, name: str) -> object:
    if any(_runs_code(base.__dict__.get(name)) for base in type(value).__mro__):
        return _ABSENT
    try:
        return object.__getattribute__(value, name)
    except AttributeError:
        return _ABSENT


def _runs_code(held: object) -> bool:
    """Whether what a class holds under a name comes before what its instances hold: a property."""
    kind = type(held)
    return kind not in _STORED and hasattr(kind, "__get__") and hasattr(kind, "__set__")
