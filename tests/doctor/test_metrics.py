"""`doctor --metrics`: rules that watch nothing, and telemetry that was lost."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
import yaml

from otel_loopguard.cli.doctor_metrics import BORN_LATE, judge_metrics
from otel_loopguard.cli.finding import CannotRunError
from otel_loopguard.cli.promql import selectors
from tests.doctor.environments import ROOT
from tests.serving import Answer, Serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from otel_loopguard.cli.finding import Finding

    Serve = Callable[[str], str]

PAGE = """
# HELP loopguard_stuck_runs Runs that are stuck right now
# TYPE loopguard_stuck_runs gauge
loopguard_stuck_runs{gen_ai_agent_name="a",loopguard_severity="critical"} 1
loopguard_deadlocks_total{gen_ai_agent_name="a \\"b\\", c"} 3 # {trace_id="0a"} 1
otelcol_exporter_sent_spans_total{exporter="otlp"} 12
otelcol_exporter_send_failed_spans_total{exporter="otlp/jaeger",service_name="x"} 0
"""


class Metrics(Serving):
    """A page of metrics at /metrics, and nothing else."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def answer(self, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        return Answer(200 if path == "/metrics" else 404, self._text.encode())


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serves a page of metrics: its address."""
    with ExitStack() as running:
        yield lambda text: f"{running.enter_context(Metrics(text)).url}/metrics"


def rule_file(folder: Path, *expressions: str, kind: str = "alert") -> str:
    file = folder / "rules.yml"
    lines = ["groups:", "- name: g", "  rules:"]
    for number, expression in enumerate(expressions):
        lines += [f"  - {kind}: rule{number}", "    expr: |", f"      {expression}"]
    file.write_text("\n".join(lines))
    return str(file)


def said(findings: list[Finding]) -> list[tuple[str, str, bool]]:
    return [(each.id, f"{each.what}; {each.fix}", each.is_problem) for each in findings]


def test_a_rule_whose_series_is_written(serve: Serve, tmp_path: Path) -> None:
    rules = rule_file(tmp_path, 'loopguard_stuck_runs{loopguard_severity="critical"} > 0')
    assert judge_metrics([serve(PAGE)], [rules]) == []


def test_a_rule_for_another_name(serve: Serve, tmp_path: Path) -> None:
    rules = rule_file(tmp_path, "increase(loopguard_deadlock_total[5m]) > 0")
    ((name, text, is_problem),) = said(judge_metrics([serve(PAGE)], [rules]))
    assert (name, is_problem) == ("rule-watches-nothing", True)
    assert "rule0 watches loopguard_deadlock_total, which nobody writes" in text
    assert text.endswith("watch loopguard_deadlocks_total")


def test_a_rule_for_another_label(serve: Serve, tmp_path: Path) -> None:
    rules = rule_file(tmp_path, 'loopguard_stuck_runs{severity="critical"} > 0')
    ((name, text, is_problem),) = said(judge_metrics([serve(PAGE)], [rules]))
    assert (name, is_problem) == ("rule-watches-nothing", True)
    assert "the label severity" in text
    assert text.endswith("ask for loopguard_severity")


def test_a_recorded_series_is_written_by_its_rule(serve: Serve, tmp_path: Path) -> None:
    recorded = rule_file(tmp_path, "loopguard_stuck_runs > 0", kind="record")
    other = tmp_path / "other"
    other.mkdir()
    assert judge_metrics([serve(PAGE)], [recorded, rule_file(other, "rule0 > 0")]) == []


def test_what_our_own_rules_watch_is_known() -> None:
    file = ROOT / "collector-config" / "prometheus" / "rules.yml"
    rules = [
        rule for group in yaml.safe_load(file.read_text())["groups"] for rule in group["rules"]
    ]
    watched = {each.name or "" for rule in rules for each in selectors(rule["expr"])}
    written = {rule.get("record") for rule in rules} | {"up"}
    assert {name for name in watched - written if not BORN_LATE.fullmatch(name)} == set()
    assert len(watched) > 5


def test_who_watches_for_absence_may_find_none(serve: Serve, tmp_path: Path) -> None:
    rules = rule_file(tmp_path, "absent(loopguard_anything)")
    assert judge_metrics([serve(PAGE)], [rules]) == []


def test_a_series_of_ours_that_comes_with_its_first_event(serve: Serve, tmp_path: Path) -> None:
    rules = rule_file(tmp_path, "loopguard_deadlock_events_total > 0")
    ((name, text, is_problem),) = said(judge_metrics([serve(PAGE)], [rules]))
    assert (name, is_problem) == ("not-yet-written", False)
    assert "loopguard_deadlock_events_total" in text


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            'otelcol_exporter_send_failed_spans_total{exporter="otlp/jaeger"} 7',
            "exporter otlp/jaeger",
        ),
        ('otelcol_exporter_enqueue_failed_spans{exporter="x"} 7', "enqueue_failed"),
        ('otelcol_receiver_refused_spans__spans__total{receiver="otlp"} 7', "receiver otlp"),
        ("otelcol_processor_dropped_log_records 7", "dropped_log_records"),
        (
            'otel_sdk_processor_span_processed_total{error_type="queue_full"} 7',
            "error_type queue_full",
        ),
    ],
)
def test_loss_is_named(serve: Serve, line: str, words: str) -> None:
    ((name, text, is_problem),) = said(judge_metrics([serve(PAGE + line + "\n")], []))
    assert (name, is_problem) == ("lost", True)
    assert "is 7" in text
    assert words in text


def test_no_loss_no_word(serve: Serve) -> None:
    fine = 'otel_sdk_processor_span_processed_total 9\notelcol_exporter_queue_size{x="y"} 3\n'
    assert judge_metrics([serve(PAGE + fine)], []) == []


def test_a_value_is_not_that_of_its_exemplar(serve: Serve) -> None:
    line = 'otelcol_processor_dropped_spans_total{x="}"} 0 # {trace_id="0a"} 1 1700000000\n'
    assert judge_metrics([serve(PAGE + line)], []) == []


def test_nothing_answers() -> None:
    ((name, _, is_problem),) = said(judge_metrics(["http://127.0.0.1:9/metrics"], []))
    assert (name, is_problem) == ("metrics-unreachable", True)


def test_something_else_answers(serve: Serve) -> None:
    ((name, text, _),) = said(judge_metrics([serve("<html>hello</html>")], []))
    assert name == "metrics-unreachable"
    assert "neither a Prometheus nor a page of metrics" in text


@pytest.mark.parametrize(
    ("urls", "text"),
    [
        (["http://127.0.0.1:9"], "groups: 7"),
        (["http://127.0.0.1:9"], "groups: [{name: x, rules: [{alert: y}]}]"),
        (["http://127.0.0.1:9"], "a: [b"),
        (["http://127.0.0.1:9"], "- 1"),
        (["ftp://127.0.0.1"], "groups: []"),
        ([], "groups: []"),
    ],
)
def test_what_cannot_be_judged(urls: list[str], text: str, tmp_path: Path) -> None:
    file = tmp_path / "rules.yml"
    file.write_text(text)
    with pytest.raises(CannotRunError):
        judge_metrics(urls, [str(file)])


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CannotRunError, match=r"none\.yml"):
        judge_metrics(["http://127.0.0.1:9"], [str(tmp_path / "none.yml")])
