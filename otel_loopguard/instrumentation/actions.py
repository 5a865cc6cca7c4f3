"""What a tool call and a model call under way have in common: one call, one span.

If another instrumentation shows the call (its span is open around it, or starts inside it), that
span is adopted and enriched; else the span is ours.
"""

from __future__ import annotations

import logging
from time import time_ns
from typing import TYPE_CHECKING, ClassVar

from opentelemetry import trace
from opentelemetry.context import Context, get_current
from opentelemetry.trace import SpanKind, Status, StatusCode

from otel_loopguard.core.model import MISSING
from otel_loopguard.core.model import Status as Health
from otel_loopguard.dialects import Role, starts
from otel_loopguard.sdk import attributes as names
from otel_loopguard.sdk.scope import PLACE, SPAN, Run, enter_action, live_spans, reference

if TYPE_CHECKING:
    from otel_loopguard.core.model import SpanRef
    from otel_loopguard.sdk.pipeline import Pipeline

logger = logging.getLogger("otel_loopguard")


class Action:
    """One call of ours that is under way.

    Attributes:
        role: tool or model.
        context: what the application's code runs in.
        place: where a marker span hangs: below the span that shows the call.
        own: whether the span is ours.
        ended: whether it is over.
        where: how a step names the span that shows the call.
        expected: how another instrumentation will name the span that shows the call, even if that
            does not say what it shows before it ends; None if nothing is expected.

    Args:
        pipeline: where it is told.
        run: the run it belongs to.
        name: the tool's or model's name.
        title: the name of our span.
        attributes: what the span says from its start on.
        around: the span of another instrumentation that is open around the call, if any.
        parent: the context that our span hangs in; the current one if None.
        later: do not open a span yet: another instrumentation is about to show this call.
    """

    __slots__ = (
        "_attributes", "_title", "context", "ended", "expected", "name",
        "own", "pipeline", "place", "run", "span", "start_ns", "where",
    )  # fmt: skip

    role: ClassVar[Role]
    span_kind: ClassVar[SpanKind]

    def __init__(
        self,
        pipeline: Pipeline,
        run: Run,
        name: str,
        title: str,
        attributes: names.Attributes,
        around: trace.Span | None = None,
        parent: Context | None = None,
        later: bool = False,  # noqa: FBT001, FBT002 - a name takes time
    ) -> None:
        self.pipeline = pipeline
        self.run = run
        self.name = name
        self.start_ns = time_ns()
        self._title, self._attributes = title, attributes
        self.ended = False
        self.expected: str | None = None
        self.span: trace.Span | None
        self.where: SpanRef | None
        if parent is None:
            parent = get_current()
        if around is None and not later:
            self._open(parent)
            return
        self.span = self.where = None
        self.own = False
        self.context = self.place = enter_action(self, parent)
        if later:
            self.expected = name
        if around is not None:
            self._take(around)

    def adopt(self, span: trace.Span, role: Role | None, name: str | None) -> bool:
        """A foreign span starts inside the call: say whether it shows this very call.

        It is taken as the call's span, unless the call has one. One that does not say yet what it
        shows is taken if it has the name that is expected.
        """
        if role is None:
            shows = self.span is None and name is not None and name == self.expected
        else:
            shows = role is self.role and (role is not Role.TOOL or name in (None, self.name))
        if shows and self.span is None:
            self._take(span)
        return shows

    def _take(self, span: trace.Span) -> None:
        self.span = span
        self.where = reference(span)
        self.place = trace.set_span_in_context(span, self.context)
        ours = {key: value for key, value in self._attributes.items() if key.startswith("loop")}
        if self.pipeline.guard.is_stuck(self.run.id):
            ours[names.STATUS] = Health.DEADLOCKED.value
        span.set_attributes(ours)

    def _open(self, parent: Context) -> None:
        self.own = True
        self.span = span = self.pipeline.tracer.start_span(
            self._title, parent, self.span_kind, self._attributes, (), self.start_ns
        )
        self.where = live_spans.open(span, self.run)
        self.context = self.place = Context({**parent, PLACE: self, SPAN: span})

    @property
    def adopted(self) -> bool:
        """Whether another instrumentation's span shows the call."""
        return self.span is not None and not self.own

    def showing(self) -> trace.Span | None:
        """The span that shows the call at its end; None if a foreign one has ended already."""
        if self.span is None:
            self._open(self.context)
        if self.own or (self.span is not None and self.span.is_recording()):
            return self.span
        return None

    def mark_failed(self, error_type: str) -> None:
        """Say on our own span that the call failed."""
        if self.own and self.span is not None:
            say_failed(self.span, error_type)

    def close(self, end_ns: int) -> None:
        """End our span; a foreign one is left to its owner."""
        span, where = self.span, self.where
        if self.own and span is not None:
            span.end(end_ns)
            if where is not None:
                live_spans.pop(where[1], None)


def open_around(
    role: Role,
    name: str | None,
    newest: trace.Span | None = None,
    ours: trace.Span = trace.INVALID_SPAN,
    context: Context | None = None,
) -> trace.Span | None:
    """The span of another instrumentation that is open around the code that runs now, if any.

    Args:
        role: what the span has to show.
        name: the tool's name; a span of another tool shows another call.
        ours: a span that is known to show something else: the agent's.
        newest: a span of that role that was started but not made current.
        context: where the code runs.
    """
    current = trace.get_current_span(context)
    if current is not ours and current is not trace.INVALID_SPAN and _shows(current, role, name):
        return current
    if newest is None or not newest.is_recording() or not _shows(newest, role, name):
        return None
    parent = getattr(newest, "parent", None)
    here = current.get_span_context()
    same_place = parent == here if here.is_valid else parent is None
    return newest if same_place else None


def _shows(span: trace.Span, role: Role, name: str | None) -> bool:
    scope = getattr(span, "instrumentation_scope", None)
    scope_name = getattr(scope, "name", "")
    if scope_name == names.SCOPE or not span.is_recording():
        return False
    start = starts(getattr(span, "name", ""), scope_name, getattr(span, "attributes", None) or {})
    if start is None or start.role is not role:
        return False
    return role is not Role.TOOL or start.name in (None, name)


def say_failed(span: trace.Span, error_type: str) -> None:
    """Say on a span that what it shows has failed. Never the text: it may hold content."""
    span.set_attribute(names.ERROR_TYPE, error_type)
    span.set_status(Status(StatusCode.ERROR, error_type))


def error_type(error: BaseException) -> str:
    """A failure's class as `error.type` wants it: the qualified name, without the text."""
    kind = type(error)
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else (f"{kind.__module__}.{kind.__qualname__}")
    )


def failure_text(error: BaseException) -> object:
    """What a failure says; MISSING where its own code raises when it is asked. Never exported."""
    said: tuple[object, ...] = BaseException.__dict__["args"].__get__(error)
    if said:
        return said
    try:
        return str(error)
    except Exception as fault:  # noqa: BLE001 - it comes from the application's exception
        logger.debug("otel_loopguard: a failure does not say what it is (%s)", type(fault).__name__)
        return MISSING
