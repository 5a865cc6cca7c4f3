"""The files of collector-config/ ask for what somebody writes; what needs programs is in e2e."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
CONFIG = ROOT / "collector-config"
METERS = ROOT / "otel_loopguard" / "sdk" / "meters.py"
BACKENDS = sorted((CONFIG / "backends").iterdir())
CONTRACT = (ROOT / "README.md").read_text("utf-8").partition("## What the telemetry says")[2]


def test_the_dashboard_is_what_its_script_writes() -> None:
    encoder = pytest.importorskip(
        "grafana_foundation_sdk.cog.encoder", reason="Grafana's SDK needs Python 3.11"
    )
    script = runpy.run_path(str(CONFIG / "grafana" / "dashboard.py"))
    made = json.loads(encoder.JSONEncoder().encode(script["build"]()))
    assert json.loads((CONFIG / "grafana" / "loopguard.json").read_text("utf-8")) == made, (
        "run python collector-config/grafana/dashboard.py"
    )


def test_alerts_and_dashboard_ask_only_for_series_that_somebody_writes() -> None:
    rules = (CONFIG / "prometheus" / "rules.yml").read_text("utf-8")
    board = (CONFIG / "grafana" / "loopguard.json").read_text("utf-8")
    collector = yaml.safe_load((CONFIG / "collector.yaml").read_text("utf-8"))
    written = re.findall(r'"(loopguard\.\w+)"', METERS.read_text("utf-8"))
    written += [name for kind in collector["connectors"]["count"].values() for name in kind]
    series = {name.replace(".", "_") for name in written}
    recorded = set(re.findall(r"record: (\S+)", rules))
    labels = {"loopguard_pattern", "loopguard_severity", "loopguard_outcome"}

    asked = set(re.findall(r"\b(loopguard[_:][a-z][\w:]+)", rules + board)) - labels
    unknown = {
        name
        for name in asked - recorded
        if re.sub(r"_(total|bucket|count|sum)$", "", name) not in series
    }
    assert unknown == set()
    assert {"loopguard_stuck_runs", "loopguard_deadlock_events_total"} <= asked


@pytest.mark.parametrize("file", BACKENDS, ids=lambda file: file.name)
def test_a_backend_is_asked_only_for_what_the_contract_names(file: Path) -> None:
    text = file.read_text("utf-8")
    if file.suffix == ".json":
        assert json.loads(text)
    elif file.suffix == ".yaml":
        assert yaml.safe_load(text)
    named = set(re.findall(r"\b((?:loopguard|gen_ai)\.[a-z_.]+[a-z])", text)) - {"loopguard.json"}
    assert named or file.suffix != ".md"
    known = {name for name in named if name in CONTRACT or f"`.{name.split('.')[-1]}`" in CONTRACT}
    # Grafana and Datadog hang the name of a field on a label.
    assert named - known <= {"gen_ai.agent.name.name"}


@pytest.mark.parametrize("file", [each for each in BACKENDS if each.suffix == ".md"])
def test_a_page_names_files_that_are_there(file: Path) -> None:
    text = file.read_text("utf-8")
    named = re.findall(r"\b((?:exporters|backends|grafana|prometheus)/[\w.-]+\w)", text)
    assert named
    for name in named:
        assert (CONFIG / name).is_file(), name


def read(file: str) -> dict[str, str]:
    """The variables that a configuration reads, with their defaults."""
    text = (CONFIG / file).read_text("utf-8")
    return dict(re.findall(r"\$\{env:(\w+)(?::-([^}]*))?\}", text))


@pytest.mark.parametrize("file", ["collector.yaml", "agent.yaml"])
def test_a_collector_says_what_it_reads(file: str) -> None:
    rows = re.findall(
        r"^# \| (LOOPGUARD_\w+) +\| (\S+|\(.*?\)) +\|", (CONFIG / file).read_text(), re.MULTILINE
    )
    told = {name: "" if default == "(must be set)" else default for name, default in rows}
    queue = {"LOOPGUARD_QUEUE": read("exporters/jaeger.yaml")["LOOPGUARD_QUEUE"]}
    assert told == read(file) | queue
