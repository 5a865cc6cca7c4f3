"""`otel-loopguard doctor` against the real line: collector, Jaeger, Prometheus."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from tests.e2e.backends.collector import COLLECTOR, Collector
from tests.e2e.backends.prometheus import Alertmanager, Pager, Prometheus
from tests.e2e.oncall import JAEGER, doctor, findings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.e2e.backends.jaeger import Jaeger

pytestmark = pytest.mark.e2e


class OtherName(Prometheus):
    """Its rules were written for another name and another label."""

    def command(self) -> tuple[list[str], Mapping[str, str]]:
        command = super().command()
        file = self.folder / "rules.yml"
        text = file.read_text().replace("loopguard_stuck_runs{", "loopguard_stuck_run{")
        file.write_text(text.replace("loopguard_deadlock_logs_total", "agent_loops_total"))
        return command


@pytest.fixture(scope="module")
def collector(jaeger: Jaeger) -> Iterator[Collector]:
    with Collector((COLLECTOR, JAEGER), JAEGER_ENDPOINT=jaeger.otlp_http) as running:
        yield running


def test_the_line_as_we_ship_it(jaeger: Jaeger, collector: Collector) -> None:
    with (
        Pager() as pager,
        Alertmanager(pager) as alertmanager,
        Prometheus(collector, alertmanager) as prometheus,
    ):
        report = doctor(collector.otlp_http, "--metrics", prometheus.url)
        assert report["ok"], findings(report)
        wanted = 'loopguard_deadlocks_total{gen_ai_agent_name="otel-loopguard doctor"}'
        until = time.monotonic() + 30
        while prometheus.total(wanted) != 1 and time.monotonic() < until:
            time.sleep(0.2)
        assert prometheus.total(wanted) == 1
        again = doctor(collector.otlp_http, "--metrics", prometheus.url)
        assert again["ok"], findings(again)
        unborn = findings(again).get("not-yet-written", "")
        assert "loopguard_deadlocks_total" not in unborn
        assert "loopguard_stuck_runs" not in unborn
    shown = jaeger.trace(report["trace_id"])
    assert shown is not None
    assert "loopguard.deadlock" in json.dumps(shown)


def test_rules_for_other_names(collector: Collector) -> None:
    with (
        Pager() as pager,
        Alertmanager(pager) as alertmanager,
        OtherName(collector, alertmanager) as prometheus,
    ):
        doctor(collector.otlp_http)
        until = time.monotonic() + 30
        while not prometheus.query("loopguard_stuck_runs") and time.monotonic() < until:
            time.sleep(0.2)
        report = doctor(collector.otlp_http, "--metrics", prometheus.url)
    said = findings(report)["rule-watches-nothing"]
    assert "AgentStuck watches loopguard_stuck_run, which nobody writes" in said
    assert "watch loopguard_stuck_runs" in said
    assert "agent_loops_total" in said


def test_what_the_collector_lost_is_named(tmp_path: Path) -> None:
    hopeless = tmp_path / "hopeless.yaml"
    hopeless.write_text(
        "exporters:\n"
        "  otlp_http/nowhere:\n"
        "    endpoint: http://127.0.0.1:9\n"
        "    retry_on_failure: {enabled: false}\n"
        "    sending_queue: {enabled: false}\n"
        "service:\n"
        "  pipelines:\n"
        "    traces/nowhere: {receivers: [forward/traces], exporters: [otlp_http/nowhere]}\n"
    )
    with Collector((COLLECTOR, hopeless)) as collector:
        page = f"http://127.0.0.1:{collector.at.own}/metrics"
        doctor(collector.otlp_http)
        said = ""
        until = time.monotonic() + 60
        while "otlp_http/nowhere" not in said and time.monotonic() < until:
            said = findings(doctor(collector.otlp_http, "--metrics", page)).get("lost", "")
    assert "otelcol_exporter_send_failed_spans" in said
    assert "exporter otlp_http/nowhere" in said


def test_jaeger_alone_takes_no_metrics(jaeger: Jaeger) -> None:
    for endpoint, protocol in (
        (jaeger.otlp_http, "http/protobuf"),
        (f"http://{jaeger.otlp_grpc.removeprefix('http://')}", "grpc"),
    ):
        report = doctor(endpoint, protocol=protocol)
        said = findings(report)
        assert "metrics-refused" in said, said
        assert "OTEL_METRICS_EXPORTER=none" in said["metrics-refused"]
        assert "traces-refused" not in said
