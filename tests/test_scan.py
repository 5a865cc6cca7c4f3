"""`otel-loopguard scan` and `explain`: what they read, print, return and refuse."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from otel_loopguard.cli import decoding, main
from otel_loopguard.cli.decoding import Piece
from otel_loopguard.cli.judgeable import _NEEDS
from otel_loopguard.cli.scan import Scan
from otel_loopguard.cli.sources import Source
from otel_loopguard.core.detectors import BUILTIN
from otel_loopguard.dialects import archives
from otel_loopguard.dialects.archives import Found
from otel_loopguard.dialects.otlp import MALFORMED
from otel_loopguard.settings import from_env
from tests.bench.scan import CALLS, agent
from tests.dialects.recorded import ALL, FIXTURES
from tests.dialects.test_archives import jaeger_span, otlp_batch, sdk_span

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FIELDS = {
    "step", "severity", "pattern", "period", "repeats", "first_step", "evidence",
    "suggested_action", "wasted_calls", "wasted_tokens", "wasted_seconds", "iteration",
    "finding_id", "report_no", "run", "agent", "tool", "trace_id", "span_id", "first_span_id",
}  # fmt: skip
KINDS = {str: "string", int: "int64"}
PAGE = "The page lists the opening hours of all branches, sorted by city. " * 5


def case(name: str = "loop", count: int = 5, **more: object) -> dict[str, Any]:
    step = {"kind": "tool", "tool": "search", "args": {"q": "x"}, "result": PAGE, **more}
    return {"id": name, "steps": [step] * count}


def write(path: Path, *values: object, name: str = "file.jsonl") -> str:
    file = path / name
    lines = (each if isinstance(each, str) else json.dumps(each) for each in values)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(file)


class Scanned:
    """What one scan has printed and returned."""

    def __init__(self, capsys: pytest.CaptureFixture[str], arguments: Sequence[str]) -> None:
        self.code = main(["scan", "--json", *arguments])
        out, self.err = capsys.readouterr()
        self.reports: list[dict[str, Any]] = [json.loads(line) for line in out.splitlines()]
        self.patterns = {
            each["id"]: [f["pattern"] for f in each["findings"]] for each in self.reports
        }


@pytest.fixture
def scan(capsys: pytest.CaptureFixture[str]) -> Any:
    return lambda *arguments: Scanned(capsys, arguments)


def spans_of(*traces: int) -> list[dict[str, Any]]:
    return [span for trace in traces for span in agent(trace)]


# -- what is said ---------------------------------------------------------------------------------


def test_one_object_a_case(scan: Any, tmp_path: Path) -> None:
    done = scan(write(tmp_path, case(), "", case("calm", 2)))
    assert done.code == 1
    assert done.err == ""
    assert done.patterns == {"loop": ["hard_loop", "hard_loop"], "calm": []}
    warning, critical = done.reports[0]["findings"]
    assert set(warning) == set(critical) == FIELDS
    assert (warning["step"], warning["first_step"], warning["severity"]) == (3, 1, "warning")
    assert (critical["step"], critical["severity"], critical["wasted_calls"]) == (5, "critical", 4)
    assert warning["span_id"] is warning["trace_id"] is None


@pytest.mark.parametrize(
    ("count", "options", "code"), [(2, [], 0), (3, [], 1), (3, ["--exit-zero"], 0)]
)
def test_the_exit_code(
    count: int, options: list[str], code: int, scan: Any, tmp_path: Path
) -> None:
    assert scan(write(tmp_path, case(count=count)), *options).code == code


def test_cases_have_nothing_to_do_with_each_other(scan: Any, tmp_path: Path) -> None:
    assert scan(write(tmp_path, *[case(str(n), 2) for n in range(5)])).code == 0


def test_a_run_of_spans_names_its_spans(scan: Any, tmp_path: Path) -> None:
    done = scan(write(tmp_path, otlp_batch(*spans_of(0, 1))))
    assert done.patterns == {
        f"{1:016x}": ["hard_loop"] * len(done.reports[0]["findings"]),
        f"{101:016x}": [],
    }
    finding = done.reports[0]["findings"][0]
    assert set(finding) == FIELDS
    assert finding["trace_id"] == f"{1:032x}"
    assert (finding["step"], finding["span_id"]) == (6, f"{7:016x}"), "model and tool, three times"
    assert (finding["first_step"], finding["first_span_id"]) == (2, f"{3:016x}")
    assert (finding["agent"], finding["tool"]) == ("finder", "search")
    assert done.reports[0]["steps"] == 2 * CALLS


@pytest.mark.parametrize(
    ("withheld", "pattern", "other"),
    [
        (("arguments", "output.messages"), "hard_loop", "result_stagnation"),
        (("result",), "result_stagnation", "hard_loop"),
        (("output.messages",), "reflection_paralysis", "hard_loop"),
    ],
)
def test_what_cannot_be_judged_is_said(
    withheld: tuple[str, ...], pattern: str, other: str, scan: Any, tmp_path: Path
) -> None:
    spans = spans_of(0)
    for span in spans:
        said = span["attributes"]
        span["attributes"] = [each for each in said if not each["key"].endswith(withheld)]
    (report,) = scan(write(tmp_path, otlp_batch(*spans))).reports
    assert pattern in report["not_judged"]
    assert other not in report["not_judged"]
    assert pattern not in [finding["pattern"] for finding in report["findings"]]


def test_each_pattern_says_what_it_needs() -> None:
    assert set(BUILTIN) <= set(_NEEDS)


def test_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, case(), case("calm", 1, result=None))
    assert main(["scan", file, "--width", "200"]) == 1
    out = capsys.readouterr().out
    assert "loop" in out
    assert "gave the same result each time (since step 1)" in out
    assert "4 calls" in out
    assert "runs: 2, with findings: 1" in out
    assert "result_stagnation not judged in 1 runs" in out


def test_many_findings_are_printed_page_by_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["scan", write(tmp_path, *[case(f"case-{n}", 3) for n in range(501)])])
    out = capsys.readouterr().out
    assert all(f"case-{n} " in out for n in range(501))
    assert out.count("what happened") == 2


# -- what is read ---------------------------------------------------------------------------------


def shapes(spans: list[dict[str, Any]]) -> dict[str, str]:
    """The same spans in each shape that they may come in."""
    views = [archives.span(Found(span, "bench")) for span in spans]
    in_jaeger = [
        jaeger_span(
            traceID=view.trace_id,
            spanID=view.span_id,
            references=[{"refType": "CHILD_OF", "traceID": view.trace_id, "spanID": view.parent_id}]
            if view.parent_id
            else [],
            operationName=view.name,
            startTime=view.start_ns // 1000,
            duration=(view.end_ns - view.start_ns) // 1000,
            tags=[
                {
                    "key": key,
                    "type": "string" if isinstance(value, str) else "int64",
                    "value": value,
                }
                for key, value in view.attributes.items()
            ],
            logs=[],
        )
        for view in views
    ]
    in_sdk = [
        sdk_span(
            name=view.name,
            context={"trace_id": f"0x{view.trace_id}", "span_id": f"0x{view.span_id}"},
            parent_id=view.parent_id and f"0x{view.parent_id}",
            start_time=view.start_ns,
            end_time=view.end_ns,
            status={"status_code": "UNSET"},
            attributes=view.attributes,
            events=[],
        )
        for view in views
    ]
    batches = [otlp_batch(*spans[n : n + 7]) for n in range(0, len(spans), 7)]
    answer = {"data": [{"traceID": "a", "spans": in_jaeger, "processes": {}}], "errors": None}
    return {
        "otlp lines": "\n".join(map(json.dumps, batches)),
        "otlp document": json.dumps(otlp_batch(*spans), indent=2),
        "otlp list": json.dumps(batches, indent=2),
        "jaeger answer": json.dumps(answer),
        "jaeger download": json.dumps(answer, indent=4),
        "sdk lines": "\n".join(map(json.dumps, in_sdk)),
        "sdk document": json.dumps({"note": "x", "spans": in_sdk}),
    }


@pytest.mark.parametrize("shape", shapes(spans_of(0)))
@pytest.mark.parametrize("packed", [False, True])
def test_the_shape_does_not_matter(
    shape: str, packed: bool, scan: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = shapes(spans_of(0, 1, 5))[shape]
    data = gzip.compress(text.encode()) if packed else text.encode()
    file = tmp_path / "file"
    file.write_bytes(data)
    expected = scan(write(tmp_path, otlp_batch(*spans_of(0, 1, 5))))
    done = scan(str(file))
    assert (done.code, done.err, done.patterns) == (1, "", expected.patterns)
    forced = scan(str(file), "--format", shape.split(maxsplit=1)[0])
    assert forced.patterns == expected.patterns
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data))))
    assert scan("-").patterns == expected.patterns


def test_a_trace_may_lie_in_several_files(scan: Any, tmp_path: Path) -> None:
    spans = spans_of(0)
    files = [write(tmp_path, otlp_batch(*spans[n::3]), name=f"{n}.jsonl") for n in range(3)]
    assert scan(*files).patterns == scan(write(tmp_path, otlp_batch(*spans))).patterns


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_processes_share_the_work(jobs: str, scan: Any, tmp_path: Path) -> None:
    spans = spans_of(0, 1, 5, 6)
    traces = write(tmp_path, *[otlp_batch(*spans[n::4]) for n in range(4)], name="traces.jsonl")
    cases = write(tmp_path, case(), case("calm", 2), "{", case("other", 3))
    done = scan("--jobs", jobs, traces, cases)
    assert done.code == 2
    assert done.err == f"otel-loopguard: {cases}, line 3: no JSON " + done.err.split("no JSON ")[1]
    assert done.err.count("\n") == 1
    expected = {"loop": 2, "calm": 0, "other": 1, f"{101:016x}": 0, f"{601:016x}": 0}
    found = {name: len(patterns) for name, patterns in done.patterns.items()}
    loops = {f"{1:016x}", f"{501:016x}"}
    assert {name: count for name, count in found.items() if name not in loops} == expected
    assert all(found[name] for name in loops)


@pytest.mark.parametrize("recording", ALL)
def test_each_recording_is_read_or_refused_in_a_line(recording: str, scan: Any) -> None:
    done = scan(str(FIXTURES / f"{recording}.json"))
    assert done.code in (0, 1)
    if done.reports:
        assert done.err == ""
    else:
        assert "no step of an agent in a convention known here (scopes: " in done.err
        assert done.err.count("\n") == 1


# -- what cannot be read --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "no JSON (Expecting property name"),
        ("\xff\x00", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ('{"id": "x", "steps": 7}', "its steps are no list"),
        ('{"id": "x", "steps": [7]}', "no steps (step 1"),
        ('{"id": "x", "steps": [{"kind": "dance"}]}', "no steps (step 1"),
        ('{"id": "x"}', "KeyError"),
    ],
)
def test_a_broken_line_is_named_and_passed_over(
    line: str, reason: str, scan: Any, tmp_path: Path
) -> None:
    file = write(tmp_path, case(), line, case("second"))
    done = scan(file)
    assert done.code == 2
    assert done.err.startswith(f"otel-loopguard: {file}, line 2: ")
    assert reason in done.err
    assert set(done.patterns) == {"loop", "second"}
    stopped = scan("--strict", file)
    assert (stopped.code, set(stopped.patterns)) == (2, {"loop"})


@pytest.mark.parametrize(
    "span",
    [
        {"traceId": "a"},
        {"traceId": "xyz", "spanId": "1", "name": "a"},
        {"traceId": "a", "spanId": "1", "name": "a", "kind": 9},
        {"traceId": "a", "spanId": "1", "name": "a", "startTimeUnixNano": "soon"},
        {"traceId": "a", "spanId": "1", "name": "a", "attributes": [{"value": {}}]},
    ],
)
def test_a_broken_span_is_named_and_passed_over(
    span: dict[str, Any], scan: Any, tmp_path: Path
) -> None:
    file = write(tmp_path, otlp_batch(*spans_of(0)), otlp_batch(span), otlp_batch(*spans_of(1)))
    done = scan(file)
    assert done.code == 2
    assert done.err.startswith(f"otel-loopguard: {file}, line 2: no span (")
    assert len(done.reports) == 2


def test_several_broken_places_are_counted(scan: Any, tmp_path: Path) -> None:
    done = scan(write(tmp_path, case(), "{", "["))
    assert "2 places could not be read" in done.err


def test_a_first_line_that_is_broken_is_no_document(scan: Any, tmp_path: Path) -> None:
    done = scan(write(tmp_path, '{"resourceSpans": [{"sco', otlp_batch(*spans_of(0))))
    assert ", line 1: no JSON" in done.err
    assert len(done.reports) == 1


def test_a_document_that_breaks_off_is_read_up_to_there(scan: Any, tmp_path: Path) -> None:
    text = json.dumps(otlp_batch(*spans_of(0)), indent=1)
    done = scan(write(tmp_path, text[: len(text) // 2]))
    assert done.code == 2
    assert "no JSON" in done.err
    assert len(done.reports) == 1


def test_a_document_with_a_strange_span(scan: Any, tmp_path: Path) -> None:
    document = {"data": [{"spans": [{"strange": 1}, *map(jaeger_span, [])]}]}
    done = scan(write(tmp_path, json.dumps(document, indent=1)))
    assert (done.code, done.err.count("no span")) == (2, 1)


def test_a_packed_file_that_breaks_off(scan: Any, tmp_path: Path) -> None:
    data = gzip.compress("\n".join(json.dumps(case(str(n))) for n in range(500)).encode())
    file = tmp_path / "torn.gz"
    file.write_bytes(data[: len(data) // 2])
    done = scan(str(file))
    assert done.code == 2
    assert str(file) in done.err


def test_a_file_that_is_not_there(scan: Any, tmp_path: Path) -> None:
    done = scan(str(tmp_path / "none"), write(tmp_path, case()))
    assert done.code == 2
    assert "none: No such file" in done.err
    assert set(done.patterns) == {"loop"}


def test_what_is_neither_steps_nor_spans(scan: Any, tmp_path: Path) -> None:
    assert "neither steps nor spans" in scan(write(tmp_path, {"x": 1})).err
    assert scan(write(tmp_path)).code == 0, "nothing at all is no mistake"
    assert scan(write(tmp_path, {"resourceLogs": []})).code == 0


def test_whoever_reads_the_output_may_leave(tmp_path: Path) -> None:
    file = write(tmp_path, *[case(str(n)) for n in range(2_000)])
    command = [sys.executable, "-m", "otel_loopguard.cli", "scan", "--json", file]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""


# -- the fast decoder -----------------------------------------------------------------------------

scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text()
any_values = st.recursive(
    st.one_of(
        st.builds(lambda v: {"stringValue": v}, st.text()),
        st.builds(lambda v: {"boolValue": v}, st.booleans()),
        st.builds(
            lambda v: {"intValue": v},
            st.integers(-(2**63), 2**63) | st.from_regex(r"-?\d{1,18}", fullmatch=True),
        ),
        st.builds(lambda v: {"doubleValue": v}, st.floats(allow_nan=False, allow_infinity=False)),
        st.just({}),
        st.none(),
        scalars,
    ),
    lambda inner: st.builds(lambda v: {"arrayValue": {"values": v}}, st.lists(inner, max_size=3)),
    max_leaves=4,
)
loose_spans = st.fixed_dictionaries(
    {"traceId": st.just("0A") | scalars, "spanId": st.just("0B") | scalars, "name": st.text()},
    optional={
        "parentSpanId": st.just("0C") | scalars,
        "kind": st.integers(-1, 7) | st.just("SPAN_KIND_CLIENT") | scalars,
        "flags": st.sampled_from([0, 256, 768]) | scalars,
        "startTimeUnixNano": st.integers(0, 2**63) | st.just("12") | scalars,
        "endTimeUnixNano": st.just("13") | scalars,
        "status": st.fixed_dictionaries({"code": st.sampled_from([0, 1, 2, "STATUS_CODE_ERROR"])})
        | scalars,
        "attributes": st.lists(
            st.fixed_dictionaries({"key": st.text(max_size=3), "value": any_values}), max_size=3
        )
        | scalars,
        "events": st.lists(st.fixed_dictionaries({"name": st.text()}), max_size=2) | scalars,
        "other": scalars,
    },
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(loose_spans)
def test_the_fast_decoder_reads_what_the_patient_one_reads(span: dict[str, Any]) -> None:
    line = json.dumps(otlp_batch(span)).encode()
    patient = [Piece("", each, 0, 1) for each in archives.found(json.loads(line), "otlp")]
    fast = decoding.split(line, 1)
    if fast is None:
        return
    outcomes = []
    for piece in (*patient, *fast):
        try:
            outcomes.append(repr(piece.view()))
        except MALFORMED as fault:  # noqa: PERF203
            outcomes.append(type(fault).__name__)
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("form", ["bytes", "otlp", "jaeger", "sdk"])
@pytest.mark.parametrize("said", ["run-1", None])
def test_a_piece_knows_its_run(form: str, said: str | None) -> None:
    key = "loopguard.run_id"
    otlp = {"attributes": [{"key": key, "value": {"stringValue": said}}] if said else []}
    held = {
        "bytes": (json.dumps(otlp).encode(), ""),
        "otlp": Found(otlp),
        "jaeger": Found({"tags": [{"key": key, "value": said}] if said else []}),
        "sdk": Found({"attributes": {key: said} if said else {}}),
    }
    assert Piece("", held[form], 0, 1).run() == said


# -- runs -----------------------------------------------------------------------------------------


def test_a_run_that_was_silent_for_too_long_begins_anew(scan: Any, tmp_path: Path) -> None:
    """As in the process, where it would have been forgotten."""
    spans = [span for span in spans_of(0) if span["parentSpanId"]]
    later = 3600 * 10**9
    for span in spans[10:]:
        for key in ("startTimeUnixNano", "endTimeUnixNano"):
            span[key] = str(int(span[key]) + later)
    done = scan(write(tmp_path, otlp_batch(*spans)))
    assert [report["steps"] for report in done.reports] == [10, 2 * CALLS - 10]


def test_no_more_runs_are_kept_than_the_guard_keeps(
    scan: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_LOOPGUARD_MAX_RUNS", "1")
    spans = [span for span in spans_of(0, 1, 2) if span["parentSpanId"]]
    done = scan(write(tmp_path, otlp_batch(*spans)))
    assert len(done.reports) == 3


# -- explain --------------------------------------------------------------------------------------


def test_explain_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, case("calm", 1), case(count=4))
    assert main(["explain", file, "--run", "loop", "--width", "250"]) == 0
    out = capsys.readouterr().out
    steps = out.split("step ")[1:]
    assert len([step for step in steps if step[0].isdigit() and "tool search" in step]) == 4
    assert "hard_loop: weighs 2, warning from 3, critical from 5; silent" in out
    assert "hard_loop: warning, speaks (weighs 3" in out
    assert "hard_loop: warning, holds, was said already or is muted (weighs 4" in out
    assert "loop: 4 steps, 1 findings" in out
    assert "calm" not in out


def test_explain_tells_what_was_not_captured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, case(count=2, args=None, result=None))
    main(["explain", file, "--run", "loop", "--width", "250"])
    out = capsys.readouterr().out
    assert "arguments not captured, result not captured" in out
    assert "not judged, since what they need was not captured: hard_loop" in out


@pytest.mark.parametrize("options", [[], ["--strict"]])
def test_explain_refuses_what_it_does_not_find(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, case(), "{")
    assert main(["explain", file, "--run", "other", *options]) == 2
    err = capsys.readouterr().err
    assert "line 2: no JSON" in err
    assert "no case or run other; there are loop" in err


def test_a_listener_hears_of_each_step(tmp_path: Path) -> None:
    heard: list[tuple[object, int]] = []
    scan = Scan(from_env({}), listen=lambda name, number, _: heard.append((name, number)))
    list(scan.read([Source(write(tmp_path, case(count=2)))]))
    assert heard == [("loop", 1), ("loop", 2)]
