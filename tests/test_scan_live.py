"""A run of our own hooks, recorded in this process, says the same when it is scanned."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import otel_loopguard
from examples.scripted_model import ScriptedModel
from otel_loopguard.cli import main

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

openai = pytest.importorskip("openai")

PAGE = "The page lists the opening hours of all branches, sorted by city. " * 8
TOOL = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}


@otel_loopguard.tool
def search(query: str) -> str:
    return PAGE


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    otel_loopguard.instrument(tracer_provider=provider)
    yield exporter
    otel_loopguard.uninstrument()


def live_and_scanned(
    exporter: InMemorySpanExporter, path: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[list[object], list[object], list[dict[str, Any]]]:
    spans = exporter.get_finished_spans()
    file = path / "spans.jsonl"
    lines = [" ".join(span.to_json(indent=None).split("\n")) for span in spans]
    file.write_text("\n".join(lines), encoding="utf-8")
    main(["scan", "--json", str(file)])
    reports = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    said = [
        (event.attributes["loopguard.run_id"], event.attributes["loopguard.evidence"])
        for span in spans
        for event in span.events
    ]
    found = [(each["run"], each["evidence"]) for report in reports for each in report["findings"]]
    return said, found, reports


def test_agents_inside_of_agents(
    exporter: InMemorySpanExporter, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    @otel_loopguard.agent(name="writer")
    def writer(task: str) -> str:
        for _ in range(3):
            search(task)
        return "done"

    with otel_loopguard.run("boss"):
        for _ in range(4):
            writer("the same")
    said, found, _ = live_and_scanned(exporter, tmp_path, capsys)
    assert said
    assert sorted(map(str, found)) == sorted(map(str, said))


def test_what_the_user_says_starts_the_counts_anew(
    exporter: InMemorySpanExporter, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Twice the same call, and after another question twice again: that is no loop."""
    messages: list[Any] = []
    with ScriptedModel() as model, otel_loopguard.run("chat"):
        client = openai.OpenAI(base_url=f"{model.base_url}/v1", api_key="unused")
        for question in ("first", "second"):
            messages.append({"role": "user", "content": question})
            while True:
                answer = client.chat.completions.create(
                    model="loop-2", messages=messages, tools=[TOOL]
                )
                message = answer.choices[0].message
                messages.append(message.model_dump(exclude_none=True))
                if not message.tool_calls:
                    break
                messages += [
                    {"role": "tool", "tool_call_id": call.id, "content": PAGE}
                    for call in message.tool_calls
                ]
        client.close()
    said, found, reports = live_and_scanned(exporter, tmp_path, capsys)
    assert said == found == []
    (report,) = reports
    spans = exporter.get_finished_spans()
    assert sum(bool(span.attributes.get("loopguard.user_turn")) for span in spans) == 1
    assert report["steps"] == len([s for s in spans if s.name.startswith(("chat", "exec"))]) + 1
