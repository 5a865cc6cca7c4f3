"""Every recording of a supported dialect says exactly what its task did, and no more."""

from __future__ import annotations

import pytest

from otel_loopguard.core.model import MISSING, Kind, Source
from otel_loopguard.dialects import Role, read, starts
from tests.dialects import recorded

PARIS, ROME, BOOM = {"city": "Paris"}, {"city": "Rome"}, {"x": 1}
SUNNY, SUNNY_ROME = "sunny in Paris", "sunny in Rome"
HIDDEN = (MISSING, MISSING)

# recording: (arguments, result), whether it has call ids. Each called get_weather four times.
LOOPS = {
    "ag2": (PARIS, SUNNY, True),
    "agent_framework": (PARIS, SUNNY, True),
    "agent_framework_default": (*HIDDEN, True),
    "agent_framework_openinference": (PARIS, SUNNY, True),
    "agno_openinference": (PARIS, SUNNY, False),
    "anthropic_native_runner": (PARIS, SUNNY, True),
    "autogen_agentchat": (*HIDDEN, True),
    "crewai_openinference": (PARIS, SUNNY, False),
    "dspy_openinference": (PARIS, SUNNY, False),
    "google_adk": (*HIDDEN, True),
    "google_adk_latest": (PARIS, {"weather": SUNNY}, True),
    "google_adk_legacy": (PARIS, {"weather": SUNNY}, True),
    "google_adk_openinference": (PARIS, {"weather": SUNNY}, True),
    "haystack": (PARIS, SUNNY, False),
    "haystack_nocontent": (*HIDDEN, False),
    "langchain_genai": (PARIS, SUNNY, True),
    "langchain_openinference": ("Paris", SUNNY, True),
    "langchain_openlit": ("{'city': 'Paris'}", SUNNY, True),
    "langchain_openllmetry": (PARIS, SUNNY, True),
    "openai_agents_openinference": (PARIS, SUNNY, False),
    "openai_agents_openllmetry": (PARIS, SUNNY, False),
    "openai_agents_otel_v2": (PARIS, SUNNY, False),
    "pydantic_ai": (PARIS, SUNNY, True),
    "pydantic_ai_nocontent": (*HIDDEN, True),
    "pydantic_ai_openinference": (PARIS, SUNNY, True),
    "pydantic_ai_v2": (PARIS, SUNNY, True),
    "semantic_kernel": (PARIS, SUNNY, True),
    "semantic_kernel_default": (*HIDDEN, True),
    "semantic_kernel_diag": (*HIDDEN, True),
    "smolagents_openinference": (PARIS, SUNNY, False),
    "strands": (PARIS, SUNNY, True),
    "strands_latest": (PARIS, SUNNY, True),
    "strands_openinference": (PARIS, SUNNY, True),
}
ENDINGS = {"dspy_openinference": "finish", "smolagents_openinference": "final_answer"}


@pytest.mark.parametrize("recording", LOOPS)
def test_a_loop_is_four_equal_calls(recording: str) -> None:
    args, result, has_ids = LOOPS[recording]
    action = "P-get_weather" if recording.startswith("semantic_kernel") else "get_weather"
    seen = recorded.tools(recording)
    ending = [ENDINGS[recording]] if recording in ENDINGS else []
    assert [step.action for step in seen] == [action] * 4 + ending
    calls = seen[:4]
    assert [(step.args, step.result, step.error) for step in calls] == [(args, result, None)] * 4
    ids = {step.call_id for step in calls}
    assert (len(ids), None in ids) == ((4, False) if has_ids else (1, True))
    assert {(step.kind, step.source) for step in calls} == {(Kind.TOOL, Source.SPAN)}


PARALLEL = {
    "ag2_par": ((PARIS, SUNNY), (ROME, SUNNY_ROME)),
    "agent_framework_par": ((PARIS, SUNNY), (ROME, SUNNY_ROME)),
    "agno_openinference_par": ((PARIS, SUNNY), (ROME, SUNNY_ROME)),
    "autogen_agentchat_par": (HIDDEN, HIDDEN),
    "crewai_openinference_par": ((PARIS, SUNNY), (ROME, SUNNY_ROME)),
    "google_adk_openinference_par": ((PARIS, {"weather": SUNNY}), (ROME, {"weather": SUNNY_ROME})),
    "google_adk_par": (HIDDEN, HIDDEN),
    "haystack_par": ((PARIS, SUNNY), (ROME, SUNNY_ROME)),
    "langchain_openinference_par": (("Paris", SUNNY), ("Rome", SUNNY_ROME)),
    "langchain_openllmetry_par": ((PARIS, SUNNY), (ROME, SUNNY_ROME)),
    "openai_agents_openinference_par": ((PARIS, SUNNY), (ROME, SUNNY_ROME)),
    "openai_agents_openllmetry_par": ((PARIS, SUNNY), (ROME, SUNNY_ROME)),
    "openai_agents_otel_v2_par": ((PARIS, SUNNY), (ROME, SUNNY_ROME)),
    "pydantic_ai_par": ((PARIS, SUNNY), (ROME, SUNNY_ROME)),
    "semantic_kernel_par": ((PARIS, SUNNY), (ROME, SUNNY_ROME)),
    "strands_par": ((PARIS, SUNNY), (ROME, SUNNY_ROME)),
}


