"""Which run a piece of code belongs to: carried in the OpenTelemetry context, found by span else.

A run is decided once, at the outermost scope, and inherited by all below. Our own hooks put it into
the context; where a foreign instrumentation starts its spans from a context of its own making, the
run is found through the parent span instead.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Final, Protocol, cast

from opentelemetry import context as otel_context
from opentelemetry import trace

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from otel_loopguard.dialects import Role

MAX_LIVE_SPANS: Final = 10_000

_RUN: Final = otel_context.create_key("loopguard-run")
_ACTION: Final = otel_context.create_key("loopguard-action")


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One agent run.

    Attributes:
        id: what `loopguard.run_id` says.
        agent: the agent's name, if known.
        scoped: whether an agent scope opened it, rather than some local root span.
        foreign: whether a span of someone else opened it.
        span: the agent's span if there is one; it stays open while the run goes on.
        parent: the run that this one is a sub-agent of.
    """

    id: str
    agent: str | None = None
    scoped: bool = True
    foreign: bool = False
    span: trace.Span = field(default=trace.INVALID_SPAN)
    parent: Run | None = None


class Action(Protocol):
    """A tool or model call of ours that is under way, as the processor sees it."""

    def adopt(self, span: trace.Span, role: Role, name: str | None) -> bool:
        """A foreign span starts inside the call: take it if it shows this very call."""
        ...


def reference(span: trace.Span) -> str | None:
    """How a step names its span: `<trace id>-<span id>` in hex; None if it is not valid."""
    where = span.get_span_context()
    if not where.is_valid:
        return None
    return f"{trace.format_trace_id(where.trace_id)}-{trace.format_span_id(where.span_id)}"


def run_of(context: Context | None = None) -> Run | None:
    """The run that a context carries."""
    run = otel_context.get_value(_RUN, context)
    return run if isinstance(run, Run) else None


def enter_run(run: Run, context: Context | None = None) -> Context:
    """A context inside a run; no call is under way in it yet."""
    return otel_context.set_value(_ACTION, None, otel_context.set_value(_RUN, run, context))


def action_of(context: Context | None = None) -> Action | None:
    """The call of ours that is under way in a context."""
    return cast("Action | None", otel_context.get_value(_ACTION, context))


def enter_action(action: Action, context: Context | None = None) -> Context:
    """A context inside a call."""
    return otel_context.set_value(_ACTION, action, context)


class LiveSpans:
    """The run of each span that is open, by span id. Bounded: the oldest are forgotten, counted."""

    def __init__(self, limit: int = MAX_LIVE_SPANS) -> None:
        self._runs: OrderedDict[int, Run] = OrderedDict()
        self._limit = limit
        self._lock = Lock()
        self.forgotten = 0

    def add(self, span_id: int, run: Run) -> None:
        """A span of a run starts."""
        with self._lock:
            self._runs[span_id] = run
            if len(self._runs) > self._limit:
                self._runs.popitem(last=False)
                self.forgotten += 1

    def get(self, span_id: int) -> Run | None:
        """The run of an open span."""
        return self._runs.get(span_id)

    def pop(self, span_id: int) -> Run | None:
        """A span ends."""
        with self._lock:
            return self._runs.pop(span_id, None)

    def after_fork(self) -> None:
        """In a forked child: the lock may have been held by a thread that is gone."""
        self._lock = Lock()


live_spans: Final = LiveSpans()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=live_spans.after_fork)


def current_run(context: Context | None = None) -> Run | None:
    """The run of the code that runs now, None outside of every run and every span."""
    run = run_of(context)
    if run is not None:
        return run
    span = trace.get_current_span(context).get_span_context()
    if not span.is_valid:
        return None
    return live_spans.get(span.span_id) or Run(trace.format_trace_id(span.trace_id), scoped=False)
