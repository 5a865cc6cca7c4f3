"""What the telemetry says: names, types and counts that users build alerts on."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry._logs import SeverityNumber
from opentelemetry.trace import SpanKind, Status, StatusCode

import otel_loopguard
from otel_loopguard.instrumentation.models import open_model
from tests.signals import Signals, attributes

QUERY = "the needle in the haystack"
PAGE = "a page without any needle"

STEP = {
    "loopguard.args_fingerprint": str,
    "loopguard.consecutive_same_tool": int,
    "loopguard.iteration": int,
    "loopguard.outcome": str,
    "loopguard.repeat_count": int,
    "loopguard.result_hash": str,
    "loopguard.result_length": int,
    "loopguard.run_id": str,
    "loopguard.same_args_seen": bool,
    "loopguard.status": str,
}
IDENTITY = {"gen_ai.agent.name": str, "gen_ai.operation.name": str, "gen_ai.tool.name": str}
MARKED = {"loopguard.deadlock": bool, "loopguard.pattern": str, "loopguard.severity": str}
EVENT = {
    "gen_ai.agent.name": str,
    "gen_ai.tool.name": str,
    "loopguard.args_fingerprint": str,
    "loopguard.evidence": str,
    "loopguard.finding_id": str,
    "loopguard.first_span_id": str,
    "loopguard.iteration": int,
    "loopguard.pattern": str,
    "loopguard.period": int,
    "loopguard.recovery_level": int,
    "loopguard.repeats": int,
    "loopguard.report_no": int,
    "loopguard.run_id": str,
    "loopguard.severity": str,
    "loopguard.suggested_action": str,
    "loopguard.wasted_calls": int,
    "loopguard.wasted_seconds": float,
    "loopguard.wasted_tokens": int,
}
AGENT = {
    "gen_ai.agent.name": str,
    "gen_ai.operation.name": str,
    "loopguard.end_reason": str,
    "loopguard.iteration": int,
    "loopguard.run_id": str,
}


@otel_loopguard.tool
def search(query: str) -> str:
    return PAGE


@otel_loopguard.tool
def read(page: int) -> str:
    return f"page {page + 1}: something else each time"


@pytest.fixture
def signals() -> Signals:
    return Signals()


def types(of: Any) -> dict[str, type]:
    return {name: type(value) for name, value in attributes(of).items()}


def loop(times: int, agent: str = "finder") -> None:
    with otel_loopguard.run(agent):
        for _ in range(times):
            search(QUERY)


def test_a_tool_span_says_what_the_step_was(signals: Signals) -> None:
    with signals.instrumented():
        loop(2)
    first, second = signals.named("execute_tool search")
    assert types(first) == types(second) == {**STEP, **IDENTITY}
    said = attributes(second)
    assert first.kind is SpanKind.INTERNAL
    assert said["gen_ai.operation.name"] == "execute_tool"
    assert said["gen_ai.tool.name"] == "search"
    assert said["gen_ai.agent.name"] == "finder"
    assert said["loopguard.result_length"] == len(PAGE)
    assert said["loopguard.outcome"] == "ok"
    for name in ("args_fingerprint", "result_hash", "run_id"):
        assert len(said[f"loopguard.{name}"]) == 16
        int(said[f"loopguard.{name}"], 16)
    counted = ("consecutive_same_tool", "iteration", "repeat_count", "same_args_seen", "status")
    assert [
        [attributes(span)[f"loopguard.{name}"] for name in counted] for span in (first, second)
    ] == [
        [1, 1, 1, False, "healthy"],
        [2, 2, 2, True, "repeating"],
    ]


def test_digests_are_equal_under_the_same_key_only(signals: Signals) -> None:
    with signals.instrumented():
        loop(1)
    other = Signals()
    with other.instrumented():
        loop(1)
    third = Signals()
    with third.instrumented(hash_key="another key"):
        loop(1)
    one, two, three = (
        attributes(each.span("execute_tool search"))["loopguard.args_fingerprint"]
        for each in (signals, other, third)
    )
    assert one == two != three


def test_a_masked_digest_shows_only_where_masking_changed_something(signals: Signals) -> None:
    results = iter([f"done at 2026-11-30T10:00:0{n}Z by worker 7" for n in range(2)])

    @otel_loopguard.tool
    def status() -> str:
        return next(results)

    with signals.instrumented(), otel_loopguard.run("finder"):
        status()
        status()
    first, second = signals.named("execute_tool status")
    assert "loopguard.result_masked_hash" not in attributes(first)
    assert types(second)["loopguard.result_masked_hash"] is str


def test_the_third_equal_step_warns_and_the_fifth_is_critical(
    signals: Signals, caplog: pytest.LogCaptureFixture
) -> None:
    with signals.instrumented(), caplog.at_level(logging.WARNING, "otel_loopguard"):
        loop(6)
    spans = signals.named("execute_tool search")
    assert [[event.name for event in span.events] for span in spans] == [
        [], [], ["loopguard.deadlock"], [], ["loopguard.deadlock"], []
    ]  # fmt: skip
    assert [span.status.status_code for span in spans] == [
        *[StatusCode.UNSET] * 4, StatusCode.ERROR, StatusCode.UNSET
    ]  # fmt: skip
    assert spans[4].status.description == "deadlock: hard_loop"
    assert types(spans[2]) == {**STEP, **IDENTITY, **MARKED}
    assert types(spans[2].events[0]) == EVENT
    warning, critical = (attributes(event) for event in signals.events)
    assert warning == attributes(spans[2].events[0])
    assert warning["loopguard.pattern"] == "hard_loop"
    assert (warning["loopguard.severity"], critical["loopguard.severity"]) == (
        "warning",
        "critical",
    )
    assert (warning["loopguard.repeats"], critical["loopguard.repeats"]) == (3, 5)
    assert (warning["loopguard.report_no"], critical["loopguard.report_no"]) == (1, 2)
    assert warning["loopguard.finding_id"] == critical["loopguard.finding_id"]
    assert warning["loopguard.first_span_id"] == trace.format_span_id(spans[0].context.span_id)
    assert warning["loopguard.wasted_calls"] == 2
    assert warning["loopguard.recovery_level"] == 1
    assert len([r for r in caplog.records if "hard_loop" in r.message]) == 2
    assert {record.levelname for record in caplog.records} == {"WARNING"}


def test_nothing_that_is_told_holds_content(
    signals: Signals, caplog: pytest.LogCaptureFixture
) -> None:
    with signals.instrumented(emit="span,metric,log"), caplog.at_level(logging.DEBUG):
        loop(6)
    told = [str(span.to_json()) for span in signals.spans]
    told += [str(record.to_json()) for record in signals.logs] + [caplog.text]
    assert not [text for text in told if QUERY in text or PAGE in text]


def test_content_is_told_where_the_official_setting_asks_for_it(signals: Signals) -> None:
    @otel_loopguard.tool
    def fail(query: str) -> str:
        raise ValueError(query)

    with signals.instrumented(capture_content="SPAN_ONLY"), otel_loopguard.run("finder"):
        search(QUERY)
        with pytest.raises(ValueError, match=QUERY):
            fail(QUERY)
    said = attributes(signals.span("execute_tool search"))
    assert said["gen_ai.tool.call.arguments"] == f'{{"query":"{QUERY}"}}'
    assert said["gen_ai.tool.call.result"] == PAGE
    assert "gen_ai.tool.call.result" not in attributes(signals.span("execute_tool fail"))


@pytest.mark.parametrize("delta", [False, True])
def test_one_utterance_is_one_event_and_one_increment(*, delta: bool) -> None:
    signals = Signals(delta=delta)
    with signals.instrumented(flush=False):  # what is flushed is not there to be read
        loop(9)
        assert signals.severities == ["warning", "critical"]
        assert signals.points("loopguard.deadlocks") == {
            ("finder", "hard_loop", "warning"): 1,
            ("finder", "hard_loop", "critical"): 1,
        }
        loop(10)
        assert len(signals.events) == 5  # the last one is for twice the repeats
        now = signals.points("loopguard.deadlocks")
        assert sum(now.values()) == (3 if delta else 5)


def test_stuck_runs_go_up_move_and_come_back(signals: Signals) -> None:
    def stuck() -> dict[str, int]:
        series = signals.points("loopguard.stuck_runs")
        return {str(labels[2]): value for labels, value in series.items()}

    with signals.instrumented():
        with otel_loopguard.run("finder"):
            search(QUERY)
            search(QUERY)
            assert stuck() == {}
            search(QUERY)
            assert stuck() == {"warning": 1}
            search(QUERY)
            search(QUERY)
            assert stuck() == {"warning": 0, "critical": 1}
            for page in range(4):
                read(page)
            assert stuck() == {"warning": 0, "critical": 1}
            read(5)
            assert stuck() == {"warning": 0, "critical": 0}
            assert attributes(signals.named("execute_tool read")[-1])["loopguard.status"] == (
                "healthy"
            )
        loop(3)
        assert stuck() == {"warning": 0, "critical": 0}
    assert set(signals.points("loopguard.stuck_runs")) == {
        ("finder", "hard_loop", "warning"),
        ("finder", "hard_loop", "critical"),
    }


def test_a_stuck_run_leaves_the_gauge_when_it_expires(signals: Signals) -> None:
    with signals.instrumented(run_ttl_s=60) as wired, otel_loopguard.run("finder"):
        for _ in range(3):
            search(QUERY)
        end_ns = signals.named("execute_tool search")[-1].end_time
        wired.pipeline.expire(end_ns + 59 * 10**9)
        assert list(signals.points("loopguard.stuck_runs").values()) == [1]
        wired.pipeline.expire(end_ns + 61 * 10**9)
        assert list(signals.points("loopguard.stuck_runs").values()) == [0]
        assert signals.points("loopguard.iterations") == {("finder", "deadlock"): 3}


def test_iterations_and_interventions(signals: Signals) -> None:
    with signals.instrumented():
        with pytest.raises(TypeError), otel_loopguard.run("finder"):
            read("no number")  # type: ignore[arg-type]
        assert signals.points("loopguard.interventions") == {(): 0}
        loop(2)
        loop(4)
        assert signals.points("loopguard.iterations") == {
            ("finder", "error"): 1,
            ("finder", "closed"): 2,
            ("finder", "deadlock"): 4,
        }


def test_all_that_starts_in_a_stuck_run_says_so(signals: Signals) -> None:
    tracer = signals.tracer_provider.get_tracer("somebody.else")

    @otel_loopguard.tool
    def fetch(page: int) -> str:
        with tracer.start_as_current_span(f"GET {page}"):
            return f"page {page}"

    with signals.instrumented():
        with otel_loopguard.run("finder"):
            fetch(1)
            for _ in range(3):
                search(QUERY)
            fetch(2)
            with otel_loopguard.run("helper"):
                pass
        fetch(3)
    status = {span.name: attributes(span).get("loopguard.status") for span in signals.spans}
    assert status["GET 1"] is None
    assert status["GET 2"] == status["invoke_agent helper"] == "deadlocked"
    assert status["GET 3"] is None


def test_the_agent_span_has_the_totals(signals: Signals) -> None:
    with signals.instrumented():
        loop(2)
        loop(3)
    calm, stuck = signals.named("invoke_agent finder")
    assert types(calm) == AGENT
    assert attributes(calm)["loopguard.iteration"] == 2
    assert attributes(calm)["loopguard.end_reason"] == "closed"
    assert types(stuck) == {
        **AGENT,
        "loopguard.status": str,
        "loopguard.wasted_calls": int,
        "loopguard.wasted_seconds": float,
        "loopguard.wasted_tokens": int,
    }
    assert attributes(stuck)["loopguard.status"] == "deadlocked"
    assert attributes(stuck)["loopguard.wasted_calls"] == 2


@pytest.mark.parametrize(
    ("error_status", "expected"), [("critical", [5]), ("warning", [3, 5]), ("none", [])]
)
def test_from_which_severity_on_a_span_is_an_error(
    signals: Signals, error_status: str, expected: list[int]
) -> None:
    with signals.instrumented(error_status=error_status):
        loop(6)
    spans = signals.named("execute_tool search")
    errors = [n for n, span in enumerate(spans, 1) if span.status.status_code is StatusCode.ERROR]
    assert errors == expected


def test_the_status_that_a_tool_has_set_stays(signals: Signals) -> None:
    statuses = iter([Status(StatusCode.OK), Status(StatusCode.ERROR, "mine")] * 3)

    @otel_loopguard.tool
    def check(query: str) -> str:
        trace.get_current_span().set_status(next(statuses))
        return PAGE

    with signals.instrumented(error_status="warning"), otel_loopguard.run("finder"):
        for _ in range(6):
            check(QUERY)
    spans = signals.named("execute_tool check")
    assert [span.status.description for span in spans] == [None, "mine"] * 3
    assert len(signals.events) == 2


@pytest.mark.parametrize("emit", ["span", "metric", "log", "span,metric", "span,metric,log"])
def test_a_deadlock_is_told_where_the_setting_says(signals: Signals, emit: str) -> None:
    with signals.instrumented(emit=emit):
        loop(5)
        counted = signals.points("loopguard.deadlocks")
        known = signals.points("loopguard.interventions")
    assert len(signals.events) == (2 if "span" in emit else 0)
    assert sum(counted.values()) == (2 if "metric" in emit else 0)
    assert known == ({(): 0} if "metric" in emit else {})
    assert len(signals.logs) == (2 if "log" in emit else 0)
    marks = [span for span in signals.spans if "loopguard.deadlock" in attributes(span)]
    assert len(marks) == (2 if "span" in emit else 0)
    assert "loopguard.iteration" in attributes(signals.named("execute_tool search")[0])


def test_the_log_record(signals: Signals) -> None:
    with signals.instrumented(emit="span,log"):
        loop(5)
    spans = [signals.named("execute_tool search")[n] for n in (2, 4)]
    for record, span in zip(signals.logs, spans, strict=True):
        told = record.log_record
        assert told.event_name == "loopguard.deadlock"
        assert told.trace_id == span.context.trace_id
        assert told.span_id == span.context.span_id
        assert attributes(told) == attributes(span.events[0])
    numbers = [record.log_record.severity_number for record in signals.logs]
    assert numbers == [SeverityNumber.WARN, SeverityNumber.ERROR]
    assert [record.log_record.severity_text for record in signals.logs] == ["WARN", "ERROR"]


def test_no_log_line_where_the_setting_says_so(
    signals: Signals, caplog: pytest.LogCaptureFixture
) -> None:
    with signals.instrumented(log_warnings=False):
        loop(5)
    assert caplog.messages == []
    assert len(signals.events) == 2


def test_an_event_lies_within_its_span(signals: Signals) -> None:
    with signals.instrumented():
        loop(3)
    span = signals.named("execute_tool search")[-1]
    (event,) = span.events
    assert span.start_time <= event.timestamp <= span.end_time


def test_our_scope_has_a_version(signals: Signals) -> None:
    with signals.instrumented():
        loop(1)
    scopes = {
        (s.instrumentation_scope.name, s.instrumentation_scope.version) for s in signals.spans
    }
    assert scopes == {("otel_loopguard", otel_loopguard.__version__)}


def test_a_span_of_a_model_call_says_how_its_run_is_doing(signals: Signals) -> None:
    with signals.instrumented() as wired, otel_loopguard.run("finder"):
        call = open_model(wired.pipeline, "m-1", "somebody")
        assert call is not None
        call.finish()
    said = types(signals.span("chat m-1"))
    told = {name for name in said if name.startswith("loopguard.")}
    assert told == {"loopguard.iteration", "loopguard.run_id", "loopguard.status"}


def test_steps_that_push_a_run_out_of_memory_tell_of_its_end(signals: Signals) -> None:
    with signals.instrumented(max_runs=1), otel_loopguard.run("one"):
        search(QUERY)
        with otel_loopguard.run("two"):
            search(QUERY)
        assert signals.points("loopguard.iterations")[("one", "evicted")] == 1
