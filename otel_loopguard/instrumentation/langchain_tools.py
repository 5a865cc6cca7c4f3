"""A LangChain tool call: its arguments without what the framework injects, and its result."""

from __future__ import annotations

import sys
from contextvars import ContextVar
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, cast

from otel_loopguard.core.decision import DeadlockError
from otel_loopguard.core.model import MISSING, Outcome
from otel_loopguard.instrumentation.langchain_callbacks import shown_by_another
from otel_loopguard.instrumentation.langchain_values import (
    content_of,
    is_command,
    is_message,
    messages_in,
)
from otel_loopguard.instrumentation.tools import ToolCall, open_tool, shown
from otel_loopguard.runtime import guarded
from otel_loopguard.sdk.scope import action_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.context import Context

    from otel_loopguard.instrumentation.drive import Scope
    from otel_loopguard.instrumentation.held import Held
    from otel_loopguard.instrumentation.table import Wrapper
    from otel_loopguard.instrumentation.wiring import Wiring

_NEVER_ASKED: Final = frozenset({"run_manager", "callbacks"})
_INJECTED: Final = frozenset({"InjectedToolArg", "_DirectlyInjectedToolArg"})
TOOL_ERROR: Final = "tool_error"
"""The failure of a tool whose exception its own settings turned into a message."""


def model_arguments(tool: Any, given: object) -> object:
    """The arguments as the model wrote them: without injected state, store or runtime."""
    if not isinstance(given, dict):
        return given
    schema = getattr(tool, "args_schema", None)
    injected = _injected(schema) if isinstance(schema, type) else _NEVER_ASKED
    injected |= getattr(tool, "_injected_args_keys", _NEVER_ASKED)
    arguments = cast("dict[str, object]", given)
    return {name: value for name, value in arguments.items() if name not in injected}


@lru_cache(maxsize=1_024)
def _injected(schema: type) -> frozenset[str]:
    """The fields of a tool's schema that no model fills; finding them anew each time is dear."""
    fields: dict[str, Any] = getattr(schema, "model_fields", {})
    return _NEVER_ASKED | {
        name
        for name, field in fields.items()
        if any(map(_marks_injected, (field.annotation, *field.metadata)))
    }


def _marks_injected(mark: object) -> bool:
    kind = mark if isinstance(mark, type) else type(mark)
    return any(base.__name__ in _INJECTED for base in kind.__mro__)


def is_pause(error: BaseException) -> bool:
    """Whether an exception says that a person is asked first: the call will come again."""
    return _is_a(error, "GraphInterrupt")


def is_signal(error: BaseException) -> bool:
    """Whether an exception steers the graph and is no failure."""
    return _is_a(error, "GraphBubbleUp") or is_pause(error)


def _is_a(error: BaseException, name: str) -> bool:
    return any(kind.__name__ == name for kind in type(error).__mro__)


class ToolRun:
    """A tool call as its scope in LangChain: reads what `BaseTool.run` gives back or raises."""

    __slots__ = ("_call",)

    def __init__(self, call: ToolCall) -> None:
        self._call = call

    @property
    def context(self) -> Context:
        """The context that the tool runs in."""
        return self._call.context

    @guarded("result of a tool")
    def finish(self, result: object = MISSING) -> None:
        """The tool gave something back."""
        failed = is_message(result) and getattr(result, "status", None) == "error"
        self._call.finish(tool_content(result), failure=TOOL_ERROR if failed else None)

    @guarded("failure of a tool")
    def fail(self, error: BaseException) -> None:
        """The tool raised; an interrupt is no failure."""
        if is_signal(error):
            self._call.finish(outcome=Outcome.PENDING if is_pause(error) else Outcome.UNKNOWN)
        else:
            self._call.fail(error)


def tool_content(result: object) -> object:
    """What a tool said: a message's content; of a command, what it writes into the state."""
    if is_message(result):
        return content_of(result)
    if is_command(result):
        command: Any = result
        return [command.goto, _without_ids(command.update)]
    return result


def _without_ids(update: object) -> object:
    if not isinstance(update, dict):
        return update
    written = dict(cast("dict[str, object]", update))
    if messages_in(written) is not None:
        written["messages"] = [content_of(message) for message in messages_in(written) or ()]
    return written


def begin_tool(
    wired: Wiring, tool: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Scope | Held | None:
    """Begin a call of a LangChain tool, unless it is held back."""
    given = model_arguments(tool, args[0] if args else kwargs.get("tool_input"))
    call_id = kwargs.get("tool_call_id")
    instead = partial(_message, tool.name, call_id)
    call = open_tool(
        wired, tool.name, given, call_id=call_id, later=shown_by_another(), instead=instead
    )
    return shown(call, ToolRun, _passing)


def _message(name: str, call_id: str | None, note: str) -> object:
    """A note to the model as the result of a call; the mere text where no model asked for it."""
    if not call_id:
        return note
    from langchain_core.messages import ToolMessage  # noqa: PLC0415 - only where it is used

    return ToolMessage(note, tool_call_id=call_id, name=name, status="error")


def _passing(held: Held) -> Held:
    """Have the exception that stops a run pass through a graph, whose tool node keeps others."""
    if held.error is not None and "langgraph.errors" in sys.modules:
        held.error = _signal()(*held.error.__reduce__()[1])
        stopped = _stopped.get()
        if stopped is not None:
            stopped.append(held.error)
    return held


@lru_cache(maxsize=1)
def _signal() -> type[DeadlockError]:
    signal: Any = getattr(sys.modules["langgraph.errors"], "GraphBubbleUp", None)
    if signal is None:  # an early version
        return DeadlockError
    return type("DeadlockError", (DeadlockError, signal), {"__module__": "otel_loopguard"})


_stopped: ContextVar[list[DeadlockError] | None] = ContextVar("loopguard-stopped", default=None)
"""Takes what stops a run inside of a tool node that keeps every exception."""


def stopping(_wired: Wiring) -> Wrapper:
    """Wraps a call of a tool node: early versions make a message of what stops the run."""

    def wrapper(wrapped: Any, _instance: Any, args: Any, kwargs: Any) -> Any:
        if _signal() is not DeadlockError:
            return wrapped(*args, **kwargs)
        stopped: list[DeadlockError] = []
        token = _stopped.set(stopped)
        try:
            result = wrapped(*args, **kwargs)
        finally:
            _stopped.reset(token)
        return _or_stop(result, stopped)

    return wrapper


def astopping(_wired: Wiring) -> Wrapper:
    """The same for an async call."""

    async def wrapper(wrapped: Any, _instance: Any, args: Any, kwargs: Any) -> Any:
        if _signal() is not DeadlockError:
            return await wrapped(*args, **kwargs)
        stopped: list[DeadlockError] = []
        token = _stopped.set(stopped)
        try:
            result = await wrapped(*args, **kwargs)
        finally:
            _stopped.reset(token)
        return _or_stop(result, stopped)

    return wrapper


def _or_stop(result: Any, stopped: list[DeadlockError]) -> Any:
    if stopped:
        raise stopped[0]
    return result


def formatting(_wired: Wiring) -> Wrapper:
    """Wraps the last thing that happens while another instrumentation's span is still open."""

    def wrapper(wrapped: Any, _instance: Any, args: Any, kwargs: Any) -> Any:
        output = wrapped(*args, **kwargs)
        call = action_of()
        if isinstance(call, ToolCall) and call.adopted:
            ToolRun(call).finish(output)
        return output

    return wrapper