@pytest.mark.parametrize("recording", PARALLEL)
def test_parallel_calls_are_two_calls(recording: str) -> None:
    seen = [(step.args, step.result) for step in recorded.tools(recording)]
    assert sorted(seen, key=str) == sorted(PARALLEL[recording], key=str)


# recording: (arguments, the class of the error, what it said)
ERRORS = {
    "ag2_error": (BOOM, "ValueError", "kaboom"),
    "agent_framework_error": (BOOM, "ValueError", "kaboom"),
    "agno_openinference_error": (BOOM, "error", "kaboom"),
    "autogen_agentchat_error": (MISSING, "ValueError", "kaboom"),
    "crewai_openinference_error": (BOOM, "ValueError", "kaboom"),
    "google_adk_error": (MISSING, "ValueError", "kaboom"),
    "google_adk_latest_error": (BOOM, "ValueError", "kaboom"),
    "langchain_openinference_error": (BOOM, "ValueError", "kaboom"),
    "langchain_openlit_error": ("{'x': 1}", "ValueError", MISSING),
    "langchain_openllmetry_error": (BOOM, "ValueError", "kaboom"),
    "pydantic_ai_error": (BOOM, "ValueError", "kaboom"),
    "semantic_kernel_error": (BOOM, "ValueError", "kaboom"),
    "strands_error": (BOOM, "ValueError", "Error: kaboom"),
    "strands_latest_error": (BOOM, "ValueError", "kaboom"),
}


@pytest.mark.parametrize("recording", ERRORS)
def test_an_error_is_named_and_its_text_is_the_result(recording: str) -> None:
    (step,) = recorded.tools(recording)
    assert (step.args, step.error, step.result) == ERRORS[recording]


@pytest.mark.parametrize(
    "recording",
    ["haystack_error", *(f"openai_agents_{by}_error" for by in ("otel_v2", "openllmetry"))],
)
def test_an_error_without_a_class_is_an_error(recording: str) -> None:
    (step,) = recorded.tools(recording)
    assert (step.action, step.args, step.error) == ("boom", BOOM, "error")


@pytest.mark.parametrize("recording", ["google_adk_unknown", "strands_unknown"])
def test_an_unknown_tool_with_a_span_is_a_failed_call(recording: str) -> None:
    (step,) = recorded.tools(recording)
    assert step.action == "no_such_tool"
    assert step.error is not None


@pytest.mark.parametrize(
    "recording",
    [
        name
        for name in recorded.ALL
        if name.endswith("_unknown")
        and not name.startswith(
            ("strands", "google_adk_u", "crewai", "semantic", "openai_agents_otel")
        )
    ],
)
def test_an_unknown_tool_without_a_span_is_what_the_model_asked_for(recording: str) -> None:
    assert recorded.tools(recording) == []
    assert [(call.name, call.args) for call in recorded.asked(recording)] == [
        ("no_such_tool", PARIS)
    ]


# Hand-written loops: only the model calls have spans, and the requests carry the results.
@pytest.mark.parametrize(
    "recording",
    [
        "anthropic_genai",
        "anthropic_native",
        "anthropic_openinference",
        "anthropic_openllmetry",
        "openai_genai",
        "openai_openinference",
        "openai_openllmetry",
        "openai_otel_v2_latest",
        "openai_responses_genai",
        "openai_responses_openinference",
        "openai_responses_openllmetry",
    ],
)
def test_a_hand_written_loop_is_four_carried_results(recording: str) -> None:
    assert recorded.tools(recording) == []
    seen = recorded.carried(recording)
    assert [(step.action, step.args, step.result) for step in seen] == [
        ("get_weather", PARIS, SUNNY)
    ] * 4
    assert len({step.call_id for step in seen} - {None}) == 4
    assert len({step.round for step in seen} - {None}) == 4
    assert all(step.start_ns == 0 < step.end_ns for step in seen)
    assert len(recorded.asked(recording)) == 4


