"""Each example runs offline as a user would run it, and its trace says what happened."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from examples.offline import AGENTS, BREAKING, command, environment
from examples.scripted_model import ScriptedModel
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

STOPPED = {"breaking/decorated", "breaking/anthropic_runner"}
"""Examples whose requests to a model, if they make any, nobody changes."""


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
    """A model that reads notes answers; one that does not is made to, or is stopped."""
    scenario = {"nudge": "nudge-12", "break": "loop-12"}[action]
    settings = {"OTEL_LOOPGUARD_ACTION": action, "OTEL_TRACES_EXPORTER": "otlp_json_file"}
    with ScriptedModel(marker="was not made") as model:
        done = subprocess.run(
            command(agent),
            env=environment(model, scenario, **settings),
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    (said,) = (line for line in lines if not line.startswith("{"))
    calls = of_kind([*spans(line for line in lines if line.startswith("{"))], "execute_tool")
    held = [span for span in calls if "loopguard.intervention" in span.attributes]
    assert len(calls) - len(held) == 3
    if action == "nudge":
        assert (said, len(held)) == ("Finished after 4 turns.", 1)
    elif agent in STOPPED:
        assert said.startswith("stopped: hard_loop: search_orders was called 3 times")
        assert len(held) == 3
    else:
        assert (said, len(held)) == ("Finished after 0 turns.", 2)


@pytest.mark.parametrize(
    ("agent", "action", "held"),
    [
        ((), "nudge", 1),
        (("breaking/decorated",), "break", 3),
        (("breaking/decorated",), "shadow", 0),
    ],
)
def test_the_demo_says_what_a_broken_loop_saves(
    agent: tuple[str, ...], action: str, held: int
) -> None:
    done = run(*agent, "--action", action, COLUMNS="160")
    assert done.returncode == 0, done.stderr
    observed, broken = (recorded(TRACES.with_name(f"{name}.jsonl")) for name in ("observe", action))
    fewer = [len(of_kind(observed, k)) - len(of_kind(broken, k)) for k in ("execute_tool", "chat")]
    expected = f"saved {fewer[0] + held} tool calls, {fewer[1]} model calls, {120 * fewer[1]:,} tok"
    assert f"observe -> {action} {expected}" in done.stdout
    assert len(of_kind(observed, "execute_tool")) == 12
    assert done.stdout.count("NOT MADE") == held
    assert done.stdout.count("would not be made") == (9 if action == "shadow" else 0)
    assert any("observe: " in line and f"{action}: " in line for line in done.stdout.splitlines())


@pytest.mark.parametrize(
    ("typed", "ended"),
    [
        ("y\n", "deadlock: 2 payments in 11 steps"),
        ("n\n", "deadlock: 1 payments in 10 steps"),
        ("", "deadlock: 1 payments in 10 steps"),
    ],
    ids=["yes", "no", "closed"],
)
def test_the_example_that_asks_pays_again_with_a_yes_only(typed: str, ended: str) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "asking" / "payments.py"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        input=typed,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == ended
    assert "May payer (" in done.stdout
    assert done.stdout.count("This call was not made: pay was called once") == 2


def test_two_traces_are_one_below_the_other_where_there_is_little_room() -> None:
    done = run("breaking/decorated", "--action", "nudge", COLUMNS="80")
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert not any("observe: " in line and "nudge: " in line for line in lines)
    assert "observe -> nudge saved 9 tool calls" in lines[-2]


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
