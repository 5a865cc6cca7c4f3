"""What a structure says by its fields: flags, codes, states. One function a rule."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, cast

from otel_loopguard.core.model import Outcome
from otel_loopguard.core.phrases import failure_text_kind, is_acknowledgement
from otel_loopguard.core.sizes import SHORT
from otel_loopguard.core.words import ACKS, ENTITY_STATES, STATES, VERDICTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Fields = Mapping[str, object]  # keys in lower case, without "_" and "-"

_MAX_FIELDS: Final = 64
_SMALL: Final = 6  # fields that a report on a job has, where a record of something has more
_GOOD: Final = ("ok", "success", "succeeded", "successful")
_BAD: Final = ("iserror", "failed", "timedout")
_NO_ERROR: Final = frozenset({"", "none", "null", "no error", "false", "0"})
_LENGTH_REASONS: Final = frozenset({"length", "max_tokens", "max_output_tokens"})
_CODES: Final = {
    102: Outcome.PENDING,
    202: Outcome.PENDING,
    400: Outcome.INVALID_ARGS,
    401: Outcome.REFUSED,
    403: Outcome.REFUSED,
    422: Outcome.INVALID_ARGS,
    451: Outcome.REFUSED,
}
_DECISIONS: Final = ("decision", "permissiondecision", "behavior", "effect")
_LEAVE: Final = ("allow", "allowed", "permitted", "authorized", "isallowed")
_REASONS: Final = frozenset(
    {
        *("reason", "reasons", "message", "detail", "details", "explanation", "policy", "rule"),
        *(
            "permissiondecisionreason",
            "code",
            "type",
            "category",
            "guidance",
            "hint",
            "hookeventname",
        ),
    }
)
_COLLECTIONS: Final = frozenset(
    {
        *("results", "items", "data", "matches", "hits", "rows", "records", "documents"),
        *("entries", "files", "events", "output", "content"),
    }
)
_INNER: Final = frozenset(
    {
        *("result", "output", "content", "data", "text", "message", "response"),
        "hookspecificoutput",
    }
)
_AROUND: Final = frozenset(
    {
        *("query", "q", "page", "pagesize", "perpage", "limit", "offset", "cursor", "next"),
        *("took", "tookms", "total", "count", "ok", "success", "status", "statuscode", "code"),
        *("type", "iserror", "error"),
    }
)


def of_mapping(mapping: Mapping[str, object]) -> Outcome | None:
    """Returns what a mapping's first 64 fields say; None if nothing."""
    fields = _fields(mapping)
    outcomes = (rule(fields) for rule in _RULES)
    return next((outcome for outcome in outcomes if outcome is not None), None)


def wrapped_in(mapping: Mapping[str, object]) -> object:
    """Returns what a mapping is only the wrapper of, such as `{"result": ...}`; None if nothing."""
    fields = _fields(mapping)
    inner = [key for key, value in fields.items() if value and key not in _AROUND]
    return fields[inner[0]] if len(inner) == 1 and inner[0] in _INNER else None


def _fields(mapping: Mapping[str, object]) -> Fields:
    pairs = islice(mapping.items(), _MAX_FIELDS)
    return {key.replace("_", "").replace("-", "").lower(): value for key, value in pairs}


def _marked_failed(fields: Fields) -> Outcome | None:
    if _any_is(fields, _BAD, value=True) or _any_is(fields, _GOOD, value=False):
        return failure_text_kind(_message(fields))
    return None


def _with_error(fields: Fields) -> Outcome | None:
    """An `error` that is something; a number of errors is none. `errors` if there is only that."""
    for key in ("error", "exception"):
        error = fields.get(key)
        if isinstance(error, str) and error.strip().lower() not in _NO_ERROR:
            return failure_text_kind(error)
        if error is True or (isinstance(error, (dict, list)) and error):
            return failure_text_kind(_message(fields))
    if isinstance(fields.get("errors"), list) and [k for k, v in fields.items() if v] == ["errors"]:
        return Outcome.ERROR
    return None


def _coded(fields: Fields) -> Outcome | None:
    """A status code of HTTP, or a `code` beside a message."""
    for key in ("statuscode", "httpstatus", "httpcode", "status", "code"):
        code = fields.get(key)
        if type(code) is not int or (key == "code" and not _message(fields)):
            continue
        if code in _CODES:
            return _CODES[code]
        if 400 <= code < 600:
            return Outcome.ERROR
    return None


