"""Decorators and a context manager, for everything that no framework hook sees."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from otel_loopguard.core.traits import Traits
from otel_loopguard.instrumentation import drive, wiring
from otel_loopguard.instrumentation.agents import AgentScope, open_agent
from otel_loopguard.instrumentation.held import Held
from otel_loopguard.instrumentation.tools import open_tool
from otel_loopguard.runtime import boundary
from otel_loopguard.sdk.scope import attach, detach

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from otel_loopguard.breaking.brief import Brief, Summarise
    from otel_loopguard.breaking.reminders import ConstraintReminder, ObjectiveAnchor

_F = TypeVar("_F", bound=Callable[..., Any])
_Open = Callable[[wiring.Wiring, str, dict[str, Any]], drive.Scope | Held | None]
_Begin = Callable[[tuple[Any, ...], dict[str, Any]], drive.Scope | Held | None]


@overload
def tool(
    function: _F,
    /,
    *,
    name: str | None = None,
    on_loop: Callable[[str], object] = str,
    poll: bool = False,
    idempotent: bool = False,
    irreversible: bool = False,
    max_repeats: int | None = None,
) -> _F: ...
@overload
def tool(
    *,
    name: str | None = None,
    on_loop: Callable[[str], object] = str,
    poll: bool = False,
    idempotent: bool = False,
    irreversible: bool = False,
    max_repeats: int | None = None,
) -> Callable[[_F], _F]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    on_loop: Callable[[str], object] = str,
    poll: bool = False,
    idempotent: bool = False,
    irreversible: bool = False,
    max_repeats: int | None = None,
) -> Any:
    """Show each call of a function as a tool call: an `execute_tool` span, watched for loops.

    The function may be plain, async, a generator or an async generator; what it returns, yields and
    raises stays the same. Its arguments are compared by name, defaults included. Where the setting
    `action` says so, a call that goes on with a loop is not made: it gives a note to the model (a
    generator yields it), or raises `DeadlockError`.

    Args:
        function: the function, where the decorator is used without parentheses.
        name: the tool's name; the function's own by default. Use the name that the model is given.
        on_loop: makes what a call gives that is not made, out of the note; by default the note
            itself. If it raises, the call is made.
        poll: it asks how far something is: equal results are waiting, and no loop for long.
        idempotent: it only reads: an equal call may be held back on weaker evidence.
        irreversible: it cannot be undone: where its run is in trouble a human is asked first, if
            the setting `escalate` or the guarded run names one.
        max_repeats: how often it may be called with equal arguments in one run until the user
            speaks; beyond that it is a loop, whatever it gives.

    Raises:
        ValueError: it cannot be all that, or `max_repeats` is below 1.
    """
    traits = Traits(poll, idempotent, irreversible, max_repeats).check()
    options: dict[str, Any] = {} if on_loop is str else {"instead": on_loop}
    if traits != Traits():
        options["traits"] = traits
    open_ = partial(open_tool, **options) if options else open_tool

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        return _scoped(function, open_, name or _name_of(function))

    return decorate if function is None else decorate(function)


@overload
def agent(function: _F, /) -> _F: ...
@overload
def agent(*, name: str | None = None) -> Callable[[_F], _F]: ...
def agent(function: Callable[..., Any] | None = None, /, *, name: str | None = None) -> Any:
    """Show each call of a function as one agent run: an `invoke_agent` span, and a run of its own.

    Inside another run it is a sub-agent: it has its own run, and is one step of the outer one.

    Args:
        function: the function, where the decorator is used without parentheses.
        name: the agent's name; the function's own by default.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        return _scoped(function, _open_agent, name or _name_of(function))

    return decorate if function is None else decorate(function)


