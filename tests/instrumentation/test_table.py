"""The engine that applies rows, on modules that are made up here."""

from __future__ import annotations

import logging
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
import wrapt

from otel_loopguard.instrumentation.table import Factory, Patches, Row
from otel_loopguard.runtime import boundary
from tests.signals import Signals

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from otel_loopguard.instrumentation.wiring import Wiring

SOURCE = """
class Base:
    def run(self, x):
        return x

class Agent(Base):
    @staticmethod
    def add(a, b):
        return a + b

    @classmethod
    def name(cls):
        return cls.__name__

def ask(x):
    return x
"""


@pytest.fixture
def wired() -> Iterator[Wiring]:
    with Signals().instrumented() as wired:
        yield wired


@pytest.fixture
def framework(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module that can be imported and is not imported yet."""
    name = f"framework_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield name
    sys.modules.pop(name, None)


def marks(what: str) -> Factory:
    """A wrapper that shows that it was there."""

    def factory(_wired: Wiring) -> Any:
        def wrapper(wrapped: Any, _instance: Any, args: Any, kwargs: Any) -> Any:
            return what, wrapped(*args, **kwargs)

        return wrapper

    return factory


def imported(name: str) -> Any:
    __import__(name)
    return sys.modules[name]


def test_a_module_is_waited_for(framework: str, wired: Wiring) -> None:
    patches = Patches((Row(framework, "ask", marks("seen")),))
    patches.apply(wired)
    assert framework not in sys.modules
    module = imported(framework)
    assert module.ask(1) == ("seen", 1)
    patches.undo()
    assert module.ask(1) == 1


def test_a_module_that_is_there_already(framework: str, wired: Wiring) -> None:
    module = imported(framework)
    before = dict(vars(module.Agent))
    rows = [Row(framework, f"Agent.{name}", marks(name)) for name in ("run", "add", "name")]
    patches = Patches(tuple(rows))
    patches.apply(wired)
    agent = module.Agent()
    assert (agent.run(1), agent.add(1, 2), module.Agent.name()) == (
        ("run", 1),
        ("add", 3),
        ("name", "Agent"),
    )
    assert module.Base().run(1) == 1
    patches.undo()
    assert dict(vars(module.Agent)) == before


def test_applied_twice_wraps_once_and_applied_again_wraps_again(
    framework: str, wired: Wiring
) -> None:
    patches = Patches((Row(framework, "ask", marks("seen")),))
    patches.apply(wired)
    module = imported(framework)
    patches.apply(wired)
    assert module.ask(1) == ("seen", 1)
    patches.undo()
    patches.apply(wired)
    assert module.ask(1) == ("seen", 1)
    patches.undo()
    assert module.ask(1) == 1


def test_a_module_that_is_imported_while_it_is_off(framework: str, wired: Wiring) -> None:
    patches = Patches((Row(framework, "ask", marks("seen")), Row("no_such_module", "x", marks(""))))
    patches.apply(wired)
    patches.undo()
    module = imported(framework)
    assert module.ask(1) == 1
    patches.apply(wired)
    assert module.ask(1) == ("seen", 1)
    patches.undo()


def test_a_row_that_does_not_fit_is_skipped(
    framework: str, wired: Wiring, caplog: pytest.LogCaptureFixture
) -> None:
    module = imported(framework)
    rows = (Row(framework, "Gone.method", marks("")), Row(framework, "ask", marks("seen")))
    patches = Patches(rows)
    with caplog.at_level(logging.DEBUG, "otel_loopguard"):
        patches.apply(wired)
    assert caplog.messages == [f"otel_loopguard: {framework} has no Gone.method; skipped"]
    assert module.ask(1) == ("seen", 1)
    patches.undo()


def test_a_row_that_raises_does_not_break_the_import(framework: str, wired: Wiring) -> None:
    def fail(_wired: Wiring) -> Any:
        raise RuntimeError

    boundary.reraise = False
    patches = Patches((Row(framework, "Agent.run", fail), Row(framework, "ask", marks("seen"))))
    patches.apply(wired)
    assert imported(framework).ask(1) == ("seen", 1)
    assert boundary.faults == {f"patching {framework}:Agent.run": 1}
    boundary.faults.clear()
    patches.undo()


def test_what_somebody_else_has_wrapped_stays_and_ours_has_no_effect(
    framework: str, wired: Wiring
) -> None:
    module = imported(framework)
    patches = Patches((Row(framework, "ask", marks("ours")),))
    patches.apply(wired)
    wrapt.wrap_function_wrapper(module, "ask", marks("theirs")(wired))
    assert module.ask(1) == ("theirs", ("ours", 1))
    patches.undo()
    assert module.ask(1) == ("theirs", 1)
    patches.apply(wired)
    assert module.ask(1) == ("ours", ("theirs", 1))
    patches.undo()
    assert module.ask(1) == ("theirs", 1)


def test_a_module_that_passes_on_what_another_one_has(
    framework: str, wired: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner, outer = imported(framework), ModuleType("passing")
    outer.Agent = inner.Agent  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "passing", outer)
    rows = [Row(name, "Agent.run", marks("seen")) for name in (framework, "passing")]
    patches = Patches(tuple(rows))
    patches.apply(wired)
    assert inner.Agent().run(1) == ("seen", 1)
    patches.undo()
    assert inner.Agent().run(1) == 1
