"""Spans in every shape that a file may hold them in."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard.dialects import archives, dumped, jaeger, otlp
from otel_loopguard.dialects.archives import Found
from otel_loopguard.dialects.documents import LONGEST, Document
from otel_loopguard.dialects.view import SpanView
from otel_loopguard.dialects.window import Window

VIEW = SpanView(
    "execute_tool search", "client", "0" * 31 + "a", "0" * 15 + "b", "0" * 15 + "c", "lib", 5_000,
    9_000, True, {"gen_ai.tool.name": "search", "n": 3}, (("exception", {"why": "x"}),),
    ids=(10, 11),
)  # fmt: skip


def otlp_span(**more: Any) -> dict[str, Any]:
    return {
        "traceId": "0" * 31 + "A",
        "spanId": "0" * 15 + "B",
        "parentSpanId": "0" * 15 + "C",
        "name": "execute_tool search",
        "kind": 3,
        "startTimeUnixNano": "5000",
        "endTimeUnixNano": 9000,
        "status": {"code": 2},
        "attributes": [
            {"key": "gen_ai.tool.name", "value": {"stringValue": "search"}},
            {"key": "n", "value": {"intValue": "3"}},
        ],
        "events": [
            {
                "name": "exception",
                "attributes": [{"key": "why", "value": {"stringValue": "x"}}],
            }
        ],
        **more,
    }


def otlp_batch(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "lib"}, "spans": list(spans)}]}]}


def jaeger_span(**more: Any) -> dict[str, Any]:
    return {
        "traceID": "A",
        "spanID": "B",
        "references": [
            {"refType": "FOLLOWS_FROM", "traceID": "A", "spanID": "9"},
            {"refType": "CHILD_OF", "traceID": "A", "spanID": "C"},
        ],
        "operationName": "execute_tool search",
        "startTime": 5,
        "duration": 4,
        "tags": [
            {"key": "gen_ai.tool.name", "type": "string", "value": "search"},
            {"key": "n", "type": "int64", "value": 3},
            {"key": "span.kind", "type": "string", "value": "client"},
            {"key": "otel.scope.name", "type": "string", "value": "lib"},
            {"key": "error", "type": "bool", "value": True},
        ],
        "logs": [
            {
                "timestamp": 6,
                "fields": [
                    {"key": "event", "type": "string", "value": "exception"},
                    {"key": "why", "type": "string", "value": "x"},
                ],
            }
        ],
        **more,
    }


def sdk_span(**more: Any) -> dict[str, Any]:
    return {
        "name": "execute_tool search",
        "context": {"trace_id": "0xa", "span_id": "0xb", "trace_state": "[]"},
        "kind": "SpanKind.CLIENT",
        "parent_id": "0xc",
        "start_time": "1970-01-01T00:00:00.000005Z",
        "end_time": "1970-01-01T00:00:00.000009Z",
        "status": {"status_code": "ERROR"},
        "scope": {"name": "lib"},
        "attributes": {"gen_ai.tool.name": "search", "n": 3},
        "events": [{"name": "exception", "attributes": {"why": "x"}}],
        **more,
    }


SHAPES = {
    "otlp": (otlp_batch(otlp_span()), otlp_span()),
    "jaeger": ({"data": [{"traceID": "a", "spans": [jaeger_span()]}]}, jaeger_span()),
    "sdk": ({"spans": [sdk_span()]}, sdk_span()),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_is_known_and_read_the_same(shape: str) -> None:
    whole, _ = SHAPES[shape]
    for value in (whole, [whole]):
        assert archives.form_of(value) == shape
        (found,) = archives.found(value, archives.form_of(value))
        read = archives.span(found)
        tags = dict(VIEW.attributes)
        extra = set(read.attributes) - set(tags)
        assert extra <= {"span.kind", "otel.scope.name", "error"}, "Jaeger keeps these among tags"
        shown = {key: value for key, value in read.attributes.items() if key not in extra}
        assert read._replace(attributes=shown) == VIEW
        assert int(archives.trace_of(found.held), 16) == 10


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("piece", [1, 7, 100_000])
def test_a_document_gives_its_spans_piece_by_piece(
    shape: str, indent: int | None, piece: int
) -> None:
    whole, _ = SHAPES[shape]
    text = io.StringIO(json.dumps({"before": [{"x": 1}], **whole, "after": None}, indent=indent))
    document = Document(lambda wanted: text.read(min(wanted, piece)))
    (found,) = document.spans()
    (expected,) = archives.found(whole, archives.form_of(whole))
    assert found == expected


def test_a_scope_that_is_named_behind_its_spans_comes_too_late() -> None:
    text = (
        '{"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "a"}], "scope": {"name": "s"}}]}]}'
    )
    assert list(Document(io.StringIO(text).read).spans()) == [Found({"name": "a"}, "")]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"data": [{"spans": [{"a": 1} {"b": 2}]}]}', "',' is missing"),
        ('{"data" [', "':' is missing"),
        ('{"data": [{"spans": [{"a": 1},', "too early"),
        ('{"data": [', "too early"),
        ('{"data": [{"spans": [{"a": 1}', "too early"),
        ('{"data": {"spans": [{"a": nonsense}]}}', "Expecting value"),
        ('{"data": []} more', "more behind"),
        ("[" * 100_000, "."),
        ("", "Expecting value"),
    ],
)
def test_a_broken_document_says_why(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        list(Document(io.StringIO(text).read).spans())


def test_a_broken_document_says_where() -> None:
    document = Document(io.StringIO('{\n"data": [\n{"spans": [{"a": 1}\n,,').read)
    with pytest.raises(ValueError, match="Expecting"):
        list(document.spans())
    assert document.line == 4


def test_a_value_without_end_is_not_read_for_ever() -> None:
    pieces = iter(['{"data": "', *["x" * 8_000_000] * 20])
    document = Document(lambda _: next(pieces))
    with pytest.raises(ValueError, match="Unterminated"):
        list(document.spans())
    assert len(list(pieces)) >= 20 - LONGEST // 4_000_000


@given(st.text('{}[]",: abc1\n') | st.text())
def test_no_text_breaks_the_document_reader(text: str) -> None:
    try:
        found = list(Document(io.StringIO(text).read).spans())
    except ValueError:
        return
    assert all(isinstance(each, Found) for each in found)


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ({"steps": []}, "steps"),
        ({"resourceLogs": []}, "otlp"),
        ({"traceId": "a"}, "otlp"),
        ({"context": {}}, "sdk"),
        ({"other": 1}, None),
        ([], None),
        ([1], None),
        ("text", None),
        (None, None),
    ],
)
def test_what_a_value_is(value: object, form: str | None) -> None:
    assert archives.form_of(value) == form


def test_a_span_alone_is_a_dump_of_its_own() -> None:
    assert [archives.span(each) for each in archives.found(sdk_span(), "sdk")] == [VIEW]


def test_a_span_without_a_trace_is_none() -> None:
    with pytest.raises(KeyError):
        archives.trace_of({"name": "a"})


def test_flags_tell_a_parent_elsewhere() -> None:
    assert otlp.span(otlp_span(flags=0x300), "s").is_remote
    assert not otlp.span(otlp_span(flags=0x100), "s").is_remote


@pytest.mark.parametrize(("kind", "read"), [("SPAN_KIND_SERVER", "server"), ("5", "consumer")])
def test_a_kind_may_be_a_name(kind: str, read: str) -> None:
    assert otlp.span(otlp_span(kind=kind), "s").kind == read


def test_jaeger_in_its_older_shapes() -> None:
    old = jaeger_span(
        references=[],
        parentSpanID="C",
        tags=[
            {"key": "otel.library.name", "type": "string", "value": "lib"},
            {"key": "otel.status_code", "type": "string", "value": "ERROR"},
            {"key": "raw", "type": "binary", "value": base64.b64encode(b"x").decode()},
        ],
        logs=None,
    )
    read = jaeger.span(old)
    assert (read.parent_id, read.scope, read.is_error) == ("0" * 15 + "c", "lib", True)
    assert (read.kind, read.attributes["raw"], read.events) == ("internal", b"x", ())
    assert jaeger.span(jaeger_span(references=None, tags=None)).parent_id is None
    elsewhere = [{"refType": "CHILD_OF", "traceID": "B", "spanID": "C"}]
    assert jaeger.span(jaeger_span(references=elsewhere)).parent_id is None


def test_a_dump_in_its_plainest_shape() -> None:
    read = dumped.span(
        {
            "name": "a",
            "trace_id": "a",
            "span_id": "b",
            "scope": "lib",
            "start_ns": 5,
            "is_error": True,
            "events": [["e", {"k": 1}], ["f", None]],
        }
    )
    assert (read.kind, read.parent_id, read.scope) == ("internal", None, "lib")
    assert (read.start_ns, read.end_ns, read.is_error) == (5, 0, True)
    assert read.events == (("e", {"k": 1}), ("f", {}))


# -- the window -----------------------------------------------------------------------------------


def test_a_trace_is_held_until_the_window_is_full() -> None:
    window: Window[str] = Window(limit=2_500)
    assert list(window.add("a", "a1", 1_000)) == []
    assert list(window.add("b", "b1", 1_000)) == []
    assert list(window.add("a", "a2", 1)) == [], "what takes little counts for something"
    assert list(window.add("c", "c1", 500)) == [("b", ["b1"])], "a was heard of since then"
    assert list(window.drain()) == [("a", ["a1", "a2"]), ("c", ["c1"])]
    assert list(window.drain()) == []


def test_a_trace_larger_than_the_window_comes_in_pieces() -> None:
    window: Window[int] = Window(limit=1_000)
    given = [piece for n in range(5) for piece in window.add("a", n, 600)]
    given += window.drain()
    assert [span for _, spans in given for span in spans] == [0, 1, 2, 3, 4]
    assert len(given) > 1
