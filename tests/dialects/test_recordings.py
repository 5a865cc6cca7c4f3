"""Every recording of a supported dialect says exactly what its task did, and no more."""

from __future__ import annotations

import pytest

from otel_loopguard.core.model import MISSING, Kind, Source
from tests.dialects import recorded

PARIS, ROME = {"city": "Paris"}, {"city": "Rome"}
SUNNY, SUNNY_ROME = "sunny in Paris", "sunny in Rome"
ADK_SUNNY = {"weather": SUNNY}

# recording: (the tool, its arguments, its result, whether it has call ids). Each looped four times.
LOOPS = {
    "ag2": ("get_weather", PARIS, SUNNY, True),
    "agent_framework": ("get_weather", PARIS, SUNNY, True),
    "agent_framework_default": ("get_weather", MISSING, MISSING, True),
    "autogen_agentchat": ("get_weather", MISSING, MISSING, True),
    "google_adk": ("get_weather", MISSING, MISSING, True),
    "google_adk_latest": ("get_weather", PARIS, ADK_SUNNY, True),
    "google_adk_legacy": ("get_weather", PARIS, ADK_SUNNY, True),
    "langchain_openlit": ("get_weather", "{'city': 'Paris'}", SUNNY, True),
    "openai_agents_openllmetry": ("get_weather", PARIS, SUNNY, False),
    "openai_agents_otel_v2": ("get_weather", PARIS, SUNNY, False),
    "pydantic_ai": ("get_weather", PARIS, SUNNY, True),
    "pydantic_ai_nocontent": ("get_weather", MISSING, MISSING, True),
    "pydantic_ai_v2": ("get_weather", PARIS, SUNNY, True),
    "semantic_kernel": ("P-get_weather", PARIS, SUNNY, True),
    "semantic_kernel_default": ("P-get_weather", MISSING, MISSING, True),
    "semantic_kernel_diag": ("P-get_weather", MISSING, MISSING, True),
    "strands": ("get_weather", PARIS, SUNNY, True),
    "strands_latest": ("get_weather", PARIS, SUNNY, True),
}


@pytest.mark.parametrize("recording", LOOPS)
def test_loop_shows_four_equal_calls(recording: str) -> None:
    tool, args, result, has_ids = LOOPS[recording]
    seen = recorded.tools(recording)
    assert [(step.action, step.args, step.result, step.error) for step in seen] == [
        (tool, args, result, None)
    ] * 4
    ids = [step.call_id for step in seen]
    assert len(set(ids)) == (4 if has_ids else 1)
    assert (None not in ids) == has_ids
    assert {(step.kind, step.source) for step in seen} == {(Kind.TOOL, Source.SPAN)}
