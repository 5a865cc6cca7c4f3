"""What a scan says of a recorded run is what was said while it ran."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from examples.offline import AGENTS
from otel_loopguard.cli import main
from otel_loopguard.dialects.otlp import spans
from tests.test_examples import DEMO, TRACES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TOLD = (
    "pattern", "severity", "period", "repeats", "evidence", "suggested_action", "wasted_calls",
    "wasted_tokens", "iteration", "report_no", "first_span_id",
)  # fmt: skip
CONTENT = {"reflection_paralysis", "context_rot", "constraint_drift"}
"""Patterns that nothing can be said of without a model's texts."""
SCENARIOS = [
    *((agent, "loop-8") for agent in AGENTS),
    ("openai_loop", "paging-6+tool=list_orders"),
    ("openai_loop", "loop-8+think"),
    ("anthropic_loop", "cycle-2x8"),
    ("langchain_agent", "ghost-6"),
    ("langchain_agent", "parallel-2x5"),
]


def record(agent: str, scenario: str, capture: str) -> None:
    subprocess.run(
        [sys.executable, DEMO, agent, "--model", scenario],
        env={**os.environ, "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": capture},
        capture_output=True,
        timeout=100,
        check=True,
    )


def live() -> list[dict[str, object]]:
    """What was said while the agent ran, in the order of time."""
    with TRACES.open(encoding="utf-8") as lines:
        found = sorted(spans(lines), key=lambda span: span.end_ns)
    return [of(said, "loopguard.") for span in found for _, said in span.events]


def of(said: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    return {key: said.get(f"{prefix}{key}") for key in TOLD}


def scanned(capsys: pytest.CaptureFixture[str], *files: Path) -> list[dict[str, Any]]:
    main(["scan", "--json", *map(str, files)])
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("capture", ["SPAN_ONLY", "NO_CONTENT"])
@pytest.mark.parametrize(("agent", "scenario"), SCENARIOS)
def test_a_scan_says_what_was_said_live(
    agent: str, scenario: str, capture: str, capsys: pytest.CaptureFixture[str]
) -> None:
    record(agent, scenario, capture)
    (run,) = scanned(capsys, TRACES)
    said = live()
    with_content = capture == "SPAN_ONLY"
    if not with_content:
        said = [each for each in said if each["pattern"] not in CONTENT]
    assert [of(finding) for finding in run["findings"]] == said
    assert said or not scenario.startswith("loop")
    assert with_content or not CONTENT & {finding["pattern"] for finding in run["findings"]}
