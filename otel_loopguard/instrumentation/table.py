"""The engine: a framework is a table of rows, and a row says what is wrapped by what.

Nothing is imported that the application does not import, not even our own table: a table waits
for its framework, and each row for its module. A row that does not fit the installed version is
skipped and logged. Undoing restores every attribute to the
object that was there, unless somebody else wrapped ours: then ours stays, without effect.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import wrapt

from otel_loopguard.runtime import boundary, guarded

if TYPE_CHECKING:
    from types import ModuleType

    from otel_loopguard.instrumentation.wiring import Wiring

logger = logging.getLogger("otel_loopguard")

Wrapper = Callable[[Callable[..., Any], Any, tuple[Any, ...], Mapping[str, Any]], Any]
"""What wrapt calls: the wrapped callable, its instance, its arguments."""
Factory = Callable[["Wiring"], Wrapper]


class Row(NamedTuple):
    """One attribute to wrap.

    Attributes:
        module: the module whose import it waits for.
        target: the attribute's path in that module, as `Class.method`.
        wrapper: makes the wrapper, given the wiring.
    """

    module: str
    target: str
    wrapper: Factory


class _Applied(NamedTuple):
    """One attribute that is wrapped, and by what."""

    parent: Any
    name: str
    handle: Any
    inherited: bool

    def undo(self) -> bool:
        """Put back what was there; False if somebody else has wrapped or replaced ours."""
        if self.parent.__dict__.get(self.name) is not self.handle:
            return False
        if self.inherited:
            delattr(self.parent, self.name)
        else:
            setattr(self.parent, self.name, self.handle.__wrapped__)
        return True


class Tables:
    """The tables of all frameworks, each loaded when the application imports its framework.

    Args:
        packages: for each module that has a table (`ROWS`), the packages that it waits for.
    """

    def __init__(self, packages: Mapping[str, tuple[str, ...]]) -> None:
        self._packages = packages
        self._loaded: dict[str, Patches] = {}
        self._wiring: Wiring | None = None
        self._waits = False

    def apply(self, wiring: Wiring) -> None:
        """Wrap what is imported already, and the rest when it is imported."""
        self._wiring = wiring
        for table, packages in self._packages.items():
            load = partial(self._load, table)
            for package in packages:
                if not self._waits:
                    wrapt.register_post_import_hook(load, package)
                elif package in sys.modules:  # its hook has had its turn
                    load(sys.modules[package])
        self._waits = True

    def count(self, table: str) -> int:
        """How many attributes a table has wrapped by now."""
        return self._loaded[table].count if table in self._loaded else 0

    def undo(self) -> None:
        """Take every wrapper off again."""
        self._wiring = None
        for patches in self._loaded.values():
            patches.undo()

    @guarded("table of a framework")
    def _load(self, table: str, _: ModuleType) -> None:
        if self._wiring is None:
            return
        if table not in self._loaded:
            self._loaded[table] = Patches(import_module(table).ROWS)
        self._loaded[table].apply(self._wiring)


class Patches:
    """The rows that are applied, and how to undo them."""

    def __init__(self, rows: tuple[Row, ...]) -> None:
        self._rows = rows
        self._applied: list[_Applied] = []
        self._wiring: Wiring | None = None
        self._registered = False
        self._undone = 0

    @property
    def count(self) -> int:
        """How many attributes are wrapped."""
        return len(self._applied)

    def apply(self, wiring: Wiring) -> None:
        """Wrap what is imported already, and the rest when it is imported."""
        self._wiring = wiring
        modules = dict.fromkeys(row.module for row in self._rows)
        if self._registered:  # the import hooks are still there: only what is imported by now
            for module in modules:
                if module in sys.modules:
                    self._on_import(sys.modules[module])
            return
        self._registered = True
        for module in modules:
            wrapt.register_post_import_hook(self._on_import, module)

    def undo(self) -> None:
        """Take every wrapper off again."""
        self._wiring = None
        self._undone += 1
        while self._applied:
            applied = self._applied.pop()
            if not applied.undo():
                logger.debug("otel_loopguard: %s stays wrapped, inert", applied.name)

    def _on_import(self, module: ModuleType) -> None:
        """Apply a module's rows. An exception here would break the application's import."""
        wiring = self._wiring
        if wiring is None:
            return
        for row in self._rows:
            if row.module == module.__name__:
                try:
                    self._wrap(module, row, wiring)
                except Exception as fault:  # noqa: BLE001 - this is the boundary
                    boundary.caught(f"patching {row.module}:{row.target}", fault)

    def _wrap(self, module: ModuleType, row: Row, wiring: Wiring) -> None:
        try:
            parent, name, found = wrapt.resolve_path(module, row.target)
        except AttributeError:
            logger.debug("otel_loopguard: %s has no %s; skipped", row.module, row.target)
            return
        if any(found is applied.handle for applied in self._applied):
            return  # a module that only passes on what another row has wrapped
        inherited = name not in parent.__dict__
        undone = self._undone
        handle = wrapt.wrap_object(
            module,
            row.target,
            wrapt.FunctionWrapper,
            (row.wrapper(wiring),),
            {"enabled": lambda: self._undone == undone},
        )
        self._applied.append(_Applied(parent, name, handle, inherited))