class run:  # noqa: N801 - used like a function
    """A block that is one agent run: `with run("name"):`, or `async with`.

    All tool and model calls inside belong to it and hang below its `invoke_agent` span. What is
    said of it beside its name is for the notes that its model gets while it is in a loop, where the
    setting `action` asks for that; it is not exported.

    Args:
        name: the agent's name.
        objective: what it is for; without it the user's first message is taken for that.
        constraints: what it has to keep to: said again each fifth iteration, and when they drift.
        summarise: makes a text of the messages that are left out of a request that got too long,
            in the form that the model SDK is given them; without it they are counted, and 200
            tokens say how the newest of them begin.

    Raises:
        ValueError: the constraints are one text.
    """

    def __init__(
        self,
        name: str,
        *,
        objective: str | ObjectiveAnchor | None = None,
        constraints: Sequence[str] | ConstraintReminder = (),
        summarise: Summarise | None = None,
    ) -> None:
        self._name = name
        self._brief: Brief | None = None
        if objective or constraints or summarise:
            from otel_loopguard.breaking.brief import brief  # noqa: PLC0415 - seldom needed

            self._brief = brief(objective, constraints, summarise)
        self._scope: AgentScope | None = None
        self._tokens: Any = None

    def __enter__(self) -> run:
        wired = wiring.current()
        if wired is not None:
            self._scope = open_agent(wired.pipeline, self._name, brief=self._brief)
        if self._scope is not None:
            self._tokens = attach(self._scope.context)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._scope is None:
            return
        detach(self._tokens)
        if error is None:
            self._scope.finish(reason="closed")
        else:
            self._scope.fail(error)

    async def __aenter__(self) -> run:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)


def _name_of(function: object) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _open_agent(wired: wiring.Wiring, name: str, args: dict[str, Any]) -> AgentScope | None:
    return open_agent(wired.pipeline, name, args)


def _scoped(function: Any, open_: _Open, name: str) -> Any:
    """A function whose every call runs in a scope of its own, with a name."""
    if issubclass(type(function), staticmethod | classmethod):
        return type(function)(_scoped(function.__func__, open_, name))
    named = _Arguments(function).named

    # As `guarded` does, without the time that it takes to pass on arguments of any kind.
    def begin(args: tuple[Any, ...], kwargs: dict[str, Any]) -> drive.Scope | Held | None:
        try:
            wired = wiring.ready or wiring.current()
            return None if wired is None else open_(wired, name, named(args, kwargs))
        except Exception as fault:  # noqa: BLE001 - this is the boundary
            boundary.caught("start of a decorated call", fault)
            return None

    if inspect.iscoroutinefunction(function):
        wrapper = _coroutine(function, begin)
    elif inspect.isasyncgenfunction(function):
        wrapper = drive.async_generator(begin, function)
    elif inspect.isgeneratorfunction(function):
        wrapper = _generator(function, begin)
    else:
        wrapper = _plain(function, begin)
    return functools.wraps(function)(wrapper)


def _plain(function: Callable[..., Any], begin: _Begin) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        scope = begin(args, kwargs)
        if scope is None:
            return function(*args, **kwargs)
        return drive.call(scope, function, args, kwargs)

    return wrapper


def _coroutine(function: Callable[..., Any], begin: _Begin) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        scope = begin(args, kwargs)
        if scope is None:
            return await function(*args, **kwargs)
        return await drive.await_(scope, partial(function, *args, **kwargs))

    return wrapper


def _generator(function: Callable[..., Any], begin: _Begin) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        iterator = function(*args, **kwargs)
        return (yield from drive.iterate(partial(begin, args, kwargs), iterator))

    return wrapper


class _Arguments:
    """Names the arguments of a call, without the cost of binding a signature each time.

    An argument that has no name of its own, or one that a keyword may have too, goes by its number.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        self._skip = 1 if parameters and parameters[0].name in ("self", "cls") else 0
        open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
        self._names: list[str] = []
        for number, p in enumerate(parameters[self._skip :]):
            if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD:
                self._names.append(p.name)
            elif p.kind is inspect.Parameter.POSITIONAL_ONLY:
                self._names.append(str(number) if open_ended else p.name)
        self._defaults = {
            p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty
        }

    def named(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Returns the arguments of a call by their names."""
        given, names = args[self._skip :] if self._skip else args, self._names
        # The latter takes long, and `strict` as long again.
        named = {names[0]: given[0]} if len(given) == 1 and names else dict(zip(names, given))  # noqa: B905
        if self._defaults:
            named = {**self._defaults, **named}
        if kwargs:
            named.update(kwargs)
        if len(given) > len(names):
            named["*"] = given[len(names) :]
        return named