def _exited(fields: Fields) -> Outcome | None:
    """An exit code; 1 may be the answer of a search or a test."""
    codes = (fields.get(key) for key in ("exitcode", "returncode", "exitstatus"))
    return Outcome.ERROR if any(type(c) is int and c not in {0, 1} for c in codes) else None


def _cut_off(fields: Fields) -> Outcome | None:
    if _any_is(fields, ("truncated", "istruncated"), value=True):
        return Outcome.TRUNCATED
    reasons = (fields.get(key) for key in ("finishreason", "stopreason"))
    is_length = any(isinstance(r, str) and r.lower() in _LENGTH_REASONS for r in reasons)
    return Outcome.TRUNCATED if is_length else None


def _barred(fields: Fields) -> Outcome | None:
    """A gate that says no, and why; what else is said would be about something that was judged."""
    words = (fields.get(key) for key in _DECISIONS)
    no = any(isinstance(word, str) and word.strip().lower() in VERDICTS for word in words)
    if not no and not _any_is(fields, _LEAVE, value=False):
        return None
    rest = fields.keys() - {*_DECISIONS, *_LEAVE}
    return Outcome.REFUSED if rest <= _REASONS else None


def _stated(fields: Fields) -> Outcome | None:
    for key in ("status", "state", "phase", "jobstatus", "taskstatus", "runstatus"):
        word = fields.get(key)
        if isinstance(word, str) and len(word) <= 40:
            state = word.strip().lower().replace(" ", "_").replace("-", "_")
            if state in ENTITY_STATES and len(fields) <= _SMALL:
                return Outcome.PENDING
            for outcome, words in STATES.items():
                if state in words:
                    return (
                        failure_text_kind(_message(fields)) if outcome is Outcome.ERROR else outcome
                    )
    return None


def _waiting(fields: Fields) -> Outcome | None:
    waits = _any_is(fields, ("done", "finished", "ready", "iscomplete"), value=False)
    waits = waits or _any_is(fields, ("pending", "inprogress", "isrunning", "queued"), value=True)
    return Outcome.PENDING if waits else None


def _barren(fields: Fields) -> Outcome | None:
    """A collection without members, and nothing else but what stands around a collection.

    Where it has a name that is not known, a count of zero says that it is one.
    """
    found = [key for key in _COLLECTIONS if key in fields]
    if not found:
        found = [key for key, value in fields.items() if value == []]
        counted = any(type(value) is int and not value for value in fields.values())
        rest = {key: value for key, value in fields.items() if value and not _is_id(value)}
        return Outcome.EMPTY if found and counted and not rest.keys() - _AROUND else None
    if any(value and key not in _AROUND for key, value in fields.items()):
        return None
    return Outcome.EMPTY if all(fields[key] in ([], {}, None) for key in found) else None


def _is_id(value: object) -> bool:
    """Whether a value may be an id: one word with a digit in it."""
    return isinstance(value, str) and " " not in value and any(map(str.isdigit, value))


def _acknowledged(fields: Fields) -> Outcome | None:
    known = [(key, value) for key, value in fields.items() if value is not None]
    return Outcome.ACK if known and all(_is_ack(key, value) for key, value in known) else None


def _any_is(fields: Fields, keys: Iterable[str], *, value: bool) -> bool:
    return any(fields.get(key) is value for key in keys)


def _message(fields: Fields) -> str:
    """The text of a failure, wherever it stands."""
    for key in ("error", "message", "detail", "reason", "content"):
        text = fields.get(key)
        if isinstance(text, dict):
            text = cast("dict[str, object]", text).get("message")
        if isinstance(text, str) and text:
            return text
    return ""


def _is_ack(key: str, value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= SHORT and is_acknowledgement(value)
    if value is True:
        return key in ACKS
    return type(value) is int and 200 <= value <= 204


_RULES: Final[tuple[Callable[[Fields], Outcome | None], ...]] = (
    _marked_failed,
    _with_error,
    _coded,
    _exited,
    _cut_off,
    _barred,
    _stated,
    _waiting,
    _barren,
    _acknowledged,
)
