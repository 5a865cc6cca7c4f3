"""Recorded spans, played as if they were open: whose step each one is."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from otel_loopguard.core.fingerprint import Fingerprinter
from otel_loopguard.core.model import MISSING, Kind, Outcome, Recorded, Source
from otel_loopguard.dialects import own
from otel_loopguard.dialects.replay import MAX_KNOWN, Replay, Told
from otel_loopguard.dialects.view import SpanView

TRACE = "a" * 32
OURS = {own.RUN_ID: "run", own.OUTCOME: "ok", own.ARGS_FINGERPRINT: "1" * 16}


def span(
    span_id: int,
    parent: int = 0,
    *,
    name: str = "work",
    at: tuple[int, int] = (0, 0),
    scope: str = "lib",
    is_error: bool = False,
    is_remote: bool = False,
    **said: Any,
) -> SpanView:
    parent_id = f"{parent:016x}" if parent else None
    return SpanView(
        name, "internal", TRACE, f"{span_id:016x}", parent_id, scope, at[0], at[1] or at[0] + 1,
        is_error, said, (), is_remote,
    )  # fmt: skip


def agent(span_id: int, parent: int = 0, called: str = "finder", **more: Any) -> SpanView:
    said = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": called}
    return span(span_id, parent, name=f"invoke_agent {called}", **said, **more)


def tool(span_id: int, parent: int = 0, called: str = "search", **more: Any) -> SpanView:
    said = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": called}
    return span(span_id, parent, name=f"execute_tool {called}", **said, **more)


def chat(span_id: int, parent: int = 0, **more: Any) -> SpanView:
    said = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    return span(span_id, parent, name="chat m", **said, **more)


def play(*spans: SpanView, replay: Replay | None = None) -> list[Told]:
    return list((replay or Replay(Fingerprinter(b"key"))).play(spans))


def steps(told: list[Told]) -> list[tuple[str, str]]:
    return [(each.run, each.sighting.action) for each in told if each.sighting is not None]


def key(number: int) -> str:
    return f"{number:016x}"


def test_the_order_in_the_file_does_not_matter() -> None:
    spans = [
        agent(1, at=(0, 100)),
        chat(2, 1, at=(1, 2)),
        tool(3, 1, at=(3, 4)),
        tool(4, 1, "read", at=(5, 6)),
    ]
    expected = play(*spans)
    assert steps(expected) == [(key(1), "m"), (key(1), "search"), (key(1), "read")]
    assert expected[-1] == Told(key(1), None, "finder", ""), "then the run is over"
    for order in permutations(spans):
        assert play(*order) == expected


def test_what_ends_at_once_ends_from_the_inside_out() -> None:
    told = play(agent(1, at=(0, 9)), agent(2, 1, "writer", at=(0, 9)), tool(3, 2, at=(0, 9)))
    assert steps(told) == [(key(2), "search"), (key(1), "writer")]
    assert [each.run for each in told if each.sighting is None] == [key(2), key(1)]


def test_a_sub_agent_is_a_run_of_its_own_and_a_layer_is_not() -> None:
    told = play(agent(1), agent(2, 1), tool(3, 2), agent(4, 1, "writer"), tool(5, 4))
    assert set(steps(told)) == {(key(1), "search"), (key(4), "search"), (key(1), "writer")}


def test_without_an_agent_the_local_root_is_the_run() -> None:
    assert steps(play(span(1), tool(2, 1))) == [(key(1), "search")]
    assert steps(play(tool(2, 1, is_remote=True))) == [(key(2), "search")]


def test_spans_without_their_parent_are_one_run() -> None:
    """As those of an agent that has not ended when the file was written."""
    assert steps(play(tool(2, 1), tool(3, 1))) == [(TRACE, "search")] * 2


def test_a_trace_in_pieces_is_still_one() -> None:
    replay = Replay(Fingerprinter(b"key"))
    assert steps(play(span(1), replay=replay)) == []
    assert steps(play(tool(2, 1), replay=replay)) == [(key(1), "search")]


def test_only_the_newest_spans_are_remembered() -> None:
    replay = Replay(Fingerprinter(b"key"))
    play(span(1), *(span(n) for n in range(2, MAX_KNOWN + 2)), replay=replay)
    assert steps(play(tool(20_001, 1), replay=replay)) == [(TRACE, "search")]
    assert steps(play(tool(20_002, 5), replay=replay)) == [(key(5), "search")]


def test_parents_in_a_circle() -> None:
    told = play(tool(1, 2, at=(0, 1)), tool(2, 3, "read", at=(0, 2)), tool(3, 1, "open", at=(0, 3)))
    assert [action for _, action in steps(told)] == ["search", "read", "open"]
    assert steps(play(tool(1, 1))) == [(TRACE, "search")]


def test_two_layers_of_one_call_are_one_step() -> None:
    told = play(agent(1), tool(2, 1, at=(0, 5)), tool(3, 2, at=(1, 3), scope="other"))
    assert steps(told) == [(key(1), "search")]


def test_a_call_inside_of_another_is_one_more() -> None:
    told = play(agent(1), tool(2, 1, at=(0, 5)), tool(3, 2, "fetch", at=(1, 3)))
    assert steps(told) == [(key(1), "fetch"), (key(1), "search")]


# -- spans that a hook of ours has told of --------------------------------------------------------


def test_our_digests_are_taken_as_they_are() -> None:
    said = {
        **OURS,
        own.RESULT_HASH: "2" * 16,
        own.RESULT_MASKED_HASH: "3" * 16,
        own.RESULT_LENGTH: 512,
        own.ITERATION: 7,
        own.SPAN_ORIGIN: own.MESSAGES,
        "gen_ai.tool.call.arguments": '{"a": 1}',
        "gen_ai.tool.call.result": "text",
    }
    (told,) = play(tool(2, 1, **said))
    seen = told.sighting
    assert told.run == "run"
    assert seen is not None
    assert seen.recorded == Recorded("2" * 16, "3" * 16, 512)
    assert (seen.args_key, seen.args) == ("1" * 16, MISSING)
    assert (seen.source, seen.round, seen.outcome) == (Source.MESSAGES, "7", Outcome.OK)
    assert seen.result == "text", "what looks at content still can"


def test_without_content_there_are_digests_still() -> None:
    (told,) = play(tool(2, 1, **OURS))
    assert told.sighting is not None
    assert told.sighting.recorded == Recorded(None, None, None)
    assert told.sighting.source is Source.HOOK
    assert told.sighting.round is None


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({own.ERROR_TYPE: "ValueError", own.OUTCOME: "error"}, "ValueError"),
        ({own.OUTCOME: "error"}, "error"),
        ({own.OUTCOME: "error", own.DEADLOCK: True}, "error"),
        ({own.OUTCOME: "ok", own.DEADLOCK: True}, None),
    ],
)
def test_our_mark_of_a_deadlock_is_no_failure(said: dict[str, Any], error: str | None) -> None:
    (told,) = play(tool(2, 1, is_error=True, **OURS | said))
    assert told.sighting is not None
    assert told.sighting.error == error
    (told,) = play(chat(2, 1, is_error=True, **{own.RUN_ID: "run"}, **said))
    assert told.sighting is not None
    assert told.sighting.error == (None if error == "error" and own.DEADLOCK in said else error)


def test_a_span_that_nothing_was_said_on_is_no_step() -> None:
    assert play(tool(2, 1, **{own.RUN_ID: "run"})) == []
    assert play(span(2, 1, **{own.RUN_ID: "run"}, scope=own.SCOPE)) == []


def test_our_spans_of_several_traces_are_one_run() -> None:
    replay = Replay(Fingerprinter(b"key"))
    told = [*play(tool(2, **OURS), replay=replay), *play(tool(3, **OURS), replay=replay)]
    assert {each.run for each in told if each.sighting} == {"run"}


def test_a_span_inside_of_ours_shows_the_same_call() -> None:
    told = play(agent(1), tool(2, 1, at=(0, 5), scope=own.SCOPE, **OURS), tool(3, 2, at=(1, 3)))
    assert steps(told) == [("run", "search")]
    other = tool(3, 2, "x", at=(1, 3))
    told = play(agent(1), tool(2, 1, at=(0, 5), scope=own.SCOPE, **OURS), other)
    assert steps(told) == [("run", "x"), ("run", "search")]


def test_a_span_around_one_that_we_have_told_of_shows_the_same_call() -> None:
    told = play(agent(1), tool(2, 1, at=(0, 5)), tool(3, 2, at=(1, 3), **OURS))
    assert steps(told) == [("run", "search")]


def test_our_agent_is_a_step_of_the_run_around_it() -> None:
    outer = agent(1, at=(0, 9), scope=own.SCOPE, **{own.RUN_ID: "outer"})
    inner = agent(2, 1, "writer", at=(1, 5), scope=own.SCOPE, **OURS | {own.RUN_ID: "inner"})
    told = play(outer, inner, tool(3, 2, at=(2, 3), **OURS | {own.RUN_ID: "inner"}))
    assert steps(told) == [("inner", "search"), ("outer", "writer")]
    agents = [each.sighting for each in told if each.sighting and each.sighting.kind is Kind.AGENT]
    assert [seen.args_key for seen in agents] == ["1" * 16]


def test_an_agent_that_is_nobodys_is_no_step() -> None:
    assert steps(play(agent(1, scope=own.SCOPE, **OURS))) == []
    assert steps(play(agent(1))) == []
    assert steps(play(span(1, **{"gen_ai.operation.name": "invoke_agent", **OURS}))) == []


def test_a_user_turn_comes_before_the_answer() -> None:
    first = chat(2, 1, at=(1, 2), **{own.RUN_ID: "run"})
    second = chat(3, 1, at=(5, 6), **{own.RUN_ID: "run", own.USER_TURN: True})
    told = [each.sighting for each in play(second, first) if each.sighting]
    assert [seen.kind for seen in told] == [Kind.MODEL, Kind.USER, Kind.MODEL]
    assert told[1].start_ns == 5


def test_a_model_that_said_nothing_is_told_from_one_that_was_not_captured() -> None:
    silent = '[{"role": "assistant", "parts": []}]'
    for captured, result in (({"gen_ai.output.messages": silent}, ""), ({}, MISSING)):
        (told,) = play(chat(2, 1, **{own.RUN_ID: "run", **captured}))
        assert told.sighting is not None
        assert told.sighting.result == result


def test_a_step_of_a_sub_agent_names_the_run_around_it() -> None:
    told = play(agent(1), agent(2, 1, "writer"), tool(3, 2), tool(4, 1, "read"))
    around = {each.sighting.action: each.sighting.parent for each in told if each.sighting}
    assert around == {"search": key(1), "read": None, "writer": None}
