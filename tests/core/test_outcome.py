"""Outcomes: each kind with neighbours that look like it and are something else."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard.core.model import MISSING, Outcome
from otel_loopguard.core.outcome import classify

OK = Outcome.OK
ERROR = Outcome.ERROR
EMPTY = Outcome.EMPTY
PENDING = Outcome.PENDING
ACK = Outcome.ACK
REFUSED = Outcome.REFUSED
UNKNOWN_TOOL = Outcome.UNKNOWN_TOOL
INVALID_ARGS = Outcome.INVALID_ARGS
TRUNCATED = Outcome.TRUNCATED

LONG = "The quarterly report lists all regions and their figures. " * 10


class Text(str):
    __slots__ = ()


# What constant work tells, whatever the size.
SHALLOW = [
    (MISSING, Outcome.UNKNOWN),
    (None, EMPTY),
    ("", EMPTY),
    (" \n\t ", EMPTY),
    (" " * 1_000, EMPTY),
    ("[]", EMPTY),
    ("{}", EMPTY),
    ("null", EMPTY),
    ([], EMPTY),
    ({}, EMPTY),
    ((), EMPTY),
    (set(), EMPTY),
    (True, ACK),
    ("ok", ACK),
    (" Done.\n", ACK),
    ("Saved!", ACK),
    ("true", ACK),
    ("\u6210\u529f", ACK),
    (Text("OK"), ACK),
    (False, OK),
    (0, OK),
    (0.0, OK),
    ([None], OK),
    ([""], OK),
    ({"a": None}, OK),
    ("0", OK),
    ("no", OK),
    ("okra", OK),
    ("done deal", OK),
    (" " * 5_000 + "x", OK),
    (object(), OK),
    ("Error: the file is not there", ERROR),
    ("ValueError: bad day", ERROR),
    ("Traceback (most recent call last):\n  File ...", ERROR),
    ("<tool_use_error>String to replace not found</tool_use_error>", ERROR),
    ("Fehler: Datei fehlt", ERROR),
    ("\u9519\u8bef\uff1a\u6587\u4ef6", ERROR),
    ("Error: " + LONG, ERROR),
    ("Errors: 0", OK),
    ("Error rate: 5 %", OK),
    ("Error handling in Python is done with try", OK),
    ("No error: all fine", OK),
    (ValueError("x"), ERROR),
    (PermissionError(13, "x"), REFUSED),
]


@pytest.mark.parametrize(("value", "outcome"), SHALLOW)
def test_plain_cases_are_told_at_once(value: object, outcome: Outcome) -> None:
    assert classify(value) is outcome


FAILURES = [
    ("builtins.ValueError", "bad day", ERROR),
    ("error", "", ERROR),
    ("builtins.PermissionError", "x", REFUSED),
    ("openai.PermissionDeniedError", "", REFUSED),
    ("agents.InputGuardrailTripwireTriggered", "", REFUSED),
    ("pydantic_core.ValidationError", "", INVALID_ARGS),
    ("json.decoder.JSONDecodeError", "", INVALID_ARGS),
    ("x.ToolNotFoundError", "", UNKNOWN_TOOL),
    ("openai.LengthFinishReasonError", "", TRUNCATED),
    ("builtins.FileNotFoundError", "No such file or directory: 'a'", ERROR),
    ("builtins.TimeoutError", "", ERROR),
    ("error", "Error: lookup is not a valid tool, try one of [search, read].", UNKNOWN_TOOL),
    ("error", "Tool 'lookup' not found", UNKNOWN_TOOL),
    ("error", "Unknown tool: lookup", UNKNOWN_TOOL),
    ("error", "Funktion lookup existiert nicht", UNKNOWN_TOOL),
    ("error", "\u672a\u77e5\u5de5\u5177 lookup", UNKNOWN_TOOL),
    ("error", "File tool.py not found", ERROR),
    ("error", "The user was not found", ERROR),
    ("builtins.TypeError", "f() missing 1 required positional argument: 'q'", INVALID_ARGS),
    ("builtins.TypeError", "f() got an unexpected keyword argument 'q'", INVALID_ARGS),
    ("builtins.TypeError", "unsupported operand type(s) for +", ERROR),
    ("error", "1 validation error for search\nquery\n  Field required", INVALID_ARGS),
    ("error", "lost the argument", ERROR),
    ("error", "Permission denied: /etc/shadow", REFUSED),
    ("error", "This request was rejected by the user", REFUSED),
    ("error", "Zugriff verweigert", REFUSED),
    ("error", "Operação não permitida neste ambiente", REFUSED),
    ("error", "Accesso negato", REFUSED),
    ("error", "Доступ запрещён политикой", REFUSED),
    ("error", "접근이 거부되었습니다", REFUSED),
    ("error", "Acc\u00e8s refus\u00e9", REFUSED),
    ("error", "\u6743\u9650\u4e0d\u8db3", REFUSED),
    ("error", "permissions could not be read", ERROR),
    ("error", "The response was truncated", TRUNCATED),
    ("error", "max tokens reached", TRUNCATED),
    ("error", "x" * 5_000 + " permission denied", ERROR),  # beyond what is read
    ("error", {"permission": "denied"}, ERROR),
    ("error", MISSING, ERROR),
]


@pytest.mark.parametrize(("error", "text", "outcome"), FAILURES)
@pytest.mark.parametrize("deep", [False, True])
def test_a_failure_is_told_by_its_class_then_by_its_text(
    error: str, text: object, outcome: Outcome, deep: bool
) -> None:
    assert classify(text, error=error, deep=deep) is outcome


TEXTS = [
    # pending
    ("still running (job 7)", PENDING),
    ("[no new output for 10 s; the command still runs]", PENDING),
    ("[12%] construction en cours...", PENDING),
    ("web-0  0/1  ContainerCreating  0  14s", PENDING),
    ("wird gebaut\u2026", PENDING),
    ("src/a/b.js:1:\u2026maxRows\u2026", OK),
    ("a.py:12: rows = read(...", OK),
    ("12:01:30 Loading the rows....", PENDING),
    ("timeout", ERROR),
    ("request timed out.", ERROR),
    ("no match", EMPTY),
    ('Results for "no entry": no relevant results.', EMPTY),
    ("The build is not ready yet.", PENDING),
    ("Status: pending", PENDING),
    ("running", PENDING),
    ("queued", PENDING),
    ("In progress: 37%", PENDING),
    ("export-1 is pending", PENDING),
    ("The job is still running.", PENDING),
    ("job 17: in progress (40%)", PENDING),
    ("Please wait and check back later", PENDING),
    ("moved to the background; it has not ended", PENDING),
    ("Der Export l\u00e4uft noch", PENDING),
    ("Traitement en cours", PENDING),
    ("La tarea sigue en curso", PENDING),
    ("\u6b63\u5728\u5904\u7406\uff0c\u8bf7\u7a0d\u5019", PENDING),
    ("\u51e6\u7406\u4e2d\u3067\u3059", PENDING),
    ("2 pending orders: A, B", OK),
    ("pending orders: none", OK),
    ("The server is running on port 80", OK),
    ("Her order is pending review by the team", OK),
    ("a running total of 12", OK),
    ("the queue holds 3", OK),
    ("Finished: still water is $2", OK),
    (LONG + "The job is still running.", OK),
    # refused
    ("Approval required (id 7). The command was not run.", REFUSED),
    ("Permission denied", REFUSED),
    ("You are not allowed to read this", REFUSED),
    ("Zugriff verweigert", REFUSED),
    ("Acceso denegado", REFUSED),
    ("\u6ca1\u6709\u6743\u9650", REFUSED),
    ("permissions: rwx", OK),
    ("the approval rate is 40 %", OK),
    (LONG + "Permission denied", OK),
    # error
    ("Failed to open a.txt", ERROR),
    ("cannot reach the host", ERROR),
    ("ffmpeg: command not found", ERROR),
    ("HTTP/1.1 404\ndate: today", ERROR),
    ("HTTP 503", ERROR),
    ("konnte nicht gelesen werden", ERROR),
    ("Impossible de lire", ERROR),
    ("No se pudo leer", ERROR),
    ("\u5931\u6557\u3057\u307e\u3057\u305f", ERROR),
    ("exitcode: 1 (execution failed)\nCode output: x", ERROR),
    ("HTTP/1.1 200\ndate: today", OK),
    ("exitcode: 0 (execution succeeded)\nCode output: 4", OK),
    ("0 of 12 failed", OK),
    ("one test failed to start, then passed", OK),
    (LONG + "Failed to open", OK),
    # empty
    ("No results found.", EMPTY),
    ("no matches", EMPTY),
    ("[no results]", EMPTY),
    ("0 results", EMPTY),
    ("(no new output)", EMPTY),
    ('No matching records found for "x y"', EMPTY),
    ("Nothing found", EMPTY),
    ("Keine Treffer", EMPTY),
    ("Aucun r\u00e9sultat", EMPTY),
    ("Sin resultados", EMPTY),
    ("\u672a\u627e\u5230", EMPTY),
    ("no results yet, but 3 candidates: A, B, C", OK),
    ("10 results", OK),
    ("No files were harmed, 3 were moved", OK),
    # acknowledgement
    ("File created successfully", ACK),
    ("Erfolgreich gespeichert.", ACK),
    ("\u4fdd\u5b58\u3057\u307e\u3057\u305f", ACK),
    ("Created file a.txt with 12 lines of text", OK),
    ("The successful team won 3 to 2 on Sunday", OK),
    # truncated
    ("line 1\nline 2\n[output truncated]", TRUNCATED),
    (LONG + "\n... (truncated, 9000 more characters)", TRUNCATED),
    (LONG + "<response clipped>", TRUNCATED),
    ("The output was truncated", TRUNCATED),
    ("[truncated] " + LONG, OK),
    ("a truncated cone", OK),
    (LONG + "the list is cut off at ten", OK),
    # nothing of all that
    ("Paris, 18 degrees", OK),
    ("{not json", OK),
    ("[1] a citation", OK),
    (LONG, OK),
]


@pytest.mark.parametrize(("text", "outcome"), TEXTS)
def test_short_texts_are_told_by_their_words(text: str, outcome: Outcome) -> None:
    assert classify(text, deep=True) is outcome


@pytest.mark.parametrize("text", [t for t, o in TEXTS if o not in {ERROR, EMPTY, ACK}])
def test_without_deep_words_are_not_read(text: str) -> None:
    assert classify(text) is OK


STRUCTURES = [
    # failed
    ({"isError": True, "content": [{"type": "text", "text": "x"}]}, ERROR),
    ({"is_error": True, "message": "permission denied"}, REFUSED),
    ({"ok": False, "reason": "not written yet"}, ERROR),
    ({"success": False}, ERROR),
    ({"timed_out": True}, ERROR),
    ({"error": "no such host"}, ERROR),
    ({"error": {"message": "Unknown tool: x", "code": 1}}, UNKNOWN_TOOL),
    ({"error": True, "detail": "no"}, ERROR),
    ({"errors": [{"message": "bad field"}], "data": None}, ERROR),
    ({"status": "failed", "message": "unexpected argument 'q'"}, INVALID_ARGS),
    ({"state": "Timed Out"}, ERROR),
    ({"exit_code": 127, "stdout": ""}, ERROR),
    ({"isError": False, "content": [{"type": "text", "text": "x"}]}, OK),
    ({"error": None, "value": 3}, OK),
    ({"error": "", "value": 3}, OK),
    ({"error": "None", "value": 3}, OK),
    ({"errors": 0, "rows": 12}, OK),
    ({"errors": [{"line": 3}], "file": "a.py"}, OK),
    ({"error": 0, "value": 1}, OK),
    ({"ok": None, "value": 1}, OK),
    ({"exit_code": 0, "stdout": "x"}, OK),
    ({"exit_code": 1, "stdout": "x"}, OK),  # what a search answers that finds nothing
    ({"exit_code": True, "stdout": "x"}, OK),
    # status codes
    ({"status_code": 500, "body": "x"}, ERROR),
    ({"status": 404}, ERROR),
    ({"statusCode": 429}, ERROR),
    ({"status_code": 403}, REFUSED),
    ({"status_code": 422}, INVALID_ARGS),
    ({"status_code": 202, "id": "j"}, PENDING),
    ({"code": 503, "message": "busy"}, ERROR),
    ({"status_code": 200, "body": "x"}, OK),
    ({"code": 404, "name": "Peugeot"}, OK),
    ({"status": 12, "name": "x"}, OK),
    # pending
    ({"status": "running", "progress": 40}, PENDING),
    ({"state": "IN PROGRESS"}, PENDING),
    ({"status": "in-progress", **{f"field{i}": i for i in range(20)}}, PENDING),
    ({"status": "pending", "id": 7}, PENDING),
    ({"done": False, "name": "op"}, PENDING),
    ({"in_progress": True}, PENDING),
    ({"status": "pending", **{f"field{i}": i for i in range(20)}}, OK),  # an order, say
    ({"status": "completed", "loss": 0.2}, OK),
    ({"status": "a running commentary on the state of affairs", "n": 1}, OK),
    ({"state": "Texas"}, OK),
    ({"done": True, "loss": 0.2}, OK),
    ({"note": "the job is pending", "n": 4}, OK),
    # refused
    ({"status": "denied"}, REFUSED),
    ({"status": "blocked", "reason": "policy"}, REFUSED),
    ({"status": "unblocked"}, OK),
    ({"decision": "block", "reason": "the review returned nothing"}, REFUSED),
    ({"permissionDecision": "DENY", "permissionDecisionReason": "outside the workspace"}, REFUSED),
    ({"allowed": False, "policy": 7}, REFUSED),
    (
        {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}},
        REFUSED,
    ),
    ({"decision": "approve", "reason": "fine"}, OK),
    ({"decision": "deny", "applicant": 12, "score": 0.3}, OK),  # about somebody, not about the call
    ({"decision": "reject", "reason": "the tone is too formal"}, OK),  # a critic's word
    ({"url": "https://example.org/a", "allowed": False}, OK),
    ({"decision": 3, "reason": "x"}, OK),
    ({"denied": 0, "allowed": 3}, OK),
    # truncated
    ({"truncated": True, "text": "abc"}, TRUNCATED),
    ({"finish_reason": "length", "text": "abc"}, TRUNCATED),
    ({"stop_reason": "max_tokens"}, TRUNCATED),
    ({"truncated": False, "text": "abc"}, OK),
    ({"finish_reason": "stop", "text": "abc"}, OK),
    ({"finish_reason": ["length"], "text": "abc"}, OK),
    # empty
    ({"results": []}, EMPTY),
    ({"r": [], "n": 0, "q": "f3daa3"}, EMPTY),
    ({"treffer": [], "anzahl": 0, "vom": "2026-05-14", "next": None}, EMPTY),
    ({"errors": [], "language": "en", "failed": 0}, OK),
    ({"r": [], "n": 3, "q": "f3daa3"}, OK),
    ({"r": [], "q": "f3daa3"}, OK),
    ({"r": ["a"], "n": 0, "q": "f3daa3"}, OK),
    ({"r": [], "n": 0, "hint": "12 are in another list"}, OK),
    ({"items": [], "total": 0, "query": "x", "took_ms": 4}, EMPTY),
    ({"data": None, "ok": True}, EMPTY),
    ([{"type": "text", "text": ""}], EMPTY),
    ({"content": [{"type": "text", "text": "No results found."}]}, EMPTY),
    ({"result": "no matches"}, EMPTY),
    ({"results": [1]}, OK),
    ({"name": "Bob", "files": []}, OK),
    ({"results": 0, "data": "x"}, OK),
    # acknowledgement
    ({"ok": True}, ACK),
    ({"archived": True}, ACK),
    ({"status": "success", "message": "Saved.", "code": 200}, ACK),
    ({"success": True, "detail": None}, ACK),
    ({"exists": True}, OK),
    ({"ok": True, "id": 17}, OK),
    ({"a": None}, OK),
    ({"message": "x" * 300}, OK),
    # what only wraps something
    ({"result": {"output": {"data": {"status": "running"}}}}, PENDING),
    ({"result": {"value": 3}}, OK),
    ([{"type": "image"}], OK),
    ([{"text": 3}], OK),
    ([1, 2], OK),
    ([[]], OK),
]


@pytest.mark.parametrize(("value", "outcome"), STRUCTURES)
def test_structures_are_told_by_their_fields(value: object, outcome: Outcome) -> None:
    assert classify(value, deep=True) is outcome


@pytest.mark.parametrize(("value", "outcome"), STRUCTURES)
def test_json_text_says_what_the_structure_says(value: object, outcome: Outcome) -> None:
    assert classify(f"\n{json.dumps(value, indent=1)}\n", deep=True) is outcome


@pytest.mark.parametrize("value", [v for v, _ in STRUCTURES])
def test_without_deep_structures_are_not_read(value: object) -> None:
    assert classify(value) is OK


def test_json_text_may_be_followed_by_a_remark() -> None:
    assert classify('{"error": "no name"}\n[note: the same again]', deep=True) is ERROR
    assert classify('{"status": "running"}\n{"status": "done"}', deep=True) is OK


def test_json_text_that_is_too_long_is_a_text() -> None:
    value = {"status": "running", "log": "x" * 1_000}
    assert classify(json.dumps(value), deep=True) is PENDING
    assert classify(json.dumps(value | {"log": "x" * 40_000}), deep=True) is OK


class Job(pydantic.BaseModel):
    status: str


@dataclasses.dataclass
class Answer:
    results: list[str]


class Lazy(Mapping[str, object]):
    def __getitem__(self, key: str) -> object:
        raise LookupError

    def __iter__(self) -> Iterator[str]:
        yield "status"

    def __len__(self) -> int:
        return 1


class Nothing(Lazy):
    def __iter__(self) -> Iterator[str]:
        return iter(())


class Hostile:
    def __getattribute__(self, name: str) -> object:
        raise RuntimeError(name)


def test_objects_are_read_like_structures() -> None:
    assert classify(Job(status="running"), deep=True) is PENDING
    assert classify(Job(status="sunny"), deep=True) is OK
    assert classify(Answer([]), deep=True) is EMPTY
    assert classify(Answer(["x"]), deep=True) is OK


@pytest.mark.parametrize("deep", [False, True])
def test_hostile_values_raise_nothing(deep: bool) -> None:
    ring: list[object] = []
    ring.append(ring)
    for make in (Lazy, Hostile, lambda: ring, lambda: iter([]), lambda: "[" * 30_000):
        assert classify(make(), deep=deep) is OK


def test_structures_without_fields_are_empty() -> None:
    assert classify("{ }", deep=True) is EMPTY
    assert classify(Nothing(), deep=True) is EMPTY


def test_wrappers_in_wrappers_end() -> None:
    value: object = "no results"
    for _ in range(20):
        value = {"result": value}
    assert classify(value, deep=True) is OK
    assert classify('{"result":' * 900 + "1" + "}" * 900, deep=True) is OK


@given(st.text(), st.booleans())
def test_any_text_has_an_outcome(text: str, deep: bool) -> None:
    assert classify(text, deep=deep) is not Outcome.UNKNOWN


@given(st.text(min_size=201).filter(lambda text: not text.lstrip().startswith(("{", "["))))
def test_a_long_text_is_never_told_by_words_alone(text: str) -> None:
    assert classify(f"x {text}", deep=True) in {OK, TRUNCATED}
