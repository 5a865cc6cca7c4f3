"""What holds in every dialect: unknown values, failures, the kinds of spans that are no steps."""

from __future__ import annotations

import json

import pytest

from otel_loopguard.core.model import MISSING, Outcome, Sighting
from otel_loopguard.dialects import Role, Start, read, starts
from tests.core.steps import make_guard
from tests.dialects.recorded import made

GENAI = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find"}
ARGS, RESULT = "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"
OPENINFERENCE = {"openinference.span.kind": "TOOL", "tool.name": "find"}
TRACELOOP = {"traceloop.span.kind": "tool", "traceloop.entity.name": "find"}


def tool(attributes: dict[str, object], **how: object) -> Sighting:
    reading = read(made(attributes, **how))
    assert reading is not None
    assert reading.role is Role.TOOL
    (step,) = reading.sightings
    return step


@pytest.mark.parametrize("withheld", ["<REDACTED>", "[REDACTED]", "__REDACTED__", "N/A", None])
@pytest.mark.parametrize(
    ("base", "args", "result"),
    [
        (GENAI, ARGS, RESULT),
        (OPENINFERENCE, "input.value", "output.value"),
        (TRACELOOP, "traceloop.entity.input", "traceloop.entity.output"),
    ],
)
def test_a_placeholder_is_unknown(
    base: dict[str, object], args: str, result: str, withheld: object
) -> None:
    step = tool({**base, args: withheld, result: withheld})
    assert (step.args, step.result) == (MISSING, MISSING)


def test_an_empty_object_is_unknown_where_its_other_half_is() -> None:
    def halves(**held: str) -> tuple[object, object]:
        step = tool({**GENAI, **{f"gen_ai.tool.call.{key}": text for key, text in held.items()}})
        return step.args, step.result

    assert halves(arguments="{}") == (MISSING, MISSING)
    assert halves(result="{}") == (MISSING, MISSING)
    assert halves(arguments="{}", result="{}") == (MISSING, MISSING)
    assert halves(arguments="{}", result="12:00") == ({}, "12:00"), "a tool without parameters"
    assert halves(arguments='{"q": "a"}', result="{}") == ({"q": "a"}, {}), "nothing was found"


def test_an_empty_text_is_a_result() -> None:
    assert tool({**GENAI, ARGS: '{"q": "a"}', RESULT: ""}).result == ""


@pytest.mark.parametrize("limit", [16, 20])
def test_a_text_cut_at_the_limit_is_unknown(limit: int) -> None:
    view = made({**GENAI, ARGS: '{"q": "aaaaaaaaaaaaaaaa'[:limit], RESULT: "r" * limit})
    reading = read(view, value_limit=limit)
    assert reading is not None
    (step,) = reading.sightings
    assert (step.args, step.result) == (MISSING, MISSING)
    longer = read(view, value_limit=limit + 1)
    assert longer is not None
    assert longer.sightings[0].result == "r" * limit


def test_a_text_of_an_event_is_cut_too() -> None:
    said = (("gen_ai.choice", {"message": "r" * 16}), ("gen_ai.tool.message", {"content": "{}"}))
    reading = read(made(GENAI, events=said), value_limit=16)
    assert reading is not None
    assert reading.sightings[0].result is MISSING


@pytest.mark.parametrize(
    "held",
    [
        {RESULT: "aaaa...[truncated]"},
        {"anthropic.tool_result.content": "[]", "anthropic.content.truncated": True},
    ],
)
def test_a_result_that_says_that_it_was_cut_is_unknown(held: dict[str, object]) -> None:
    assert tool({**GENAI, ARGS: '{"q": "a"}', **held}).result is MISSING


def test_broken_json_of_a_model_is_a_value() -> None:
    assert tool({**GENAI, ARGS: '{"q": "a', RESULT: "no"}).args == '{"q": "a'


def test_json_too_deep_or_too_long_to_parse_stays_text() -> None:
    deep, long = "[" * 100_000, '["' + "a" * 4_000_000 + '"]'
    assert tool({**GENAI, RESULT: deep}).result == deep
    assert tool({**GENAI, RESULT: long}).result == long


