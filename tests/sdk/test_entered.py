"""Where code is when another instrumentation attaches a context that it has kept from before."""

from __future__ import annotations

import contextvars
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard.dialects import Role
from otel_loopguard.sdk.processor import LoopGuardSpanProcessor, newest_model_call
from otel_loopguard.sdk.scope import (
    Run,
    action_of,
    attach,
    current_run,
    detach,
    enter_action,
    enter_run,
    live_spans,
    run_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry import trace

OUTER = Run("outer")
INNER = Run("inner", parent=OUTER)
OTHER = Run("other")


class Call:
    """A call of ours, which takes no span."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.start_ns = time.time_ns()
        self.met: list[tuple[Any, str | None]] = []

    def adopt(self, span: trace.Span, role: Any, name: str | None) -> bool:
        self.met.append((role, name))
        return False


@contextmanager
def inside(context: Context) -> Iterator[None]:
    """In a context that we have entered."""
    tokens = attach(context)
    yield
    detach(tokens)


@contextmanager
def attached(context: Context) -> Iterator[None]:
    """In a context that somebody else has attached."""
    token = otel_context.attach(context)
    yield
    otel_context.detach(token)


def test_a_kept_context_of_the_same_run_does_not_hide_the_call() -> None:
    call = Call(OUTER)
    with inside(enter_run(OUTER)):
        kept = otel_context.get_current()
        with inside(enter_action(call)), attached(kept):
            assert action_of() is call
            assert action_of(kept) is None
        assert action_of() is None
    assert run_of() is None


def test_a_kept_context_of_a_call_does_not_hide_the_call_inside() -> None:
    first, second = Call(OUTER), Call(OUTER)
    with inside(enter_action(first)):
        kept = otel_context.get_current()
        with inside(enter_action(second)), attached(kept):
            assert action_of() is second


def test_a_kept_context_of_a_call_is_where_it_says_after_the_run_was_entered() -> None:
    call = Call(OUTER)
    with inside(enter_run(OUTER)), attached(enter_action(call)):
        assert action_of() is call


def test_a_kept_context_of_the_outer_run_does_not_hide_the_inner() -> None:
    with inside(enter_action(Call(OUTER))):
        kept = otel_context.get_current()
        with inside(enter_run(INNER)), attached(kept):
            assert current_run() is INNER
            assert action_of() is None


def test_a_context_of_another_run_is_believed() -> None:
    with inside(enter_run(OUTER)), attached(enter_run(OTHER)):
        assert current_run() is OTHER
    with inside(enter_run(OUTER)), attached(enter_run(INNER)):
        assert current_run() is INNER


def test_a_context_without_us_is_believed() -> None:
    with inside(enter_run(OUTER)), attached(otel_context.Context()):
        assert current_run() is None


def test_leaving_elsewhere_leaves_nothing_behind() -> None:
    entered = contextvars.copy_context()
    tokens = entered.run(attach, enter_run(OUTER))
    with inside(enter_run(OTHER)):
        detach(tokens)
        assert current_run() is OTHER


def test_foreign_spans_started_from_a_kept_context_are_in_the_inner_run() -> None:
    provider = TracerProvider()
    provider.add_span_processor(LoopGuardSpanProcessor(provider))
    tracer = provider.get_tracer("theirs")
    with inside(enter_run(OUTER)):
        kept = otel_context.get_current()
        with inside(enter_run(INNER)):
            span = tracer.start_span("theirs", kept)
            alone = tracer.start_span("theirs", otel_context.Context())
    for started, run in ((span, INNER), (alone, None)):
        live = live_spans.get(started.get_span_context().span_id)
        assert live is not None
        assert run is None or live[0] is run
        assert run is not None or not live[0].scoped
        started.end()
    provider.shutdown()


def test_a_call_meets_spans_that_do_not_say_what_they_show() -> None:
    provider = TracerProvider()
    provider.add_span_processor(LoopGuardSpanProcessor(provider))
    call = Call(OUTER)
    with inside(enter_action(call)):
        provider.get_tracer("theirs").start_span("search").end()
    assert call.met == [(None, "search")]
    provider.shutdown()


def test_a_context_that_was_kept_in_pieces_says_nothing() -> None:
    kept = Context({key: {"id": run.id} for key, run in enter_run(OUTER, Context()).items()})
    assert run_of(kept) is None
    with attached(kept):
        assert run_of() is None
        assert action_of() is None
    with inside(enter_run(OUTER)), attached(kept):
        assert run_of() is OUTER


def test_a_call_that_is_over_meets_the_span_that_says_it_began_before() -> None:
    provider = TracerProvider()
    provider.add_span_processor(LoopGuardSpanProcessor(provider))
    tracer = provider.get_tracer("theirs")
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}

    def show(call: Call | None) -> None:
        newest_model_call.set(call)
        before = time.time_ns() if call is None else call.start_ns
        tracer.start_span("search", start_time=before).end()
        tracer.start_span("chat m", attributes=chat, start_time=before + 1).end()
        tracer.start_span("chat m", attributes=chat, start_time=before).end()

    call = Call(OUTER)
    for each in (call, None):
        contextvars.copy_context().run(show, each)
    assert call.met == [(Role.MODEL, "m")]
    provider.shutdown()
