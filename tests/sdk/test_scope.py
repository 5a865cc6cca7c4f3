"""Where code is: in which run, and in which call."""

from __future__ import annotations

import contextvars
from typing import TYPE_CHECKING

import pytest
from opentelemetry import context as otel_context
from opentelemetry import trace

from otel_loopguard.dialects import Role
from otel_loopguard.dialects.calls import Call
from otel_loopguard.sdk.scope import (
    LiveSpans,
    Run,
    action_of,
    attach,
    current_run,
    detach,
    enter_action,
    enter_run,
    here,
    inner,
    reference,
    run_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


class Act:
    """A call under way."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def adopt(self, span: trace.Span, role: Role | None, name: str | None) -> bool:
        raise NotImplementedError


OUTER = Run("outer")
INNER = Run("inner", parent=OUTER)
OTHER = Run("other")
SPAN = trace.SpanContext(0xA, 0xB, is_remote=False, trace_flags=trace.TraceFlags(1))


@pytest.fixture(autouse=True)
def left_as_found() -> Iterator[None]:
    yield
    assert (run_of(), action_of(), otel_context.get_current()) == (None, None, {})


def test_a_run_is_entered_and_left() -> None:
    assert run_of() is current_run() is None
    tokens = attach(enter_run(OUTER))
    assert run_of() is current_run() is OUTER
    assert action_of() is None
    detach(tokens)


def test_a_call_is_in_its_run_and_a_run_in_a_call_is_in_no_call() -> None:
    act = Act(OUTER)
    called = enter_action(act)
    assert (run_of(called), action_of(called)) == (OUTER, act)
    inside = enter_run(INNER, called)
    assert (run_of(inside), action_of(inside)) == (INNER, None)


def test_a_run_without_an_id_is_none() -> None:
    act = Act(Run("", scoped=False))
    called = enter_action(act)
    assert (run_of(called), action_of(called)) == (None, act)


@pytest.mark.parametrize(
    ("entered", "attached", "found"),
    [
        (INNER, OUTER, INNER),  # somebody attaches what they kept from further out
        (OUTER, INNER, INNER),
        (OTHER, OUTER, OUTER),  # nothing to do with each other: what is attached counts
    ],
)
def test_a_context_that_somebody_has_kept(entered: Run, attached: Run, found: Run) -> None:
    tokens = attach(enter_run(entered, otel_context.Context()))
    kept = otel_context.attach(enter_run(attached, otel_context.Context()))
    assert run_of() is found
    otel_context.detach(kept)
    detach(tokens)


def test_a_call_whose_run_alone_is_in_the_kept_context() -> None:
    act, later = Act(OUTER), Act(OUTER)
    for entered, attached, found in ((act, OUTER, act), (OUTER, act, act), (act, later, act)):
        into = [
            enter_run(each) if isinstance(each, Run) else enter_action(each)
            for each in (entered, attached)
        ]
        tokens = attach(into[0])
        kept = otel_context.attach(into[1])
        assert action_of() is found
        otel_context.detach(kept)
        detach(tokens)


def test_here_is_as_far_inside_as_anything_that_was_entered() -> None:
    act = Act(OUTER)
    tokens = attach(enter_action(act))
    kept = otel_context.attach(enter_run(OUTER, otel_context.Context()))
    assert here() == (otel_context.get_current(), OUTER, act)
    otel_context.detach(kept)
    detach(tokens)


def test_spans_of_ours_that_are_open_are_remembered_up_to_a_limit() -> None:
    spans = LiveSpans(limit=3)
    assert spans.open(trace.INVALID_SPAN, OUTER) is None
    for n in range(1, 6):
        where = trace.SpanContext(0xA, n, is_remote=False)
        assert spans.open(trace.NonRecordingSpan(where), OUTER) == (0xA, n)
    assert list(spans) == [3, 4, 5]


def test_nothing_is_taken_off_elsewhere(caplog: pytest.LogCaptureFixture) -> None:
    other = contextvars.copy_context()
    tokens = other.run(attach, enter_run(OUTER))
    detach(tokens)
    assert "Failed to detach context" in caplog.text  # as OpenTelemetry says it
    other.run(detach, tokens)


def test_which_run_is_inside_of_which() -> None:
    assert inner(OUTER, INNER) is INNER
    assert inner(INNER, OUTER) is INNER
    assert inner(OUTER, OTHER) is OUTER


def test_below_a_span_that_is_not_known_the_trace_is_the_run() -> None:
    token = otel_context.attach(trace.set_span_in_context(trace.NonRecordingSpan(SPAN)))
    run = current_run()
    otel_context.detach(token)
    assert run is not None
    assert run.id == f"{0xA:032x}"
    assert not run.scoped


def test_how_a_step_names_its_span() -> None:
    assert reference(trace.NonRecordingSpan(SPAN)) == (0xA, 0xB)
    assert reference(trace.INVALID_SPAN) is None


def test_which_spans_show_the_same_call() -> None:
    tool = Call(Role.TOOL, "search", 1)
    assert tool.shown_by(Role.TOOL, "search")
    assert tool.shown_by(Role.TOOL, None)
    assert not tool.shown_by(Role.TOOL, "read")
    assert not tool.shown_by(Role.MODEL, "search")
    assert Call(Role.TOOL, None, 1).shown_by(Role.TOOL, "read")
    assert Call(Role.MODEL, "m-1", 1).shown_by(Role.MODEL, "m-1-2026")
