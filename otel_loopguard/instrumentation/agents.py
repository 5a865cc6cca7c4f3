"""An agent run under way: its scope, its span, and the one step that it is of its parent."""

from __future__ import annotations

import random
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import SpanKind

from otel_loopguard.core.decision import DeadlockError
from otel_loopguard.core.model import MISSING, Kind, Sighting
from otel_loopguard.core.model import Status as Health
from otel_loopguard.instrumentation.actions import error_type, say_failed
from otel_loopguard.instrumentation.tools import ToolCall
from otel_loopguard.runtime import guarded
from otel_loopguard.sdk import attributes as names
from otel_loopguard.sdk.scope import (
    Run,
    action_of,
    current_run,
    enter_run,
    live_spans,
    reference,
)

if TYPE_CHECKING:
    from collections.abc import Hashable

    from otel_loopguard.breaking.brief import Brief
    from otel_loopguard.sdk.pipeline import Pipeline


INTERRUPTED: Final = "interrupted"
"""The reason of a run that waits for somebody and is no step of its parent yet."""
MAX_RESUMABLE: Final = 1_000


def new_run_id() -> str:
    """16 hex digits, as unlikely to repeat as a span id."""
    return f"{random.getrandbits(64):016x}"


def start_run(
    pipeline: Pipeline,
    name: str | None,
    *,
    run_id: str | None = None,
    outer: Run | None = None,
    links: list[trace.Link] | None = None,
    brief: Brief | None = None,
) -> Run:
    """Open an `invoke_agent` span, and the run that it shows.

    Args:
        pipeline: where it is told.
        name: the agent's name.
        run_id: the run's id; a new one if None.
        outer: the run that it is a sub-agent of.
        links: what the span links to.
        brief: what the application says of it.
    """
    run_id = run_id or new_run_id()
    attributes: names.Attributes = {names.OPERATION: "invoke_agent", names.RUN_ID: run_id}
    if name is not None:
        attributes[names.AGENT_NAME] = name
    if outer is not None and pipeline.guard.is_stuck(outer.id):
        attributes[names.STATUS] = Health.DEADLOCKED.value
    title = f"invoke_agent {name}" if name else "invoke_agent"
    span = pipeline.tracer.start_span(
        title, kind=SpanKind.INTERNAL, attributes=attributes, links=links
    )
    run = Run(run_id, name, span=span, parent=outer, brief=brief)
    live_spans.add(span.get_span_context().span_id, run)
    return run


def end_run(pipeline: Pipeline, run: Run, reason: str, *, keep: bool) -> None:
    """End a run, and the `invoke_agent` span that shows it if there is one."""
    pipeline.end_run(run, reason, keep=keep)
    run.span.end()
    live_spans.pop(run.span.get_span_context().span_id, None)


