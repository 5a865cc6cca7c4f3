"""Values that nothing may look into: whoever runs their code is found out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

touched: list[str] = []
"""Which methods of which odd values were run. Nothing of ours may add to it.

The containers among them have to be looked into, and are not counted.
"""

METHODS = (
    "__eq__", "__ne__", "__repr__", "__str__", "__iter__", "__hash__", "__len__", "__bool__",
    "__format__", "__contains__", "__getitem__", "__call__", "__index__", "__int__", "__float__",
    "__bytes__", "__fspath__", "__reduce__", "__reduce_ex__", "__copy__", "__deepcopy__", "__dir__",
    "__next__", "__lt__", "__sizeof__", "__enter__", "__exit__",
)  # fmt: skip


class Odd(Exception):  # noqa: N818
    """What the methods of an odd value raise."""


class Worse(BaseException):
    """What the methods of a worse one raise."""


def odd(method: str, base: type = object, error: type[BaseException] = Odd) -> Any:
    """A value one of whose methods raises."""

    def raises(*_: Any, **__: Any) -> Any:
        if base not in (list, dict, tuple, set, Exception):
            touched.append(f"{base.__name__}.{method}")
        raise error(f"secret of {method}")

    return type(f"Odd{base.__name__}", (base,), {method: raises})()


def attribute(name: str) -> Any:
    """A value one of whose attributes raises when it is read."""

    def raises(_: Any) -> Any:
        touched.append(f"attribute {name}")
        raise Odd(f"secret of {name}")

    return type("OddAttribute", (), {name: property(raises)})()


class Lazy:
    """Every attribute that it does not have costs something."""

    def __getattr__(self, name: str) -> Any:
        touched.append(f"Lazy.{name}")
        raise Odd(name)


class Once(Iterator[int]):
    """Can be read once only."""

    def __init__(self) -> None:
        self.left = 3

    def __next__(self) -> int:
        touched.append("Once.__next__")
        if not self.left:
            raise StopIteration
        self.left -= 1
        return self.left


class Table(Mapping[str, int]):
    """A mapping that raises wherever one looks."""

    def __getitem__(self, key: str) -> int:
        raise Odd(key)

    def __iter__(self) -> Iterator[str]:
        raise Odd("iter")

    def __len__(self) -> int:
        raise Odd("len")


class Row(Sequence[int]):
    """A sequence that raises wherever one looks."""

    def __getitem__(self, index: Any) -> Any:
        raise Odd(str(index))

    def __len__(self) -> int:
        raise Odd("len")


class OddText(str):  # noqa: SLOT000
    """A text that raises wherever one looks."""

    def __str__(self) -> str:
        raise Odd("str")

    __repr__ = __len__ = __iter__ = __eq__ = __bool__ = __str__  # type: ignore[assignment]
    __hash__ = str.__hash__


class OddError(Exception):
    """An exception that cannot be printed, nor asked for its arguments."""

    def __str__(self) -> str:
        raise Odd("str of an exception")

    __repr__ = __str__

    @property
    def args(self) -> Any:  # type: ignore[override]
        """Its arguments."""
        raise Odd("args of an exception")


def cyclic() -> list[Any]:
    """Lists and dicts that hold themselves."""
    inside: dict[Any, Any] = {}
    around: list[Any] = [inside]
    inside["around"] = around
    inside["self"] = inside
    return around


def deep() -> list[Any]:
    """A list so deep that no recursion comes through it."""
    around: list[Any] = []
    for _ in range(100_000):
        around = [around]
    return around


def values() -> dict[str, Any]:
    """All of them, by a name to print."""
    found: dict[str, Any] = {}
    for method in METHODS:
        found[f"object {method}"] = odd(method)
        found[f"worse {method}"] = odd(method, error=Worse)
    for base in (str, int, float, list, dict, tuple, set, bytes, Exception):
        for method in ("__eq__", "__repr__", "__str__", "__iter__", "__hash__", "__len__"):
            found[f"{base.__name__} {method}"] = odd(method, base)
    for name in ("__class__", "__dict__", "__module__", "__dataclass_fields__", "model_fields"):
        found[f"attribute {name}"] = attribute(name)
    found |= {
        "lazy": Lazy(),
        "once": Once(),
        "table": Table(),
        "row": Row(),
        "text": OddText("text"),
        "error": OddError(),
        "generator": (n for n in range(3)),
        "cyclic": cyclic(),
        "surrogate": "\ud800",
        "control": "\x00\x1b[31m",
        "huge": 10**5000,
        "nan": float("nan"),
        "none": None,
        "type": Odd,
    }
    return found