@pytest.mark.parametrize(
    "recording",
    [
        "anthropic_genai_par",
        "anthropic_native_par",
        "anthropic_openinference_par",
        "anthropic_openllmetry_par",
        "openai_genai_par",
        "openai_responses_genai_par",
        "openai_responses_openinference_par",
        "openai_responses_openllmetry_par",
    ],
)
def test_carried_parallel_results_share_a_round(recording: str) -> None:
    seen = recorded.carried(recording)
    first, second = ({"city": "x1"}, "sunny in x1"), ({"city": "x2"}, "sunny in x2")
    assert [(step.args, step.result) for step in seen] == [first, second] * 2
    assert [step.round == seen[0].round for step in seen] == [True, True, False, False]
    assert len({step.call_id for step in seen} - {None}) == 4


@pytest.mark.parametrize("recording", ["openai_otel_v2", "pydantic_ai_openlit"])
def test_without_content_or_names_a_hand_written_loop_carries_nothing(recording: str) -> None:
    assert recorded.carried(recording) == []


@pytest.mark.parametrize("recording", LOOPS)
def test_where_tools_have_spans_the_requests_carry_nothing(recording: str) -> None:
    assert recorded.carried(recording) == []


# recording: how many model calls, how many tokens they used
MODELS = {
    "anthropic_native": (5, 100),
    "google_adk": (5, 90),
    "haystack": (5, 90),
    "langchain_openinference": (5, 90),
    "langchain_openllmetry": (5, 90),
    "openai_agents_otel_v2": (5, 90),
    "openai_openinference": (5, 90),
    "openai_openllmetry": (5, 90),
    "openai_otel_v2": (5, 90),
    "pydantic_ai": (5, 90),
    "strands": (5, 90),
}


@pytest.mark.parametrize("recording", MODELS)
def test_model_calls_are_counted_with_their_tokens(recording: str) -> None:
    calls = [each.sightings[-1] for each in recorded.readings(recording) if each.role is Role.MODEL]
    assert (len(calls), sum(call.tokens for call in calls)) == MODELS[recording]
    assert {call.kind for call in calls} == {Kind.MODEL}
    assert all(0 < call.start_ns <= call.end_ns for call in calls)


AGENTS = {
    "agent_framework": ["weather_agent"],
    "crewai_openllmetry": [None, "weather_agent"],
    "langchain_genai": ["weather_agent"],
    "langchain_openinference": ["weather_agent"],
    "langchain_openllmetry": ["weather_agent", "weather_agent"],
    "openai_agents_otel_v2": [None, "weather_agent"],
    "pydantic_ai_v2": ["weather_agent"],
    "strands_openinference": ["weather_agent"],
}


@pytest.mark.parametrize("recording", AGENTS)
def test_agents_are_named(recording: str) -> None:
    seen = [each for each in recorded.readings(recording) if each.role is Role.AGENT]
    assert sorted((each.agent for each in seen), key=str) == sorted(AGENTS[recording], key=str)
    named = [step for each in seen for step in each.sightings]
    assert [step.action for step in named] == [each.agent for each in seen if each.agent]


@pytest.mark.parametrize(
    "recording",
    ["agent_framework", "agno_openinference", "langchain_genai", "strands", "strands_latest"],
)
def test_an_agent_says_what_it_was_asked_and_what_it_answered(recording: str) -> None:
    (agent,) = (each for each in recorded.readings(recording) if each.role is Role.AGENT)
    (step,) = agent.sightings
    assert isinstance(step.args, str)
    assert step.args.startswith("Weather")
    assert isinstance(step.result, str)
    assert step.result.startswith(("It is sunny", "done after"))


def test_conversations_are_known_where_spans_tell_them() -> None:
    named = {each.conversation_id for each in recorded.readings("langchain_openinference")}
    assert named == {"thread-1"}
    ours = [each for each in recorded.readings("langchain_openllmetry") if each.role is Role.TOOL]
    assert {each.conversation_id for each in ours} == {"thread-1"}
    assert None not in {each.conversation_id for each in recorded.readings("pydantic_ai")}


@pytest.mark.parametrize("recording", recorded.ALL)
def test_what_is_said_at_the_start_is_not_taken_back(recording: str) -> None:
    for span in recorded.spans(recording):
        view = span.view
        had = {key: view.attributes[key] for key in span.at_start if key in view.attributes}
        start, reading = starts(view.name, view.scope, had), read(view)
        if start is None:
            late = view.scope == "openinference.instrumentation.langchain"
            assert reading is None or late
        elif reading is not None:
            assert start.role is reading.role
        else:  # a graph's node, or a workflow that failed before it could say so
            assert view.scope == "openlit.instrumentation.langgraph"