def test_a_value_that_is_no_text_is_itself() -> None:
    assert tool({**GENAI, ARGS: {"q": 1}, RESULT: 7}).args == {"q": 1}


@pytest.mark.parametrize(
    ("held", "how", "error"),
    [
        ({}, {}, None),
        ({}, {"is_error": True}, "error"),
        ({"error.type": "TimeoutError"}, {}, "TimeoutError"),
        ({"gen_ai.tool.status": "error"}, {}, "error"),
        ({}, {"is_error": True, "events": (("exception", {"exception.type": "KeyError"}),)},
         "KeyError"),
        ({}, {"events": (("exception", {"exception.type": "KeyError"}),)}, None),
    ],
)  # fmt: skip
def test_failures(held: dict[str, object], how: dict[str, object], error: str | None) -> None:
    assert tool({**GENAI, **held}, **how).error == error


def test_a_failure_keeps_the_result_that_the_model_got() -> None:
    raised = (("exception", {"exception.type": "KeyError", "exception.message": "'a'"}),)
    assert tool(GENAI, is_error=True, events=raised).result == "'a'"
    assert tool({**GENAI, RESULT: "sorry"}, is_error=True, events=raised).result == "sorry"


def test_invalid_arguments_are_named_where_the_span_names_them() -> None:
    held = {**GENAI, "pydantic_ai.tool.failure_stage": "validation"}
    assert tool(held, is_error=True).outcome is Outcome.INVALID_ARGS


@pytest.mark.parametrize("call_id", ["", "<not specified>", None, 3])
def test_a_call_id_that_is_none_is_none(call_id: object) -> None:
    assert tool({**GENAI, "gen_ai.tool.call.id": call_id}).call_id is None


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"http.request.method": "GET"},
        {"gen_ai.tool.name": "find"},
        {"gen_ai.operation.name": "embeddings"},
        {"gen_ai.operation.name": "create_agent", "gen_ai.agent.name": "a"},
        {"gen_ai.operation.name": "execute_tool"},
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "(merged tools)"},
        {"openinference.span.kind": "CHAIN", "input.value": "x"},
        {"openinference.span.kind": "RETRIEVER", "gen_ai.operation.name": "chat"},
        {"traceloop.span.kind": "task", "gen_ai.operation.name": "invoke_agent"},
        {"traceloop.span.kind": "tool"},
    ],
)
def test_other_spans_are_no_reading(attributes: dict[str, object]) -> None:
    assert read(made(attributes)) is None


@pytest.mark.parametrize("operation", ["execute_tool", "chat"])
def test_the_far_side_of_a_call_is_no_step(operation: str) -> None:
    held = {**GENAI, "gen_ai.operation.name": operation, "mcp.method.name": "tools/call"}
    assert read(made(held, kind="server")) is None
    assert read(made(held, kind="client")) is not None


def test_a_tool_name_does_not_make_a_tool_span() -> None:
    held = {**GENAI, "gen_ai.operation.name": "chat", "gen_ai.request.model": "m", ARGS: "{}"}
    reading = read(made(held))
    assert reading is not None
    assert [step.action for step in reading.sightings] == ["m"]


@pytest.mark.parametrize(
    ("reasons", "finish"),
    [
        (["length"], "length"),
        ('["max_tokens"]', "max_tokens"),
        (["stop", "MAX_TOKENS"], "MAX_TOKENS"),
        (("stop",), "stop"),
        ([None], None),
        (None, None),
    ],
)
def test_why_a_response_ended(reasons: object, finish: str | None) -> None:
    held = {"gen_ai.operation.name": "chat", "gen_ai.response.finish_reasons": reasons}
    call = model(held)
    assert (call.action, call.finish) == ("m", finish)
    guard = make_guard()
    outcomes = [guard.observe("run", call).step.outcome is Outcome.TRUNCATED for _ in range(2)]
    assert outcomes == [finish not in ("stop", None)] * 2


