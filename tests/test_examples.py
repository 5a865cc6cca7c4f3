"""Each example runs offline as a user would run it, and its trace says what happened."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from examples.offline import AGENTS, BREAKING
from otel_loopguard.dialects.otlp import spans

if TYPE_CHECKING:
    from otel_loopguard.dialects.view import SpanView

ROOT = Path(__file__).resolve().parents[1]
DEMO = ROOT / "examples" / "demo" / "run.py"
TRACES = ROOT / "build" / "demo" / "traces.jsonl"

CONTRACT = {
    "loopguard.args_fingerprint", "loopguard.result_hash", "loopguard.result_length",
    "loopguard.consecutive_same_tool", "loopguard.same_args_seen", "loopguard.repeat_count",
    "loopguard.iteration", "loopguard.outcome", "loopguard.run_id", "loopguard.status",
    "loopguard.deadlock", "loopguard.pattern", "loopguard.severity",
}  # fmt: skip
EXAMPLE_SCENARIOS = [(name, "loop-8", (3, 5)) for name in AGENTS] + [
    ("openai_loop", "loop-12", (3, 5, 10)),
    ("openai_loop", "paging-6+tool=list_orders", ()),
    ("langgraph_graph", "write-read-3", ()),
]


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, DEMO, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def recorded(file: Path = TRACES) -> list[SpanView]:
    with file.open(encoding="utf-8") as lines:
        return list(spans(lines))


@pytest.mark.parametrize(("agent", "scenario", "repeats"), EXAMPLE_SCENARIOS)
def test_an_example_shows_exactly_its_findings(
    agent: str, scenario: str, repeats: tuple[int, ...]
) -> None:
    done = run(agent, "--model", scenario, COLUMNS="120")

    assert done.returncode == 0, done.stderr
    found = [(span, said) for span in recorded() for _, said in span.events]
    assert tuple(said["loopguard.repeats"] for _, said in found) == repeats
    for span, said in found:
        assert span.name == "execute_tool search_orders"
        assert set(span.attributes) >= CONTRACT
        assert said["loopguard.pattern"] == "hard_loop"
        evidence = str(said["loopguard.evidence"]).split(" with ")[0]
        assert evidence in done.stdout
        assert f"wasted {said['loopguard.wasted_calls']} calls" in done.stdout
    assert done.stdout.count("DEADLOCK hard_loop") == len(repeats)
    assert f"deadlock events: {len(repeats)}" in done.stdout
    assert "build/demo/traces.jsonl" in done.stdout


def of_kind(found: list[SpanView], kind: str) -> list[SpanView]:
    return [span for span in found if span.attributes.get("gen_ai.operation.name") == kind]


@pytest.mark.parametrize("action", ["nudge", "break"])
@pytest.mark.parametrize("agent", BREAKING)
def test_an_example_breaks_its_loop(agent: str, action: str) -> None:
    done = run(agent, "--action", action, COLUMNS="160")

    assert done.returncode == 0, done.stderr
    observed, broken = (recorded(TRACES.with_name(f"{name}.jsonl")) for name in ("observe", action))
    assert len(of_kind(observed, "execute_tool")) == 12
    held = [span for span in broken if "loopguard.intervention" in span.attributes]
    assert len(of_kind(broken, "execute_tool")) - len(held) == 3
    assert len(held) == (1 if action == "nudge" else 3)
    said = [line for line in done.stdout.splitlines() if "the agent says" in line]
    assert "Finished after 12 turns." in said[0]
    if action == "nudge":
        assert "Finished after 4 turns." in said[1]
    else:
        assert "stopped: hard_loop: search_orders was called 3 times" in said[1]
        (root,) = of_kind(broken, "invoke_agent")
        assert root.attributes["loopguard.end_reason"] == "deadlock"
    fewer = len(of_kind(observed, "chat")) - len(of_kind(broken, "chat"))
    expected = (
        f"observe -> {action} saved 9 tool calls, {fewer} model calls, {120 * fewer:,} tokens"
    )
    assert expected in done.stdout
    assert done.stdout.count("NOT MADE") == len(held)


@pytest.mark.parametrize(("columns", "beside"), [("160", True), ("80", False)])
def test_two_traces_are_side_by_side_where_there_is_room(columns: str, *, beside: bool) -> None:
    done = run("breaking/decorated", "--action", "shadow", COLUMNS=columns)
    names = [line for line in done.stdout.splitlines() if line.startswith("observe: ")]
    assert done.returncode == 0, done.stderr
    assert ["shadow: 12 tool calls" in line for line in names] == [beside]
    assert "saved 0 tool calls" in done.stdout
    assert done.stdout.count("would not be made") == 9


def test_the_recorded_trace_is_otlp_json() -> None:
    run("decorated")
    for line in TRACES.read_text(encoding="utf-8").splitlines():
        assert json.loads(line)["resourceSpans"][0]["scopeSpans"]


def test_without_a_jaeger_the_demo_says_how_to_start_one() -> None:
    done = run(JAEGER="1", JAEGER_UI="http://127.0.0.1:9")
    assert done.returncode == 1
    assert "make jaeger" in done.stderr


def test_an_agent_that_fails_fails_the_demo() -> None:
    done = run("openai_loop", "--model", "no such scenario")
    assert done.returncode != 0