class AgentScope:
    """One agent run, from its start to its end. Make it with `open_agent`."""

    __slots__ = ("_ended", "_input_key", "_start_ns", "_step_of", "context", "pipeline", "run")

    def __init__(
        self,
        pipeline: Pipeline,
        name: str | None,
        given: object,
        *,
        later: bool,
        earlier: Run | None,
        brief: Brief | None,
    ) -> None:
        self._ended = False
        self._start_ns = time.time_ns()
        self.pipeline = pipeline
        outer = current_run()
        parent = outer if outer is not None and outer.scoped else None
        # A sub-agent that runs inside a tool call is seen by its parent as that call.
        self._step_of = None if isinstance(action_of(), ToolCall) else parent
        self._input_key: str | None = None
        if parent is not None:
            self._input_key = pipeline.guard.fingerprinter.of_args(given)
        run_id = earlier.id if earlier is not None else new_run_id()
        if later:
            self.run = Run(run_id, name, parent=parent, brief=brief)
            inside = otel_context.get_current()
        else:
            links = [trace.Link(earlier.span.get_span_context())] if earlier is not None else None
            self.run = start_run(
                pipeline, name, run_id=run_id, outer=parent, links=links, brief=brief
            )
            inside = trace.set_span_in_context(self.run.span)
        self.context = enter_run(self.run, inside)
        if parent is not None and earlier is None:
            handed = self._handed_over(given, parent)
            pipeline.see(parent, handed, None, context=inside)

    @guarded("end of an agent run")
    def finish(
        self,
        result: object = MISSING,
        *,
        failure: str | None = None,
        reason: str = "answer",
        keep: bool = False,
    ) -> None:
        """The agent is done; only the first time counts.

        Args:
            result: what it gave back.
            failure: the class of the failure, if it failed.
            reason: what `loopguard.end_reason` says: answer, closed, interrupted, deadlock or exit;
                where it failed, error instead of answer.
            keep: whether the run may go on later, under another span.
        """
        if self._ended:
            return
        self._ended = True
        if failure is not None and reason == "answer":
            reason = "error"
        span = self.run.span
        span.set_attribute(names.END_REASON, reason)
        if failure is not None:
            say_failed(span, failure)
        try:
            if self._step_of is not None and reason != INTERRUPTED:
                seen = self._sighting(result, failure)
                self.pipeline.see(self._step_of, seen, span, context=self.context)
        finally:
            end_run(self.pipeline, self.run, reason, keep=keep)

    def fail(self, error: BaseException) -> None:
        """The agent raised; what is no Exception (a cancellation, an exit) is no failure of it."""
        if isinstance(error, DeadlockError):
            self.finish(failure=error_type(error), reason=error.reason)
        elif isinstance(error, Exception):
            self.finish(failure=error_type(error))
        else:
            self.finish(reason="closed")

    def _handed_over(self, given: object, parent: Run) -> Sighting:
        """The start, which is told at once: a task that goes round may never come back."""
        return Sighting(
            Kind.HANDOFF,
            self.run.agent or "agent",
            args=given,
            args_key=self._input_key,
            agent=parent.agent,
            start_ns=self._start_ns,
            end_ns=self._start_ns,
            span=reference(self.run.span),
        )

    def _sighting(self, result: object, failure: str | None) -> Sighting:
        return Sighting(
            Kind.AGENT,
            self.run.agent or "agent",
            args_key=self._input_key,
            result=result,
            error=failure,
            start_ns=self._start_ns,
            end_ns=time.time_ns(),
            span=reference(self.run.span),
        )


@guarded("start of an agent run")
def open_agent(
    pipeline: Pipeline,
    name: str | None,
    given: object = MISSING,
    *,
    later: bool = False,
    earlier: Run | None = None,
    brief: Brief | None = None,
) -> AgentScope | None:
    """Begin an agent run; None if another instrumentation has begun the same one.

    Args:
        pipeline: where it is told.
        name: the agent's name.
        given: its task, which makes two runs of a sub-agent the same call.
        later: another instrumentation is about to show this run on a span of its own.
        earlier: the run that goes on here, where it was interrupted.
        brief: what the application says of the run.
    """
    if later and action_of() is None:
        around = current_run()
        if around is not None and around.foreign and around.agent in (None, name):
            return None
    return AgentScope(pipeline, name, given, later=later, earlier=earlier, brief=brief)


class Resumable:
    """The runs that may go on later, by what their framework calls them. Bounded; oldest go."""

    def __init__(self, limit: int = MAX_RESUMABLE) -> None:
        self._runs: OrderedDict[Hashable, Run] = OrderedDict()
        self._limit = limit

    def put(self, key: Hashable, run: Run) -> None:
        """Remember a run that has stopped."""
        where = trace.NonRecordingSpan(run.span.get_span_context())
        self._runs.pop(key, None)
        self._runs[key] = Run(run.id, run.agent, span=where)
        if len(self._runs) > self._limit:
            self._runs.popitem(last=False)

    def take(self, key: Hashable) -> Run | None:
        """The run that goes on now, if it is remembered."""
        return self._runs.pop(key, None)
