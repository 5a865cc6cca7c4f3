"""Step files: what a step says, and what is wrong with one that says nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard.core.model import MISSING, Kind, Sighting
from otel_loopguard.dialects.steps import sightings

SECOND = 1_000_000_000
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
KEYS = [
    *("tool", "args", "result", "error", "text", "thought", "usage", "finish_reason", "finish"),
    *("round", "agent", "run", "dt_s", "ts", "duration_s", "target", "chunk"),
    *("tokens_before", "tokens_after"),
]


def read(*steps: object) -> list[tuple[str, Sighting]]:
    return list(sightings({"id": "a", "steps": list(steps)}, 7))


def one(**step: Any) -> Sighting:
    ((_, seen),) = read(step)
    return seen


def test_a_tool_call_says_what_was_asked_and_given() -> None:
    seen = one(kind="tool", tool="look", args={"q": 1}, result="a page", agent="ann", round=3)
    assert (seen.kind, seen.action, seen.args, seen.result) == (
        Kind.TOOL,
        "look",
        {"q": 1},
        "a page",
    )
    assert (seen.agent, seen.round, seen.error, seen.span) == ("ann", "3", None, (7, 1))


def test_null_is_not_captured_and_blank_is_blank() -> None:
    assert one(kind="tool", tool="look", args=None, result=None).result is MISSING
    assert one(kind="tool", tool="look", result="").result == ""


def test_a_failure_without_a_result_is_the_result() -> None:
    seen = one(kind="tool", tool="look", error="no such page")
    assert (seen.result, seen.error) == ("no such page", "error")
    assert one(kind="tool", tool="look", error=True, result="404").result == "404"


def test_a_model_says_a_text_or_only_thinks_it() -> None:
    usage = {"input": 5, "output": 2}
    seen = one(kind="model", text="so", thought="hm", usage=usage, finish_reason="stop")
    assert (seen.result, seen.thought, seen.finish) == ("so", "hm", "stop")
    assert (seen.tokens, seen.output_tokens) == (7, 2)
    seen = one(kind="model", text="hm", thought=True)
    assert (seen.result, seen.thought) == (MISSING, "hm")
    seen = one(kind="model", thought="hm")
    assert (seen.result, seen.thought) == ("", "hm")


def test_a_compaction_says_how_much_it_freed() -> None:
    seen = one(kind="compact", tokens_before=900, tokens_after=100)
    assert (seen.tokens, seen.output_tokens) == (900, 100)


def test_time_goes_by_gaps_or_by_a_clock() -> None:
    steps = ({"kind": "user", "dt_s": 2, "duration_s": 3}, {"kind": "user", "dt_s": 1})
    times = [(seen.start_ns, seen.end_ns) for _, seen in read(*steps, {"kind": "user", "ts": 9})]
    assert times == [
        (2 * SECOND, 5 * SECOND),
        (6 * SECOND, 6 * SECOND),
        (9 * SECOND, 9 * SECOND),
    ]


def test_pieces_of_a_stream_are_one_text_with_the_number_of_the_last() -> None:
    def piece(text: str, agent: str) -> dict[str, object]:
        return {"kind": "model", "text": text, "chunk": True, "agent": agent}

    seen = [one for _, one in read(piece("a", "x"), piece("b", "x"), piece("c", "y"))]
    assert [(each.result, each.span) for each in seen] == [("ab", (7, 2)), ("c", (7, 3))]


def test_steps_belong_to_the_runs_that_they_name() -> None:
    assert [run for run, _ in read({"kind": "user", "run": 4}, {"kind": "user"})] == ["4", ""]


@pytest.mark.parametrize(
    "step",
    [
        [],
        "tool",
        {},
        {"kind": "dance"},
        {"kind": "tool", "ts": "noon"},
        {"kind": "tool", "dt_s": float("inf")},
        {"kind": "model", "usage": {"input": "many"}},
        {"kind": "model", "usage": 5},
    ],
)
def test_a_broken_step_is_named(step: object) -> None:
    with pytest.raises(ValueError, match=r"^step 2: "):
        read({"kind": "user"}, step)


@given(st.dictionaries(st.sampled_from(KEYS), anything), st.sampled_from([*Kind]))
def test_any_step_is_read_or_named(step: dict[str, object], kind: Kind) -> None:
    try:
        ((_, seen),) = read({**step, "kind": kind.value})
    except ValueError:
        return
    assert isinstance(seen.agent, str | None)
    assert isinstance(seen.round, str | None)
    assert isinstance(seen.tokens, int)
    assert isinstance(seen.end_ns, int)
