"""What is left of us when the instrumentation is taken off."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import wrapt

from tests.frameworks.support import Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType


def assert_restored(module: ModuleType, targets: Iterable[str]) -> None:
    """The very objects that were there are there again, and were of the same kind meanwhile."""
    before = [attribute(module, target) for target in targets]
    telemetry = Telemetry()
    telemetry.instrument()
    during = [attribute(module, target) for target in targets]
    assert not any(one is other for one, other in zip(before, during, strict=True))
    kinds = [[inspect.iscoroutinefunction(each) for each in some] for some in (before, during)]
    assert kinds[0] == kinds[1]
    telemetry.uninstrument()
    after = [attribute(module, target) for target in targets]
    assert all(one is other for one, other in zip(before, after, strict=True))


def assert_inert_below_another(module: ModuleType, target: str, ask: Callable[[], None]) -> None:
    """Where somebody wrapped ours later, ours stays and does nothing."""
    before = attribute(module, target)
    seen: list[str] = []

    def theirs(wrapped: Any, _: Any, args: Any, kwargs: Any) -> Any:
        seen.append("call")
        return wrapped(*args, **kwargs)

    telemetry = Telemetry()
    telemetry.instrument()
    wrapt.wrap_function_wrapper(module, target, theirs)
    ask()
    telemetry.uninstrument()
    spans = len(telemetry.spans)
    assert spans == 2
    ask()
    assert len(telemetry.spans) == spans
    assert seen == ["call", "call"]
    owner, _, name = target.partition(".")
    setattr(getattr(module, owner), name, before)


def attribute(module: ModuleType, target: str) -> Any:
    """What stands in the class, not what it makes of it."""
    owner, _, name = target.partition(".")
    return vars(getattr(module, owner))[name]
