"""Sightings of calls that the response that asked for them ties together."""

from __future__ import annotations

import pytest

from otel_loopguard.core.fingerprint import Fingerprinter
from otel_loopguard.core.model import MISSING, Kind, Sighting, Source
from otel_loopguard.dialects import Asked, Reading, Role
from otel_loopguard.dialects.asked import MAX_ASKED, AskedCalls

ARGS = {"query": "x"}


KEY = Fingerprinter(b"key").of_args(ARGS)


@pytest.fixture(params=["eager", "lazy"])
def calls(request: pytest.FixtureRequest) -> AskedCalls:
    return AskedCalls(Fingerprinter(b"key"), lazily=request.param == "lazy")


def note(calls: AskedCalls, *asked: Asked, at_ns: int = 10, run: str = "run") -> None:
    calls.note(run, Reading(Role.MODEL, (), None, None, "genai", asked), f"round-{at_ns}", at_ns)


def seen(call_id: str | None = None, args: object = MISSING, name: str = "search") -> Sighting:
    return Sighting(Kind.TOOL, name, Source.SPAN, args=args, call_id=call_id)


def test_a_result_that_an_execution_has_shown_is_not_seen_again(calls: AskedCalls) -> None:
    note(calls, Asked("a", "search", ARGS))
    shown = calls.complete("run", seen("a"), None)
    assert shown is not None
    assert (shown.round, shown.args_key) == ("round-10", KEY)
    assert calls.complete("run", seen("a"), 20) is None
    assert calls.complete("run", seen("a"), None) is not None, "another attempt"


def test_two_spans_of_one_request_carry_a_result_once(calls: AskedCalls) -> None:
    """Also where the ids are the same in each round, and the spans stand side by side."""
    for at_ns in (10, 110):
        for later in (0, 1):
            note(calls, Asked("call_0", "search", ARGS), at_ns=at_ns + later)
    assert calls.complete("run", seen("call_0"), 200) is not None
    note(calls, Asked("call_0", "search", ARGS), at_ns=210)
    assert calls.complete("run", seen("call_0"), 200) is None
    note(calls, Asked("call_0", "search", ARGS), at_ns=211)
    assert calls.complete("run", seen("call_0"), 300) is not None


def test_an_execution_without_an_id_is_found_by_its_arguments(calls: AskedCalls) -> None:
    note(calls, Asked("a", "search", {"query": "y"}), Asked("b", "search", ARGS))
    shown = calls.complete("run", seen(args=ARGS), None)
    assert shown is not None
    assert shown.call_id == "b"
    assert shown.args_key is None, "it has arguments of its own"


def test_an_execution_without_an_id_and_equal_arguments_is_the_oldest(calls: AskedCalls) -> None:
    note(calls, Asked("a", "search"), Asked("b", "search", ARGS), Asked(None, "search"))
    ids = [
        shown.call_id
        for args in ({"args": ["x"]}, MISSING, ARGS)
        if (shown := calls.complete("run", seen(args=args), None))
    ]
    assert ids == ["a", "b", None]


def test_calls_of_other_runs_and_tools_are_others(calls: AskedCalls) -> None:
    note(calls, Asked("a", "search", ARGS), run="other")
    note(calls, Asked("b", "read", ARGS))
    for call_id in ("a", None):
        assert calls.complete("run", seen(call_id, ARGS), 20) == seen(call_id, ARGS)


def test_what_is_no_tool_call_stays_what_it_is(calls: AskedCalls) -> None:
    note(calls, Asked("a", "search", ARGS))
    model = Sighting(Kind.MODEL, "search", Source.SPAN)
    assert calls.complete("run", model, 20) is model


def test_arguments_are_known_by_their_digest_once_they_are_let_go_of() -> None:
    calls = AskedCalls(Fingerprinter(b"key"), lazily=True)
    note(calls, Asked("a", "search", ARGS))
    note(calls, Asked("a", "search", ARGS), run="ended")
    calls.settle(over={"ended"})
    assert [ask.args for ask in calls._asks.values()] == [MISSING, MISSING], "no content is kept"
    shown = [calls.complete(run, seen("a"), None) for run in ("run", "ended")]
    assert [each and (each.round, each.args_key) for each in shown] == [
        ("round-10", KEY),
        ("round-10", None),
    ]


def test_the_arguments_of_a_few_calls_are_held_at_most() -> None:
    calls = AskedCalls(Fingerprinter(b"key"), lazily=True)
    for n in range(3 * MAX_ASKED):
        note(calls, Asked(str(n), "search", ARGS))
    assert len(calls._unread) <= MAX_ASKED


def test_the_oldest_are_forgotten(calls: AskedCalls) -> None:
    note(calls, *(Asked(str(n), "search", ARGS) for n in range(MAX_ASKED + 1)))
    kept = [calls.complete("run", seen(each), None) for each in ("0", "1")]
    assert [shown and shown.round for shown in kept] == [None, "round-10"]
