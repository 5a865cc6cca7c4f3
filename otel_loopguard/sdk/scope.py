"""Which run a piece of code belongs to: carried in the OpenTelemetry context, found by span else.

A run is decided once, at the outermost scope, and inherited by all below. Our own hooks put it into
the context; where a foreign instrumentation starts its spans from a context of its own making, the
run is found through the parent span instead.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextvars import Token

    from otel_loopguard.breaking.brief import Brief
    from otel_loopguard.core.model import SpanRef
    from otel_loopguard.dialects import Role
    from otel_loopguard.dialects.calls import Call

    Tokens = tuple[Token[Context], Token["Run | Action | None"]]

MAX_LIVE_SPANS: Final = 10_000

PLACE: Final = otel_context.create_key("loopguard-place")
"""Holds the action that is under way, else the run; one key, since each costs a copy."""
(SPAN,) = trace.set_span_in_context(trace.INVALID_SPAN, Context())
"""Holds the current span, as `opentelemetry.trace` has it."""


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
        brief: what the application says of it beforehand.
    """

    id: str
    agent: str | None = None
    scoped: bool = True
    foreign: bool = False
    span: trace.Span = field(default=trace.INVALID_SPAN)
    parent: Run | None = None
    brief: Brief | None = None


class Action(Protocol):
    """A tool or model call of ours that is under way, as the processor sees it."""

    run: Run
    start_ns: int

    def adopt(self, span: trace.Span, role: Role | None, name: str | None) -> bool:
        """A foreign span starts inside the call: say whether it shows this very call.

        It is taken as the call's span, unless the call has one.

        Args:
            span: the span.
            role: what it shows; None if it does not say so yet.
            name: the tool's or model's name, if it says so; without a role the span's own name.
        """
        ...


entered: Final[ContextVar[Run | Action | None]] = ContextVar("loopguard-entered", default=None)
"""What our own hooks have entered last: it outlives the contexts that others attach."""


def reference(span: trace.Span) -> SpanRef | None:
    """How a step names its span; None if it is not valid."""
    where = span.get_span_context()
    trace_id, span_id = where[0], where[1]  # by name it takes several times as long
    return (trace_id, span_id) if trace_id and span_id else None


def run_of(context: Context | None = None) -> Run | None:
    """The run that a context carries, if it is in any; without one, that of the code that runs."""
    place = _place(context)
    if place is None:
        return None
    run = place if isinstance(place, Run) else place.run
    return run if run.id else None


def here() -> tuple[Context, Run | None, Action | None]:
    """Where the code that runs now is: its context, its run, the call under way, if any."""
    context = otel_context.get_current()
    place: Any = context.get(PLACE)
    if place is not entered.get():
        place = _innermost(place)
    if type(place) is Run:  # as most often
        return context, place if place.id else run_around(context), None
    if place is None:
        return context, run_around(context), None
    run = place.run
    return context, run if run.id else run_around(context), place


def enter_run(run: Run, context: Context | None = None) -> Context:
    """A context inside a run; no call is under way in it yet."""
    return otel_context.set_value(PLACE, run, context)


def action_of(context: Context | None = None) -> Action | None:
    """The call of ours that is under way in a context; without one, in the code that runs."""
    place = _place(context)
    return None if isinstance(place, Run) else place


def enter_action(action: Action, context: Context | None = None) -> Context:
    """A context inside a call, and thereby inside its run."""
    return otel_context.set_value(PLACE, action, context)


def attach(context: Context) -> Tokens:
    """Run what follows in a context of ours, until `detach`."""
    place: Any = context.get(PLACE)
    return otel_context.attach(context), entered.set(place)


def detach(tokens: Tokens) -> None:
    """Undo `attach`, in the same place; elsewhere there is nothing to take off."""
    token, before = tokens
    otel_context.detach(token)
    try:  # noqa: SIM105 - each tool call comes here
        entered.reset(before)
    except ValueError:
        pass


def with_outer(run: Run) -> Iterator[Run]:
    """A run, and those that it is nested in, from the inside out."""
    around: Run | None = run
    while around is not None:
        yield around
        around = around.parent


def brief_of(run: Run) -> Brief | None:
    """What the application says of a run, or of the nearest one around it of which it does."""
    return next((each.brief for each in with_outer(run) if each.brief is not None), None)


def inner(run: Run, other: Run) -> Run:
    """The other run if it is inside of the first, or the same; else the first."""
    return other if any(around.id == run.id for around in with_outer(other)) else run


def _place(context: Context | None) -> Run | Action | None:
    """Where a context is; without one, the code that runs."""
    place: Any = otel_context.get_value(PLACE, context)
    if context is None:
        return _innermost(place)
    return None if isinstance(place, dict) else place  # as below


def _innermost(place: Any) -> Run | Action | None:
    """Where the code that runs is: it may be further inside than the context that is attached.

    Other instrumentations attach contexts that they have kept from before.
    """
    inside = entered.get()
    if isinstance(place, dict):  # pydantic, with which others keep a context, takes a Run apart
        return inside
    if place is None or inside is None or inside is place:
        return place
    run, other = _run_in(place), _run_in(inside)
    if run.id == other.id:
        return place if isinstance(inside, Run) else inside
    return inside if inner(run, other) is other else place


def _run_in(place: Run | Action) -> Run:
    return place if isinstance(place, Run) else place.run


Live = tuple[Run, "Call | None"]
"""What is known of a span that is open: its run, and the call that it is in."""


class LiveSpans(dict[int, Live]):
    """The spans that are open, by span id. Bounded: the oldest are forgotten.

    It has no lock, so that a signal handler, a finalizer or a fork can come at any time: each of
    its operations on the table is atomic.
    """

    def __init__(self, limit: int = MAX_LIVE_SPANS) -> None:
        super().__init__()
        self._limit = limit

    def add(self, span_id: int, run: Run, call: Call | None = None) -> None:
        """A span starts."""
        self[span_id] = run, call
        if len(self) > self._limit:
            self._forget()

    def open(self, span: trace.Span, run: Run) -> SpanRef | None:
        """A span of ours starts; returns how a step names it, None if it is not valid."""
        where = span.get_span_context()
        trace_id, span_id = where[0], where[1]  # by name it takes several times as long
        if not (trace_id and span_id):
            return None
        self[span_id] = run, None
        if len(self) > self._limit:
            self._forget()
        return trace_id, span_id

    def _forget(self) -> None:
        """Forget a tenth of them: to look for the oldest one takes long where many were taken."""
        for span_id in [*self][: self._limit // 10 + 1]:
            self.pop(span_id, None)


live_spans: Final = LiveSpans()


def current_run(context: Context | None = None) -> Run | None:
    """The run of the code that runs now, None outside of every run and every span."""
    return run_of(context) or run_around(context)


def run_around(context: Context | None = None) -> Run | None:
    """The run of the current span, where nobody has said which run it is."""
    span = trace.get_current_span(context).get_span_context()
    return run_below(span) if span.is_valid else None


def run_below(parent: trace.SpanContext) -> Run:
    """The run of what hangs below a span: that span's, or the trace's if it is not open here."""
    live = live_spans.get(parent.span_id)
    if live is not None:
        return live[0]
    return Run(trace.format_trace_id(parent.trace_id), scoped=False)
