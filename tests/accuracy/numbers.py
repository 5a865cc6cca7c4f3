"""The numbers that verdicts hang on, and how to move one.

These are the fields of the detectors, and the numbers that are written in the source of the core:
its constants, and what stands unnamed in a function, other than 0, 1 and 2. A number moves by a
fifth either way, a whole one by at least 1.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass, fields, replace
from importlib.machinery import SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

from otel_loopguard.core.detectors import BUILTIN
from tests.accuracy.suites import defaults

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.machinery import ModuleSpec

    from otel_loopguard.core.model import Pattern
    from otel_loopguard.settings import Settings

PACKAGE = "otel_loopguard"
CORE = Path(__file__).resolve().parents[2] / PACKAGE / "core"
PART = 5
"""A number moves by one part in so many."""

Number = int | float


@dataclass(frozen=True)
class Field:
    """A threshold of a detector, moved."""

    pattern: Pattern
    name: str
    before: Number
    after: Number

    def __str__(self) -> str:
        return f"{self.pattern.value}.{self.name} {self.before} -> {self.after}"

    def apply(self) -> Settings:
        """Load the package anew; returns the settings to judge with."""
        settings = _load_anew()
        detector = replace(settings.thresholds[self.pattern], **{self.name: self.after})
        return replace(settings, thresholds={**settings.thresholds, self.pattern: detector})


@dataclass(frozen=True)
class Literal:
    """A number in the source, moved.

    Attributes:
        module: the module's full name.
        name: what it is assigned to, or the function that it stands in.
        line, column: where it stands.
    """

    module: str
    name: str
    line: int
    column: int
    before: Number
    after: Number

    def __str__(self) -> str:
        where = f"{self.module.removeprefix(f'{PACKAGE}.core.')}:{self.line} {self.name}"
        return f"{where} {self.before} -> {self.after}"

    def apply(self) -> Settings:
        """Load the package anew with the number moved; returns the settings to judge with."""
        return _load_anew(_Finder(self))


Move = Field | Literal


class _Finder:
    """Finds the one module whose source has to be changed."""

    def __init__(self, literal: Literal) -> None:
        self._literal = literal

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        if name != self._literal.module:
            return None
        file = _file_of(name)
        return spec_from_file_location(name, file, loader=_Loader(name, str(file), self._literal))


class _Loader(SourceFileLoader):
    """Loads a module with one number moved."""

    def __init__(self, name: str, file: str, literal: Literal) -> None:
        super().__init__(name, file)
        self._literal = literal

    def get_code(self, fullname: str) -> object:  # type: ignore[override]
        tree = ast.parse(Path(self.path).read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and _is_at(node, self._literal):
                node.value = self._literal.after
        return compile(tree, self.path, "exec")


def _load_anew(finder: _Finder | None = None) -> Settings:
    """Load the package once more, in this process and for good, with no other number moved."""
    sys.meta_path[:] = [each for each in sys.meta_path if not isinstance(each, _Finder)]
    if finder is not None:
        sys.meta_path.insert(0, finder)
    for name in [each for each in sys.modules if each.split(".")[0] == PACKAGE]:
        del sys.modules[name]
    return defaults()


def moves() -> Iterator[Move]:
    """Each number, moved down and up."""
    for pattern, detector in BUILTIN.items():
        for each in fields(detector):
            before = getattr(detector(), each.name)
            yield from (Field(pattern, each.name, before, after) for after in _moved(before))
    for file in sorted(CORE.rglob("*.py")):
        module = ".".join((PACKAGE, *file.relative_to(CORE.parent).with_suffix("").parts))
        for name, node in _numbers(ast.parse(file.read_text("utf-8")), ""):
            for after in _moved(node.value):
                yield Literal(module, name, node.lineno, node.col_offset, node.value, after)


def _moved(number: Number) -> Iterator[Number]:
    """What a number is moved to. Nought stands for "never" or "nothing" and stays."""
    if isinstance(number, float):
        yield from (round(number * (PART + way) / PART, 6) for way in (-1, 1))
    elif number > 0:
        by = max(1, number // PART)
        yield from (after for after in (number - by, number + by) if after > 0)


def _numbers(node: ast.AST, name: str) -> Iterator[tuple[str, ast.Constant]]:
    """The numbers below a node, each with what it is called."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        if name.isupper() or node.value not in (0, 1, 2):
            yield name, node
    elif isinstance(node, ast.ClassDef) and any("Enum" in ast.unparse(b) for b in node.bases):
        return
    elif isinstance(node, ast.Call) and ast.unparse(node.func) == "field":
        return  # a detector's: it moves as a setting
    else:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign) and not name.islower():
            name = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
        for child in ast.iter_child_nodes(node):
            yield from _numbers(child, name)


def _is_at(node: ast.Constant, literal: Literal) -> bool:
    return (node.lineno, node.col_offset) == (literal.line, literal.column)


def _file_of(module: str) -> Path:
    base = CORE.parent.joinpath(*module.split(".")[1:])
    return base.with_suffix(".py") if base.with_suffix(".py").exists() else base / "__init__.py"
