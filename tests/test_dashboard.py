"""The Grafana dashboard is what its script makes, and asks for series that somebody writes."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

CONFIG = Path(__file__).resolve().parents[1] / "collector-config"
METERS = Path(__file__).resolve().parents[1] / "otel_loopguard" / "sdk" / "meters.py"


def test_the_file_is_what_the_script_writes() -> None:
    script = runpy.run_path(str(CONFIG / "grafana" / "dashboard.py"))
    made = json.loads(JSONEncoder().encode(script["build"]()))
    assert json.loads((CONFIG / "grafana" / "loopguard.json").read_text("utf-8")) == made, (
        "run python collector-config/grafana/dashboard.py"
    )


def test_alerts_and_dashboard_ask_only_for_series_that_somebody_writes() -> None:
    rules = (CONFIG / "prometheus" / "rules.yml").read_text("utf-8")
    board = (CONFIG / "grafana" / "loopguard.json").read_text("utf-8")
    collector = (CONFIG / "collector.yaml").read_text("utf-8")
    written = re.findall(r'"(loopguard\.\w+)"', METERS.read_text("utf-8"))
    written += re.findall(r"^      (loopguard\.\w+):$", collector, re.MULTILINE)
    series = {name.replace(".", "_") for name in written}
    recorded = set(re.findall(r"record: (\S+)", rules))

    asked = re.findall(r"\b(loopguard[_:][\w:]+)", rules + board)
    # Labels and the settings that runbooks name are no series.
    asked = {name for name in asked if not re.match(r"loopguard_(pattern|severity|outcome)$", name)}
    unknown = {
        name
        for name in asked - recorded
        if re.sub(r"_(total|bucket|count|sum)$", "", name) not in series
    }
    assert unknown - {"loopguard_"} == set()
    assert {"loopguard_stuck_runs", "loopguard_deadlock_events_total"} <= asked