@pytest.mark.parametrize(
    ("message", "text", "thought", "acts"),
    [
        pytest.param({"content": "Found."}, "Found.", MISSING, False, id="openai"),
        pytest.param({"content": None, "tool_calls": [{"id": "1", "type": "function",
                      "function": {"name": "find", "arguments": "{}"}}]}, "", MISSING, True,
                     id="only a call"),
        pytest.param({"parts": [{"type": "reasoning", "content": "Well."},
                                {"type": "text", "content": "Found."}]}, "Found.", "Well.", False,
                     id="parts"),
        pytest.param({"content": [{"type": "thinking", "thinking": "Well."},
                                  {"type": "tool_use", "id": "1", "name": "find", "input": {}}]},
                     "", "Well.", True, id="anthropic"),
        pytest.param({}, MISSING, MISSING, False, id="not captured"),
    ],
)  # fmt: skip
def test_what_a_model_said_and_thought(
    message: dict[str, object], text: object, thought: object, *, acts: bool
) -> None:
    output = json.dumps([{"role": "assistant", **message}])
    call = model(
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.output.messages": output,
            "gen_ai.usage.input_tokens": 100,
            "gen_ai.usage.output_tokens": 20,
        }
    )
    assert (call.result, call.thought, call.acts) == (text, thought, acts)
    assert (call.tokens, call.output_tokens) == (120, 20)


def model(held: dict[str, object]) -> Sighting:
    reading = read(made(held, name="chat m"))
    assert reading is not None
    assert reading.role is Role.MODEL
    return reading.sightings[-1]


@pytest.mark.parametrize(
    ("used", "tokens"),
    [
        ({"input_tokens": 3, "output_tokens": 4, "total_tokens": 9}, 7),
        ({"prompt_tokens": 3, "completion_tokens": 4}, 7),
        ({"total_tokens": 9}, 9),
        ({"input_tokens": -1, "output_tokens": "4"}, 0),
        ({}, 0),
    ],
)
def test_tokens(used: dict[str, object], tokens: int) -> None:
    held = {f"gen_ai.usage.{key}": value for key, value in used.items()}
    reading = read(made({"gen_ai.operation.name": "chat", **held}))
    assert reading is not None
    assert reading.sightings[0].tokens == tokens


@pytest.mark.parametrize("base", [OPENINFERENCE, TRACELOOP])
@pytest.mark.parametrize(
    ("given", "args", "call_id"),
    [
        ({"args": [], "kwargs": {"q": "a"}}, {"q": "a"}, None),
        ({"args": ["a"], "kwargs": {}}, {"args": ["a"]}, None),
        ({"kwargs": {"q": "a"}, "other": 1}, {"kwargs": {"q": "a"}, "other": 1}, None),
        ({"input_str": "a", "inputs": None, "kwargs": {"tool_call_id": "c1"}}, "a", "c1"),
        ({"input_str": "a", "inputs": {"q": 1}, "kwargs": None}, {"q": 1}, None),
        ("plain", "plain", None),
    ],
)
def test_arguments_come_out_of_their_envelope(
    base: dict[str, object], given: object, args: object, call_id: str | None
) -> None:
    text = given if isinstance(given, str) else json.dumps(given)
    step = tool({**base, "input.value": text, "traceloop.entity.input": text})
    assert step.args == args
    assert step.call_id == (None if base is OPENINFERENCE else call_id)


LANGCHAIN = {"type": "tool", "content": "found", "tool_call_id": "c1", "status": "success"}


