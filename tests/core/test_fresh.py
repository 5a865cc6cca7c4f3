"""A call that is new is taken in fewer steps: that must come to the same as the long way."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard.core import guard as guard_module
from otel_loopguard.core.digest import digest
from otel_loopguard.core.model import Kind
from otel_loopguard.core.records import Moment, Once
from otel_loopguard.core.traits import Traits
from tests.core.relations import observe as observe_case
from tests.core.steps import START, call, failure, make_guard, page, seen

if TYPE_CHECKING:
    from collections.abc import Callable

    from otel_loopguard.core.model import Observation, Sighting, Step

CASES = Path(__file__).parents[1] / "cases"
RESULTS = [page(1), page(2), page(3), {"rows": [page(4)]}, page(5)[:90], "ok", "", "Error: no disk"]
RESULTS.append(f"Error: no disk. {page(7)}")
ARGS: list[object] = ["a", "b", {"offset": 10, "limit": 5}, {"offset": 20, "limit": 5}, ["x", "y"]]
CALLS = st.tuples(
    st.sampled_from(["search", "write_file", "get_status"]),
    st.sampled_from(ARGS),
    st.sampled_from(RESULTS),
)


@st.composite
def sightings(draw: st.DrawFn) -> list[Sighting]:
    """Steps of a run that come back often, in rounds and out of them, from one agent or two."""
    calls = draw(st.lists(CALLS, min_size=1, max_size=4))
    steps: list[Sighting] = []
    now = START
    for _ in range(draw(st.integers(1, 30))):
        start = now - draw(st.sampled_from([0, 0, 500_000_000]))
        now = max(now, start) + 1_000_000_000
        more: dict[str, Any] = {
            "start_ns": start,
            "end_ns": now,
            "agent": draw(st.sampled_from([None] * 6 + ["one", "two"])),
        }
        kind = draw(st.sampled_from(["call"] * 12 + ["failure", "model", "user", "effect"]))
        if kind == "call":
            more["round"] = draw(st.sampled_from([None] * 4 + ["r1", "r2"]))
            more["call_id"] = draw(st.sampled_from([None] * 4 + ["c1", "c2"]))
            steps.append(call(*draw(st.sampled_from(calls)), **more))
        elif kind == "failure":
            steps.append(failure("search", draw(st.sampled_from(ARGS)), **more))
        elif kind == "model":
            text = draw(st.sampled_from([page(6), "I look again.", ""]))
            steps.append(seen(Kind.MODEL, result=text, tokens=10, output_tokens=5, **more))
        else:
            steps.append(seen(Kind(kind), **more))
    return steps


def the_long_way(*given_: Any) -> Step:
    """A step of which it is not known that it is new."""
    return replace(digest(*given_), fresh=False)


def observe(steps: list[Sighting]) -> list[Observation]:
    guard = make_guard(tools={"get_status": Traits(poll=True)})
    return [guard.observe("run", step) for step in steps]


def plain(seen_: list[Observation]) -> list[Observation]:
    """What was observed, but for how it was."""
    return [replace(each, step=replace(each.step, fresh=False)) for each in seen_]


def both_ways(show: Callable[[], list[Observation]]) -> tuple[list[Observation], ...]:
    """What is observed as it is, and the long way."""
    short = show()
    guard_module.digest = the_long_way
    try:
        return plain(short), show()
    finally:
        guard_module.digest = digest


def test_the_labelled_cases_come_to_the_same() -> None:
    for path in sorted(CASES.glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            case = json.loads(line)
            short, long = both_ways(lambda case=case: observe_case(case))
            assert short == long, case["id"]


@given(sightings())
def test_a_new_call_counts_as_it_does_the_long_way(steps: list[Sighting]) -> None:
    short, long = both_ways(lambda: observe(steps))
    assert short == long


def test_most_calls_are_new() -> None:
    """Else the tests above would hold for a way that nobody goes."""
    steps = [call("search", n, page(n)) for n in range(5)]
    assert [each.step.fresh for each in observe(steps)] == [False, True, True, True, True]
    assert not any(each.step.fresh for each in both_ways(lambda: observe(steps))[1])


def test_what_came_once_is_read_like_its_record() -> None:
    once = Once("a", "r", Moment((1, 2), 3, 4, 5, 6), progress=7, epoch=8, replays=9)
    record = once.record()
    shared = {field.name for field in fields(record)} & set(dir(once))
    assert {"first", "latest", "like", "seen", "repeats", "weight", "result_key"} <= shared
    for name in (*shared, "renewed", "lives"):
        assert getattr(once, name) == getattr(record, name), name
