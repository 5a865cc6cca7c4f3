"""Loops that show in the spans of others only, made here with the plain SDK."""

from __future__ import annotations

import json
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode

import otel_loopguard
from otel_loopguard import runtime
from otel_loopguard.core.model import Kind, Sighting
from otel_loopguard.sdk.daemon import daemon
from otel_loopguard.sdk.processor import LoopGuardSpanProcessor
from otel_loopguard.sdk.scope import LiveSpans, Run, live_spans
from tests.signals import Signals, attributes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.trace import Span, Tracer

SCOPE = "opentelemetry.instrumentation.framework"
ARGS = {"gen_ai.tool.call.arguments": '{"query": "x"}'}
RESULT = {"gen_ai.tool.call.result": "nothing found"}


class Foreign:
    """An agent framework's instrumentation that follows the GenAI conventions."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer

    @contextmanager
    def agent(self, name: str | None = "finder", **more: Any) -> Iterator[Span]:
        title = f"invoke_agent {name}" if name else "invoke_agent"
        said = {"gen_ai.operation.name": "invoke_agent", **more}
        if name:
            said["gen_ai.agent.name"] = name
        with self.tracer.start_as_current_span(title, attributes=said) as span:
            yield span

    @contextmanager
    def tool(self, name: str = "search", *, late: bool = False, **more: Any) -> Iterator[Span]:
        said = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, **more}
        title = "a tool" if late else f"execute_tool {name}"
        with self.tracer.start_as_current_span(title, attributes=None if late else said) as span:
            yield span
            if late:
                span.set_attributes(said)

    @contextmanager
    def chat(self, model: str = "m-1", **more: Any) -> Iterator[Span]:
        said = {"gen_ai.operation.name": "chat", "gen_ai.request.model": model, **more}
        with self.tracer.start_as_current_span(f"chat {model}", attributes=said) as span:
            yield span

    def search(self, call_id: str | None = None, **more: Any) -> None:
        """One call with its arguments and its result, the same each time."""
        if call_id:
            more["gen_ai.tool.call.id"] = call_id
        with self.tool(**more) as span:
            span.set_attributes({**ARGS, **RESULT})


@pytest.fixture
def signals() -> Signals:
    return Signals()


@pytest.fixture
def processor(signals: Signals) -> Iterator[LoopGuardSpanProcessor]:
    processor = LoopGuardSpanProcessor(pipeline=signals.pipeline())
    signals.tracer_provider.add_span_processor(processor)
    yield processor
    processor.shutdown()


@pytest.fixture
def foreign(signals: Signals, processor: LoopGuardSpanProcessor) -> Foreign:
    return Foreign(signals.tracer_provider.get_tracer(SCOPE))


def test_the_marker_is_out_while_the_root_is_open(signals: Signals, foreign: Foreign) -> None:
    with foreign.agent() as root:
        for _ in range(3):
            foreign.search()
        marker = signals.span("loopguard.deadlock")
        assert root.is_recording()
    first, _, third = signals.named("execute_tool search")
    assert marker.parent is not None
    assert marker.parent.span_id == third.context.span_id
    assert marker.context.trace_id == third.context.trace_id
    assert marker.start_time == marker.end_time == third.end_time == marker.events[0].timestamp
    assert [link.context.span_id for link in marker.links] == [first.context.span_id]
    said = attributes(marker)
    assert said["loopguard.deadlock"] is True
    assert said["loopguard.pattern"] == "hard_loop"
    assert said["gen_ai.tool.name"] == "search"
    assert said["loopguard.run_id"] == trace.format_span_id(root.get_span_context().span_id)
    assert attributes(marker.events[0])["gen_ai.agent.name"] == "finder"
    assert "gen_ai.operation.name" not in said  # it is no tool call and must not be counted as one


def test_a_loop_whose_first_step_has_no_span_has_no_link(signals: Signals) -> None:
    pipeline = signals.pipeline()
    for _ in range(3):
        seen = Sighting(Kind.TOOL, "search", args={"query": "x"}, result="nothing")
        pipeline.see(Run("r"), seen, None)
    pipeline.close()
    assert list(signals.span("loopguard.deadlock").links) == []


def test_a_critical_marker_is_an_error(signals: Signals, foreign: Foreign) -> None:
    with foreign.agent():
        for _ in range(5):
            foreign.search()
    codes = [span.status.status_code for span in signals.named("loopguard.deadlock")]
    assert codes == [StatusCode.UNSET, StatusCode.ERROR]
    assert signals.severities == ["warning", "critical"]
    assert not [span for span in signals.named("execute_tool search") if span.events]


def test_the_agents_span_of_somebody_else_gets_the_totals(
    signals: Signals, foreign: Foreign
) -> None:
    with foreign.agent():
        for _ in range(4):
            foreign.search()
    said = attributes(signals.span("invoke_agent finder"))
    assert said["loopguard.iteration"] == 4
    assert said["loopguard.status"] == "deadlocked"
    assert said["loopguard.wasted_calls"] == 2


def test_attributes_that_come_late(signals: Signals, foreign: Foreign) -> None:
    with foreign.agent():
        for _ in range(3):
            foreign.search(late=True)
    assert signals.severities == ["warning"]


def test_a_loop_below_a_span_that_is_no_agent(signals: Signals, foreign: Foreign) -> None:
    with foreign.tracer.start_as_current_span("POST /ask"):
        for _ in range(3):
            foreign.search()
    assert signals.severities == ["warning"]
    assert list(signals.points("loopguard.stuck_runs").values()) == [0]


def test_equal_calls_of_different_requests_are_no_loop(signals: Signals, foreign: Foreign) -> None:
    for _ in range(6):
        with foreign.tracer.start_as_current_span("POST /ask"):
            foreign.search()
    assert signals.events == []


def test_requests_of_one_trace_from_elsewhere_are_runs_of_their_own(
    signals: Signals, foreign: Foreign
) -> None:
    remote = trace.SpanContext(7, 7, is_remote=True, trace_flags=trace.TraceFlags(1))
    context = trace.set_span_in_context(trace.NonRecordingSpan(remote))
    for _ in range(6):
        with foreign.tracer.start_as_current_span("POST /ask", context):
            foreign.search()
    assert signals.events == []


def test_what_goes_on_below_a_span_that_has_ended_is_one_run(
    signals: Signals, foreign: Foreign
) -> None:
    with foreign.tracer.start_as_current_span("POST /ask") as span:
        context = trace.set_span_in_context(span)
    token = otel_context.attach(context)
    for _ in range(3):
        foreign.search()
    otel_context.detach(token)
    assert signals.severities == ["warning"]


def test_a_sub_agent_is_a_step_of_its_parent(signals: Signals, foreign: Foreign) -> None:
    task = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "find it"}]}])
    answer = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "no"}]}])
    with foreign.agent("supervisor") as root:
        for page in range(3):
            with foreign.agent("worker") as span:
                span.set_attribute("gen_ai.input.messages", task)
                span.set_attribute("gen_ai.output.messages", answer)
                with foreign.tool("read") as tool:
                    tool.set_attribute("gen_ai.tool.call.arguments", f'{{"page": {page}}}')
                    tool.set_attribute("gen_ai.tool.call.result", f"page {page}")
    (event,) = signals.events
    assert attributes(event)["loopguard.severity"] == "warning"
    assert attributes(event)["loopguard.run_id"] == (
        trace.format_span_id(root.get_span_context().span_id)
    )


def test_two_layers_of_one_agent_are_one_run(signals: Signals, foreign: Foreign) -> None:
    with foreign.agent():
        for _ in range(3):
            with foreign.agent(None):
                foreign.search()
    assert signals.severities == ["warning"]
    (event,) = signals.events
    assert attributes(event)["loopguard.pattern"] == "hard_loop"


@pytest.mark.parametrize("inner", [{}, {**ARGS, **RESULT}], ids=["inner-bare", "inner-full"])
@pytest.mark.parametrize("call_id", [None, "call_1"])
def test_several_spans_around_one_call_are_one_call(
    signals: Signals, foreign: Foreign, call_id: str | None, inner: dict[str, str]
) -> None:
    with foreign.agent():
        for n in range(3):
            same = {"gen_ai.tool.call.id": f"{call_id}{n}"} if call_id else {}
            with (
                foreign.tool(**same) as outer,
                foreign.tracer.start_as_current_span("a chain"),
                foreign.tool(**same) as span,
            ):
                span.set_attributes(inner)
                outer.set_attributes({**ARGS, **RESULT})
            assert len(signals.events) == (1 if n == 2 else 0)
    assert attributes(signals.span("invoke_agent finder"))["loopguard.iteration"] == 3


def test_a_tool_inside_of_another_tool_is_a_call_of_its_own(
    signals: Signals, foreign: Foreign
) -> None:
    with foreign.agent():
        for _ in range(3):
            with foreign.tool("look_around") as outer:
                outer.set_attributes({**ARGS, **RESULT})
                foreign.search()
    (event,) = signals.events
    assert attributes(event)["gen_ai.tool.name"] == "search"


def test_nested_model_spans_are_one_model_call(signals: Signals, foreign: Foreign) -> None:
    with foreign.agent():
        for _ in range(4):
            with (
                foreign.chat("m-1", **{"gen_ai.usage.input_tokens": 70}),
                foreign.chat("m-1-2026", **{"gen_ai.usage.input_tokens": 70}) as span,
            ):
                span.set_attribute("gen_ai.output.messages", "[]")
            foreign.search()
    spent = attributes(signals.events[0])["loopguard.wasted_tokens"]
    assert spent == 140  # of the two model calls after the first search


def test_the_far_side_of_a_call_is_no_call(signals: Signals, foreign: Foreign) -> None:
    with foreign.agent():
        for _ in range(3):
            said = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
            with foreign.tracer.start_as_current_span(
                "tools/call search", kind=SpanKind.SERVER, attributes={**said, **ARGS, **RESULT}
            ):
                pass
    assert signals.events == []


def test_arguments_and_rounds_are_taken_from_the_response_that_asked(
    signals: Signals, foreign: Foreign
) -> None:
    def asks(*ids: str) -> str:
        parts = [
            {"type": "tool_call", "id": each, "name": "search", "arguments": {"query": "x"}}
            for each in ids
        ]
        return json.dumps([{"role": "assistant", "parts": parts}])

    with foreign.agent():
        for n in range(3):
            ids = (f"a{n}", f"b{n}")
            with foreign.chat(**{"gen_ai.output.messages": asks(*ids)}):
                pass
            for each in ids:
                said = {"gen_ai.tool.call.id": each, **RESULT}
                with foreign.tool(**said):
                    pass
    assert signals.severities == ["warning"]
    assert attributes(signals.span("invoke_agent finder"))["loopguard.iteration"] == 3


def test_two_spans_of_one_request_carry_its_results_once(
    signals: Signals, foreign: Foreign
) -> None:
    """Side by side, as those of a model SDK and of an instrumentation that is not current."""
    inner = Foreign(signals.tracer_provider.get_tracer("com.anthropic.sdk.python"))
    outer = signals.tracer_provider.get_tracer("opentelemetry.instrumentation.anthropic")
    part = {"id": "call_0", "name": "search"}
    call = {"role": "assistant", "parts": [{"type": "tool_call", "arguments": {}, **part}]}
    result = {"role": "tool", "parts": [{"type": "tool_call_response", "response": "no", **part}]}
    with foreign.agent():
        for n in range(4):
            said = {"gen_ai.output.messages": json.dumps([call])}
            if n:
                said["gen_ai.input.messages"] = json.dumps([call, result])
            span = outer.start_span("chat", attributes={"gen_ai.operation.name": "chat", **said})
            with inner.chat(**said):
                pass
            span.end()
    assert signals.severities == ["warning"]
    assert attributes(signals.span("invoke_agent finder"))["loopguard.iteration"] == 3


def test_a_call_that_was_asked_for_without_an_id(signals: Signals, foreign: Foreign) -> None:
    parts = [{"type": "tool_call", "id": None, "name": "search", "arguments": {"query": "x"}}]
    said = json.dumps([{"role": "assistant", "parts": parts}])
    with foreign.agent():
        for _ in range(3):
            with foreign.chat(**{"gen_ai.output.messages": said}):
                pass
            foreign.search()
    assert signals.severities == ["warning"]


def test_a_span_that_our_hook_took_in_a_place_that_is_not_known(
    signals: Signals, processor: LoopGuardSpanProcessor, foreign: Foreign
) -> None:
    with foreign.tracer.start_as_current_span("a chain") as span:
        span.set_attribute("loopguard.run_id", "0123456789abcdef")
    assert signals.events == []


def test_a_layer_that_turns_out_to_be_another_tool(signals: Signals, foreign: Foreign) -> None:
    """The name that comes late is not that of the call around."""
    with foreign.agent():
        for _ in range(3):
            with foreign.tool("look_around", **ARGS, **RESULT):
                foreign.search(late=True)
    assert signals.severities == ["warning"]


def test_what_responses_asked_for_is_forgotten_some_time(foreign: Foreign) -> None:
    for n in range(30):
        parts = [
            {"type": "tool_call", "id": f"{n}-{m}", "name": "t", "arguments": {}} for m in range(50)
        ]
        said = json.dumps([{"role": "assistant", "parts": parts}])
        with foreign.chat(**{"gen_ai.output.messages": said}):
            pass


def test_our_hooks_and_somebody_elses_spans_are_one_call(signals: Signals) -> None:
    foreign = Foreign(signals.tracer_provider.get_tracer(SCOPE))

    @otel_loopguard.tool(name="search")
    def outside(query: str) -> str:
        with foreign.tool() as span:
            span.set_attributes({**ARGS, **RESULT})
        return "nothing found"

    @otel_loopguard.tool(name="search")
    def inside(query: str) -> str:
        return "nothing found"

    with signals.instrumented():
        with foreign.agent("one"):
            for _ in range(3):
                outside("x")
        with foreign.agent("two"):
            for _ in range(3):
                with foreign.tool(), foreign.tool() as span:
                    span.set_attributes({**ARGS, **RESULT})
                    inside("x")
    assert signals.severities == ["warning"] * 2
    for agent in ("one", "two"):
        assert attributes(signals.span(f"invoke_agent {agent}"))["loopguard.iteration"] == 3
    assert signals.named("loopguard.deadlock") == []  # there was an open span each time


def test_spans_below_our_agent_are_in_its_run_even_without_our_context(signals: Signals) -> None:
    foreign = Foreign(signals.tracer_provider.get_tracer(SCOPE))
    with signals.instrumented(), otel_loopguard.run("finder"):
        bare = trace.set_span_in_context(trace.get_current_span(), otel_context.Context())
        token = otel_context.attach(bare)
        for _ in range(3):
            foreign.search()
        otel_context.detach(token)
    run_id = attributes(signals.span("invoke_agent finder"))["loopguard.run_id"]
    assert [attributes(event)["loopguard.run_id"] for event in signals.events] == [run_id]
    assert attributes(signals.span("invoke_agent finder"))["loopguard.iteration"] == 3


def test_the_global_provider_if_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    signals = Signals()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: signals.tracer_provider)
    monkeypatch.setattr(runtime, "_current", None)
    processor = LoopGuardSpanProcessor()
    signals.tracer_provider.add_span_processor(processor)
    foreign = Foreign(signals.tracer_provider.get_tracer(SCOPE))
    with foreign.agent():
        for _ in range(3):
            foreign.search()
    processor.shutdown()
    assert len(signals.named("loopguard.deadlock")) == 1


def test_a_provider_that_is_not_the_global_one_has_to_be_given(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    signals, other = Signals(), Signals()
    monkeypatch.setattr(runtime, "_current", None)
    given = LoopGuardSpanProcessor(signals.tracer_provider)
    lost = LoopGuardSpanProcessor()
    signals.tracer_provider.add_span_processor(given)
    other.tracer_provider.add_span_processor(lost)
    for each in (signals, other):
        foreign = Foreign(each.tracer_provider.get_tracer(SCOPE))
        with foreign.agent():
            for _ in range(5):
                foreign.search()
    given.shutdown()
    lost.shutdown()
    assert len(signals.events) == 2
    assert other.events == []
    assert len([text for text in caplog.messages if "tracer_provider=..." in text]) == 1


@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
def test_before_or_after_the_exporter(*, first: bool) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    exporting = SimpleSpanProcessor(exporter)
    ours = LoopGuardSpanProcessor(provider)
    for each in (ours, exporting) if first else (exporting, ours):
        provider.add_span_processor(each)
    foreign = Foreign(provider.get_tracer(SCOPE))
    with foreign.agent():
        for _ in range(3):
            foreign.search()
    ours.shutdown()
    assert len([s for s in exporter.get_finished_spans() if s.name == "loopguard.deadlock"]) == 1


def test_an_unsampled_trace_counts_where_our_own_hooks_see_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    signals = Signals(sampler=ALWAYS_OFF)

    @otel_loopguard.tool
    def search(query: str) -> str:
        return "nothing"

    with signals.instrumented(emit="span,metric,log"), otel_loopguard.run("finder"):
        with caplog.at_level(logging.WARNING, "otel_loopguard"):
            for _ in range(5):
                search("x")
        assert sum(signals.points("loopguard.deadlocks").values()) == 2
        assert list(signals.points("loopguard.stuck_runs").values()) == [0, 1]
    assert signals.spans == []
    assert len(signals.logs) == 2
    assert len([text for text in caplog.messages if text.startswith("hard_loop")]) == 2
    assert not [text for text in caplog.messages if "tracer_provider" in text]


def test_spans_that_lack_what_spans_have(
    signals: Signals, processor: LoopGuardSpanProcessor
) -> None:
    bare = ReadableSpan("execute_tool search")
    processor.on_end(bare)
    where = trace.SpanContext(1, 2, is_remote=False, trace_flags=trace.TraceFlags(1))
    live_spans.add(2, Run("r"))
    processor.on_end(ReadableSpan("execute_tool search", where))
    processor.on_end(ReadableSpan("execute_tool search", where))
    assert signals.spans == []
    assert processor.force_flush()


def test_a_span_that_ends_twice_counts_once(signals: Signals, foreign: Foreign) -> None:
    with foreign.agent():
        for n in range(2):
            with foreign.tool() as span:
                span.set_attributes({**ARGS, **RESULT})
            signals.tracer_provider._active_span_processor.on_end(span)
            assert signals.events == [], n


def test_after_its_shutdown_it_does_nothing(
    signals: Signals, foreign: Foreign, processor: LoopGuardSpanProcessor
) -> None:
    with foreign.agent():
        foreign.search()
        processor.shutdown()
        for _ in range(5):
            foreign.search()
    assert signals.events == []


def test_open_spans_are_remembered_up_to_a_limit() -> None:
    spans = LiveSpans(limit=3)
    for n in range(5):
        spans.add(n, Run(str(n)))
    assert [spans.get(n) is not None for n in range(5)] == [False, False, True, True, True]
    assert spans.pop(0, None) is None
    live = spans.pop(4, None)
    assert live is not None
    assert live[0].id == "4"


def test_what_is_seen_starts_the_daemon(foreign: Foreign, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a forked child, say, it does not run."""
    started: list[bool] = []
    monkeypatch.setattr(daemon, "runs", False)
    monkeypatch.setattr(daemon, "start", lambda: started.append(True))
    foreign.search()
    assert started


def test_without_a_guard_it_is_inert(
    signals: Signals, foreign: Foreign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the guard cannot be made, the line that adds the processor does not fail."""

    def fail() -> None:
        raise RuntimeError("no guard")

    monkeypatch.setattr(runtime, "get", fail)
    monkeypatch.setattr(runtime.boundary, "reraise", False)
    inert = LoopGuardSpanProcessor()
    assert runtime.boundary.faults.total() == 1
    runtime.boundary.faults.clear()

    signals.tracer_provider.add_span_processor(inert)
    with foreign.tool() as span:
        span.set_attribute("a", 1)
    inert.shutdown()
    assert inert.force_flush()
    assert [each.name for each in signals.spans] == ["execute_tool search"]