@pytest.mark.parametrize("base", [OPENINFERENCE, TRACELOOP])
@pytest.mark.parametrize(
    ("given", "result", "call_id", "error"),
    [
        ({"type": "tool", "data": LANGCHAIN}, "found", "c1", None),
        ({"output": {"lc": 1, "kwargs": LANGCHAIN}, "kwargs": {"tags": []}}, "found", "c1", None),
        ({"output": "found", "kwargs": {"tags": ["step:3"]}}, "found", None, None),
        ({"type": "tool", "data": {**LANGCHAIN, "status": "error"}}, "found", "c1", "error"),
        ({"id": "c1", "name": "find", "response": {"n": 1}}, {"n": 1}, "c1", None),
        ({"id": 5, "name": "Ann", "response": "yes"}, ..., None, None),
        ({"type": "tool", "data": {"price": 3}}, ..., None, None),
        ([{"text": "a"}, {"type": "text", "text": "b"}], "a\nb", None, None),
        ([{"text": "a"}, {"image": 1}], ..., None, None),
        ([{"text": "a"}, 1], ..., None, None),
        (
            "content='it''s' name='find' tool_call_id='c1' status='error'",
            "it''s",
            "c1",
            "error",
        ),
    ],
)
def test_results_come_out_of_their_envelope(
    base: dict[str, object], given: object, result: object, call_id: str | None, error: str | None
) -> None:
    text = given if isinstance(given, str) else json.dumps(given)
    step = tool({**base, "output.value": text, "traceloop.entity.output": text})
    assert step.result == (given if result is ... else result)
    assert (step.call_id, step.error) == (call_id, error)


def test_openinference_messages_with_content_blocks() -> None:
    base = "llm.input_messages.0.message"
    held = {
        "openinference.span.kind": "AGENT",
        "agent.name": "planner",
        f"{base}.role": "user",
        f"{base}.contents.0.message_content.type": "text",
        f"{base}.contents.0.message_content.text": "find",
        f"{base}.contents.1.message_content.text": "it",
        "llm.input_messages.x.message.role": "user",
        "llm.input_messages.count": 1,
    }
    reading = read(made(held))
    assert reading is not None
    assert reading.sightings[0].args == "find\nit"


def test_haystack_without_replies_or_with_odd_ones_is_still_a_model_call() -> None:
    key = "haystack.agent.step.llm.output"
    for output in ("{}", '{"replies": [1, {"content": [2, {"text": "a"}]}]}', "text"):
        reading = read(made({key: output}, name="haystack.agent.step.llm"))
        assert reading is not None
        assert reading.role is Role.MODEL
    assert read(made({}, name="haystack.agent.step.tool")) is None


@pytest.mark.parametrize("role", ["TOOL", "LLM", "AGENT"])
def test_nobody_is_called_by_an_empty_name(role: str) -> None:
    reading = read(made({"openinference.span.kind": role}, name=".run" if role != "LLM" else ""))
    assert (reading is None) == (role == "TOOL")
    if reading is not None:
        assert reading.agent is None
        assert [step.action for step in reading.sightings] == (["model"] if role == "LLM" else [])


STARTS = {
    ("execute_tool find", "strands.telemetry.tracer"): Start(Role.TOOL, "find"),
    ("invoke_agent planner", "gcp.vertex.agent"): Start(Role.AGENT, "planner"),
    ("invoke_workflow plan", "app"): Start(Role.AGENT, "plan"),
    ("chat", "strands.telemetry.tracer"): Start(Role.MODEL),
    ("chat m", "agent_framework"): Start(Role.MODEL, "m"),
    ("chat", "app"): None,
    ("chat room", "app"): None,
    ("execute_tool (merged)", "gcp.vertex.agent"): None,
    ("GET /chat", "app"): None,
    ("ChatOpenAI.chat", "opentelemetry.instrumentation.langchain"): Start(Role.MODEL),
    ("plan.workflow", "opentelemetry.instrumentation.langchain"): Start(Role.AGENT),
    ("haystack.agent.step.tool", "app"): Start(Role.TOOL),
}


@pytest.mark.parametrize(("name", "scope"), STARTS)
def test_what_a_name_alone_says(name: str, scope: str) -> None:
    assert starts(name, scope, {}) == STARTS[name, scope]


def test_attributes_at_the_start_come_first() -> None:
    assert starts("chat m", "app", GENAI) == Start(Role.TOOL, "find")
    assert starts("execute_tool find", "app", {"gen_ai.operation.name": "other"}) is None
    assert starts("x", "app", {"openinference.span.kind": "LLM"}) == Start(Role.MODEL)
    assert starts("x", "app", {"traceloop.span.kind": "task"}) is None
