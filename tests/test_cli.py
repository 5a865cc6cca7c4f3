"""`otel-loopguard tree`: what it prints, what it returns, what it refuses."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from otel_loopguard.cli import main
from otel_loopguard.dialects.otlp import BadLineError, spans

if TYPE_CHECKING:
    from pathlib import Path


def attribute(key: str, value: object) -> dict[str, Any]:
    kind = {bool: "boolValue", int: "intValue", float: "doubleValue"}.get(
        type(value), "stringValue"
    )
    return {"key": key, "value": {kind: str(value) if kind == "intValue" else value}}


def span(span_id: str, name: str, parent: str = "", **more: Any) -> dict[str, Any]:
    return {
        "traceId": "a" * 32,
        "spanId": span_id,
        "parentSpanId": parent,
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(int(span_id, 16)),
        "endTimeUnixNano": str(int(span_id, 16) + 2_000_000),
        **more,
    }


def batch(*members: dict[str, Any]) -> str:
    scope = {"scope": {"name": "s"}, "spans": list(members)}
    return json.dumps({"resourceSpans": [{"resource": {}, "scopeSpans": [scope]}]})


EVENT = {
    "name": "loopguard.deadlock",
    "attributes": [
        attribute("loopguard.pattern", "hard_loop"),
        attribute("loopguard.severity", "critical"),
        attribute("loopguard.evidence", "it came again"),
        attribute("loopguard.suggested_action", "inject_correction"),
        attribute("loopguard.wasted_calls", 4),
        attribute("loopguard.wasted_tokens", 70),
        attribute("loopguard.wasted_seconds", 1.25),
    ],
}
LOOPING = batch(
    span("02", "execute_tool search", "01", events=[EVENT], status={"code": 2}),
    span("01", "invoke_agent shop", attributes=[attribute("loopguard.status", "deadlocked")]),
)


def write(path: Path, *lines: str) -> str:
    file = path / "traces.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    return str(file)


def test_the_tree_marks_the_loop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tree", write(tmp_path, LOOPING), "--width", "100"]) == 1
    out = capsys.readouterr().out
    lines = [line.strip(" │├└─") for line in out.splitlines()]
    assert lines[1].startswith("invoke_agent shop  2.0 ms  deadlocked")
    assert lines[2].startswith("execute_tool search  2.0 ms")
    assert lines[3] == "DEADLOCK hard_loop (critical): it came again"
    assert "wasted 4 calls, 70 tokens, 1.2 s; try inject_correction" in out
    assert "traces: 1, spans: 2, deadlock events: 1" in out


def test_a_healthy_trace_returns_zero(tmp_path: Path) -> None:
    assert main(["tree", write(tmp_path, batch(span("01", "a")), "")]) == 0


def test_a_child_without_its_parent_stands_at_the_top(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["tree", write(tmp_path, batch(span("02", "orphan", "09")))])
    assert "└── orphan" in capsys.readouterr().out


def test_a_picture_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    picture = tmp_path / "tree.svg"
    main(["tree", write(tmp_path, LOOPING), "--svg", str(picture)])
    drawn = picture.read_text(encoding="utf-8")
    assert "hard_loop" in drawn
    assert "url(http" not in drawn


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(LOOPING))
    assert main(["tree", "-"]) == 1


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '"text"',
        '{"resourceSpans": 7}',
        batch({"name": "no ids"}),
        batch(span("01", "a", startTimeUnixNano="soon")),
        batch(span("01", "a", kind=9)),
        batch(span("01", "a", attributes=[{"value": {}}])),
    ],
)
def test_a_broken_line_is_named(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tree", write(tmp_path, LOOPING, line)]) == 2
    assert "line 2: no " in capsys.readouterr().err


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tree", str(tmp_path / "none")]) == 2
    assert "none" in capsys.readouterr().err


def test_batches_of_metrics_and_logs_are_passed_over() -> None:
    assert list(spans(['{"resourceMetrics": []}', '{"resourceLogs": []}', "  "])) == []


def test_all_kinds_of_values_are_read() -> None:
    values = {
        "text": {"stringValue": "x"},
        "flag": {"boolValue": True},
        "int": {"intValue": "12"},
        "float": {"doubleValue": 0.5},
        "list": {"arrayValue": {"values": [{"intValue": 1}, {"stringValue": "y"}]}},
        "map": {"kvlistValue": {"values": [{"key": "k", "value": {"intValue": "3"}}]}},
        "nothing": {},
    }
    attributes = [{"key": key, "value": value} for key, value in values.items()]
    (read,) = spans([batch(span("01", "a", attributes=attributes))])
    assert read.attributes == {
        "text": "x",
        "flag": True,
        "int": 12,
        "float": 0.5,
        "list": [1, "y"],
        "map": {"k": 3},
        "nothing": None,
    }


def test_bad_lines_carry_their_number() -> None:
    with pytest.raises(BadLineError, match="line 3") as caught:
        list(spans([LOOPING, "", "?"]))
    assert caught.value.line_no == 3
