"""One run of a graph: whose it is, what it is asked and answers, and how it goes on later."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from otel_loopguard.core.decision import DeadlockError
from otel_loopguard.core.model import MISSING
from otel_loopguard.instrumentation.agents import (
    INTERRUPTED,
    AgentScope,
    Resumable,
    open_agent,
)
from otel_loopguard.instrumentation.langchain_callbacks import shown_by_another
from otel_loopguard.instrumentation.langchain_tools import is_pause, is_signal
from otel_loopguard.instrumentation.langchain_values import answer_in, is_command, task_in
from otel_loopguard.instrumentation.tools import ToolCall
from otel_loopguard.runtime import guarded
from otel_loopguard.sdk.scope import action_of

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from otel_loopguard.instrumentation.wiring import Wiring

UNNAMED: Final = "LangGraph"
"""What langgraph calls a graph that was given no name."""
PAUSED: Final = object()

_resumable: Final = Resumable()


class GraphRun:
    """One run of a graph as its scope."""

    __slots__ = ("_key", "_scope")

    def __init__(self, scope: AgentScope, key: Hashable | None) -> None:
        self._scope = scope
        self._key = key

    @property
    def context(self) -> Context:
        """The context that the graph's steps run in."""
        return self._scope.context

    @guarded("end of a graph")
    def finish(self, result: object = MISSING) -> None:
        """The graph has come to its end, or to an interrupt."""
        if result is PAUSED:
            self._end(reason=INTERRUPTED)
        else:
            self._end(result)

    @guarded("failure of a graph")
    def fail(self, error: BaseException) -> None:
        """The graph raised, or its stream was let go. What steers the graph above is no failure."""
        if is_pause(error):
            self._end(reason=INTERRUPTED)
        elif is_signal(error) and not isinstance(error, DeadlockError):
            self._end(reason="answer")
        else:
            self._keep()
            self._scope.fail(error)

    def _end(self, result: object = MISSING, *, reason: str = "answer") -> None:
        self._keep()
        self._scope.finish(result, reason=reason, keep=self._key is not None)

    def _keep(self) -> None:
        if self._key is not None:
            _resumable.put(self._key, self._scope.run)


class Answer:
    """Reads what a graph gives back out of its stream, whatever its mode."""

    def __init__(self) -> None:
        self._paused = False
        self._last: object = MISSING

    def add(self, item: Any) -> None:
        """The next item: a state or an update, alone or behind its namespace and mode."""
        payload: Any = item
        if isinstance(item, tuple) and item:
            payload = cast("tuple[Any, ...]", item)[-1]
        if isinstance(payload, Mapping) and "data" in payload and "type" in payload:
            part = cast("Mapping[str, Any]", payload)
            self._paused = self._paused or bool(part.get("interrupts"))
            payload = part["data"]
        if isinstance(payload, Mapping) and "__interrupt__" in payload:
            self._paused = True
        elif not isinstance(payload, tuple):
            self._last = cast("object", payload)

    @property
    def result(self) -> object:
        """The answer, or `PAUSED`."""
        if self._paused:
            return PAUSED
        return MISSING if self._last is MISSING else answer_in(self._last)


def begin_run(
    wired: Wiring, graph: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> GraphRun | None:
    """Begin the run of a graph, or go on with the one that it resumes."""
    given = args[0] if args else kwargs.get("input")
    config = _config(graph, args[1] if len(args) > 1 else kwargs.get("config"))
    name = _name(wired, graph, config)
    settings: Mapping[str, Any] = config.get("configurable") or {}
    key = None
    if settings.get("thread_id") is not None:
        key = (settings["thread_id"], settings.get("checkpoint_ns"), name)
    resumes = given is None or (is_command(given) and given.resume is not None)
    resumes = resumes or bool(settings.get("__pregel_resuming"))
    earlier = _resumable.take(key) if key is not None and resumes else None
    later = shown_by_another()
    scope = open_agent(wired.pipeline, name, task_in(given), later=later, earlier=earlier)
    return None if scope is None else GraphRun(scope, key)


def _config(graph: Any, config: Any) -> Mapping[str, Any]:
    """The configuration of a run: the graph's, the caller's and the one it inherits."""
    from langchain_core.runnables.config import (  # noqa: PLC0415 - only where it is used
        ensure_config,
        merge_configs,
    )

    return ensure_config(merge_configs(graph.config, config))


def _name(wired: Wiring, graph: Any, config: Mapping[str, Any]) -> str:
    """The graph's name; a nameless one is called after the node that it is, or by the setting."""
    if graph.name != UNNAMED:
        return graph.name
    metadata: Mapping[str, Any] = config.get("metadata") or {}
    node = None if isinstance(action_of(), ToolCall) else metadata.get("langgraph_node")
    return node or wired.pipeline.settings.agent_name or UNNAMED
