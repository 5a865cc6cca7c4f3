"""`opentelemetry-instrument python app.py`: the whole installation, with nothing in the app."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

COMMAND = Path(sys.executable).with_name("opentelemetry-instrument")
needs_distro = pytest.mark.skipif(not COMMAND.exists(), reason="needs opentelemetry-distro")
pytestmark = needs_distro

APP = """
from opentelemetry import trace
import otel_loopguard

@otel_loopguard.tool
def search(query):
    return "nothing found"

with otel_loopguard.run("finder"):
    for _ in range(3):
        search("x")

tracer = trace.get_tracer("their.instrumentation")
said = {
    "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "read",
    "gen_ai.tool.call.arguments": '{"page": 1}', "gen_ai.tool.call.result": "empty page",
}
with tracer.start_as_current_span("invoke_agent reader"):
    for _ in range(3):
        with tracer.start_as_current_span("execute_tool read", attributes=said):
            pass
print("done")
"""

CONFIG = """
file_format: "1.0-rc.1"
tracer_provider:
  processors:
    - simple:
        exporter:
          console: {}
instrumentation/development:
  python:
    loopguard:
"""

SAID_ANYWAY = (
    "OTEL_CONFIG_FILE is set; ignoring configurator kwargs: ['auto_instrumentation_version']\n"
)
SAID_OF_ALL = "Attempting to instrument while already instrumented\n"
"""What OpenTelemetry says itself, whatever the file lists."""

Run = "Callable[..., tuple[list[dict[str, Any]], str]]"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs the app; gives the spans that went to the console, and what was logged."""
    app = tmp_path / "app.py"
    app.write_text(APP)

    def run(*command: str, **environ: str) -> tuple[list[dict[str, Any]], str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("OTEL_")}
        usual = {
            "OTEL_TRACES_EXPORTER": "console",
            "OTEL_METRICS_EXPORTER": "none",
            "OTEL_LOGS_EXPORTER": "none",
            "OTEL_LOOPGUARD_LOG_WARNINGS": "false",
        }
        done = subprocess.run(
            [*(command or (str(COMMAND), sys.executable)), str(app)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**kept, **usual, **environ},
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "done\n" in done.stdout
        return spans_in(done.stdout.replace("done\n", "")), done.stderr

    return run


def spans_in(text: str) -> list[dict[str, Any]]:
    """The JSON objects that the console exporter has written one after the other."""
    decoder, found = json.JSONDecoder(), []
    text = text.strip()
    while text:
        span, end = decoder.raw_decode(text)
        found.append(span)
        text = text[end:].strip()
    return found


def told(spans: list[dict[str, Any]]) -> list[str]:
    """On which spans there is a deadlock."""
    return sorted(
        span["name"]
        for span in spans
        for event in span["events"]
        if event["name"] == "loopguard.deadlock"
    )


def test_the_command_alone_watches_ours_and_theirs_without_noise(run: Run) -> None:
    spans, logged = run()
    assert told(spans) == ["execute_tool search", "loopguard.deadlock"]
    assert logged == ""


def test_our_settings_are_options_of_the_command(run: Run) -> None:
    command = (str(COMMAND), "--loopguard_hard_loop_warning", "4", sys.executable)
    spans, logged = run(*command)
    assert told(spans) == []
    assert logged == ""


def test_opentelemetrys_own_switch_for_instrumentations(run: Run) -> None:
    spans, logged = run(OTEL_PYTHON_DISABLED_INSTRUMENTATIONS="loopguard")
    assert told(spans) == []
    assert logged == ""


@pytest.mark.parametrize(
    "environ", [{"OTEL_LOOPGUARD_DISABLED": "true"}, {"OTEL_SDK_DISABLED": "true"}]
)
def test_switched_off(run: Run, environ: dict[str, str]) -> None:
    spans, logged = run(**environ)
    assert told(spans) == []
    assert logged == ""


def test_without_the_command_the_app_runs_and_is_told_what_is_missing(run: Run) -> None:
    spans, logged = run(sys.executable)
    assert spans == []
    assert logged.count("\n") == 1
    assert "opentelemetry-instrument" in logged


@pytest.mark.skipif(
    not importlib.util.find_spec("opentelemetry.configuration"),
    reason="needs opentelemetry-configuration",
)
class TestDeclarativeConfiguration:
    @pytest.fixture
    def configured(self, run: Run, tmp_path: Path) -> Run:
        def configured(options: str, **environ: str) -> tuple[list[dict[str, Any]], str]:
            file = tmp_path / "otel.yaml"
            file.write_text(CONFIG.rstrip() + options)
            spans, logged = run(OTEL_CONFIG_FILE=str(file), **environ)
            return spans, logged.replace(SAID_ANYWAY, "").replace(SAID_OF_ALL, "")

        return configured

    def test_options(self, configured: Run) -> None:
        spans, logged = configured(" {hard_loop_warning: 4, error_status: none}")
        assert told(spans) == []
        assert logged == ""

    def test_without_options(self, configured: Run) -> None:
        spans, logged = configured(" {}")
        assert told(spans) == ["execute_tool search", "loopguard.deadlock"]
        assert logged == ""

    def test_an_option_that_does_not_exist(self, configured: Run) -> None:
        spans, logged = configured(" {hard_lop_warning: 4, hard_loop_critical: 3}")
        assert "hard_loop_warning" in logged
        errors = [span for span in spans if span["status"]["status_code"] == "ERROR"]
        assert len(errors) == 2

    def test_not_enabled(self, configured: Run) -> None:
        spans, logged = configured(" {enabled: false}")
        assert told(spans) == []
        assert logged == ""

    def test_disabled(self, configured: Run) -> None:
        spans, logged = configured(" {disabled: true}")
        assert told(spans) == []
        assert logged == ""
