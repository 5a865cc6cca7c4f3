"""Whatever the attributes of a span hold, reading it raises nothing and invents nothing."""

from __future__ import annotations

import json
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard.dialects import Role, read, starts
from otel_loopguard.dialects.values import mapping
from otel_loopguard.dialects.view import SpanView
from tests.dialects import recorded

KEYS = sorted(
    {
        key
        for name in recorded.ALL
        for span in recorded.spans(name)
        for key in (*span.view.attributes, *(k for _, held in span.view.events for k in held))
    }
)
EVENTS = ["gen_ai.choice", "gen_ai.tool.message", "gen_ai.user.message", "exception", "other"]
NAMES = sorted({span.view.name for name in recorded.ALL for span in recorded.spans(name)})
MARKS = {
    "gen_ai.operation.name": ["execute_tool", "chat", "invoke_agent", "x"],
    "openinference.span.kind": ["TOOL", "LLM", "AGENT", "CHAIN"],
    "traceloop.span.kind": ["tool", "workflow", "agent", "task"],
}

WORDS = """type tool_call tool_call_response tool_use tool_result function role id name arguments
content parts tool_calls toolUse toolResult kwargs inputs input_str output data tool assistant
messages text"""
words = st.sampled_from(WORDS.split())
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=5),
    max_leaves=20,
)
values = (
    json_values
    | json_values.map(json.dumps)
    | st.tuples(st.text(), st.text())
    | st.binary()
    | st.sampled_from(["{", "[1", '"', "{}", "<REDACTED>", "[" * 5000])
)
marks = st.sampled_from([{key: word} for key, words_ in MARKS.items() for word in words_])
attributes = st.builds(
    lambda any_, known, mark: {**any_, **known, **mark},
    st.dictionaries(st.text(), values, max_size=3),
    st.dictionaries(st.sampled_from(KEYS), values, max_size=12),
    marks | st.just({}),
)
views = st.builds(
    SpanView,
    name=st.text() | st.sampled_from(NAMES),
    kind=st.sampled_from(["internal", "server", "client", "producer", "consumer"]),
    trace_id=st.just("1" * 32),
    span_id=st.just("2" * 16),
    parent_id=st.none(),
    scope=st.sampled_from(["", "openinference.instrumentation.openai", "strands.telemetry.tracer"]),
    start_ns=st.integers(0),
    end_ns=st.integers(0),
    is_error=st.booleans(),
    attributes=attributes,
    events=st.lists(st.tuples(st.sampled_from(EVENTS), attributes), max_size=3).map(tuple),
)


@given(views, st.none() | st.integers(1, 100))
def test_any_span_can_be_read(view: SpanView, limit: int | None) -> None:
    reading = read(view, value_limit=limit)
    if reading is None:
        return
    first = reading.sightings[:1]
    assert all(step.span == view.reference and step.action for step in reading.sightings)
    assert reading.role is not Role.TOOL or len(reading.sightings) == 1
    assert all(step.call_id for step in reading.sightings[:-1])
    assert all(isinstance(step.error, str | None) for step in first)


@given(st.text() | st.sampled_from(NAMES), st.text(), attributes)
def test_any_span_can_start(name: str, scope: str, held: dict[str, object]) -> None:
    start = starts(name, scope, held)
    assert start is None or isinstance(start.name, str | None)


@pytest.mark.parametrize("name", recorded.ALL)
def test_every_recording_can_be_read(name: str) -> None:
    assert recorded.readings(name)


def test_a_mapping_of_any_make_is_one() -> None:
    given_ = MappingProxyType({"a": 1})
    assert mapping(given_) is given_
    assert mapping([("a", 1)]) is None
