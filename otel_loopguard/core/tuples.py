"""Named tuples, made past the `__new__` that a NamedTuple has: it is written in Python.

Only for what is made at each step: all fields have to be given, in their order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Iterable

_T = TypeVar("_T", bound=tuple[object, ...])


class _Make(Protocol):
    def __call__(self, kind: type[_T], values: Iterable[object], /) -> _T: ...


make: Final = cast("_Make", tuple.__new__)
"""Makes a named tuple of a kind out of the values of all its fields."""
