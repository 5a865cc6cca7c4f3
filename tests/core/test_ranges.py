"""context_rot: parts that are read again, and the neighbours that are left alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard.core import ranges
from otel_loopguard.core.fingerprint import Fingerprinter
from otel_loopguard.core.model import MISSING, Kind, Outcome, Sighting
from otel_loopguard.core.ranges import extent_of
from tests.core.steps import PAGE, Spoken, call, make_guard, observe, seen, utterances

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ROT = "context_rot"
TOO_DEEP: list[object] = []
for _ in range(50):
    TOO_DEEP = [TOO_DEEP]
Ask = dict[str, object]


def by_length(start: int, length: int) -> Ask:
    return {"path": "a.py", "offset": start, "limit": length}


def by_end(start: int, length: int) -> Ask:
    return {"path": "a.py", "from": start, "to": start + length - 1}


def by_names_unknown(start: int, length: int) -> Ask:
    return {"was": "a.py", "bis": start + length, "ab": start}


def by_pair(start: int, length: int) -> Ask:
    return {"path": "a.py", "view": [start, start + length - 1]}


WAYS = [by_length, by_end, by_names_unknown, by_pair]


def lines(start: int, length: int) -> str:
    return "\n".join(f"value_{n} = compute({n})" for n in range(start, start + length))


def read(args: object, result: object, **more: object) -> Sighting:
    return Sighting(Kind.TOOL, "open", args=args, result=result, **more)  # type: ignore[arg-type]


def reads(
    starts: Iterable[int], way: Callable[[int, int], Ask] = by_length, *, length: int = 40
) -> list[Sighting]:
    return [read(way(n, length), lines(n, length)) for n in starts]


def spoken(*steps: Sighting) -> list[Spoken]:
    return [each for each in utterances(steps) if each[1] == ROT]


@pytest.mark.parametrize("way", WAYS)
def test_a_second_sweep_cut_in_other_places(way: Callable[[int, int], Ask]) -> None:
    first, second = range(100, 500, 40), range(107, 460, 40)
    found = spoken(*reads(first, way), *reads(second, way))
    assert found == [(15, ROT, "warning"), (18, ROT, "critical")]


def test_a_row_of_rotating_overlapping_parts() -> None:
    starts = [1, 41, 81, 20, 61, 35, 75, 10]
    assert spoken(*reads(starts)) == [(8, ROT, "warning")]


def test_arguments_as_json_text() -> None:
    steps = [*reads(range(100, 500, 40)), *reads(range(107, 460, 40))]
    texts = [each._replace(args=json.dumps(each.args)) for each in steps]
    assert spoken(*texts) == spoken(*steps) != []


@pytest.mark.parametrize("text", [MISSING, "{} lines"])
def test_without_a_text_that_shows_it_a_range_has_to_be_read_in_full(text: object) -> None:
    def bare(starts: Iterable[int]) -> list[Sighting]:
        return [
            read(by_length(n, 40), f"{n} to {n + 40}" if isinstance(text, str) else text)
            for n in starts
        ]

    found = spoken(*bare(range(100, 900, 40)), *bare(range(107, 800, 40)))
    assert found == [(28, ROT, "warning"), (36, ROT, "warning")]


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(reads(range(1, 2_000, 40)), id="forward"),
        pytest.param(reads(range(2_000, 1, -40)), id="backward"),
        pytest.param(reads(range(1, 2_000, 30)), id="with some lines of context"),
        pytest.param(reads(range(1, 2_000, 40), by_end), id="forward, by their ends"),
        pytest.param([read(by_end(1, n), lines(1, n)) for n in range(50, 600, 50)],
                     id="more of it each time"),
        pytest.param([read({"offset": n, "limit": 40}, lines(n * 99, 40)) for n in range(1, 30)],
                     id="pages by their number"),
        pytest.param([read({"page": n, "size": 40}, MISSING) for n in [1, 9, 20, 41, 5, 6, 7, 8]],
                     id="pages by their number, not in order"),
        pytest.param([*reads(range(1, 400, 40)), *reads([20, 60, 100, 140])], id="four times"),
        pytest.param([step for n in range(20, 400, 40)
                      for step in (*reads([1, 41]), *reads([n]), call("edit", n, "ok"))],
                     id="something is changed between"),
        pytest.param([*reads(range(1, 400, 40)), seen(Kind.COMPACT), *reads(range(20, 400, 40))],
                     id="after a compaction"),
        pytest.param([*reads(range(1, 400, 40)), seen(Kind.USER), *reads(range(20, 400, 40))],
                     id="after a user turn"),
        pytest.param([*reads(range(1, 200, 40)), *reads([20, 50]), *reads([60] * 9)],
                     id="one part again and again"),
        pytest.param([read({"x": a, "y": b}, "clicked the button") for a, b in
                      [(10, 90), (20, 60), (30, 50), (12, 80), (14, 70), (33, 44), (35, 39)]],
                     id="points on a screen"),
        pytest.param([read({"a": a, "b": a + 7}, MISSING) for a in range(1, 40, 3)],
                     id="numbers that are no range, results unknown"),
        pytest.param([read(by_end(500 - n, 2 * n), "17 rows") for n in [200, 90, 40, 20, 9, 4, 2]],
                     id="closer and closer"),
        pytest.param([read(by_length(n % 160, 40), lines(n * 1_000, 40))
                      for n in range(1, 1_000, 20)], id="the same part says something else"),
        pytest.param([read(by_length(n, 40), lines(n, 40), error="Busy", outcome=Outcome.ERROR)
                      for n in [1, 20, 10, 30, 5, 15, 25]], id="failures"),
    ],
)  # fmt: skip
def test_what_is_no_reading_again(steps: list[Sighting]) -> None:
    assert spoken(*steps) == []


def test_another_source_is_another_thing() -> None:
    steps = [
        read({**by_length(n, 40), "path": f"{n}.py"}, lines(n * 1_000, 40))
        for n in range(1, 400, 20)
    ]
    assert spoken(*steps) == []


def test_what_is_learned_between_halves_what_a_read_counts() -> None:
    sweep, other = reads(range(107, 460, 40)), [call("search", n, f"{n} {PAGE}") for n in range(9)]
    steps = [step for pair in zip(sweep, other, strict=True) for step in pair]
    found = spoken(*reads(range(100, 500, 40)), *steps)
    assert [each[0] for each in found] == [27]


def test_what_was_read_long_ago_is_no_row() -> None:
    rounds = [call("search", n, f"{n} {PAGE}") for n in range(31)]
    steps = [*reads(range(100, 500, 40)), *reads([107, 147, 187, 227]), *rounds, *reads([267])]
    assert spoken(*steps) == []


def test_waiting_is_no_reading_again() -> None:
    steps = [*reads(range(100, 500, 40)), *reads(range(107, 460, 40))]
    minute = 60_000_000_000
    slow = [
        each._replace(start_ns=n * minute, end_ns=n * minute + 1) for n, each in enumerate(steps, 1)
    ]
    assert spoken(*slow) == []


def test_the_evidence_quotes_nothing() -> None:
    (finding,) = [
        each.finding
        for observation in observe([*reads(range(100, 500, 40)), *reads(range(107, 300, 40))])
        for each in observation.utterances
        if each.finding.pattern.value == ROT
    ]
    assert finding.evidence == "5 parts that open read had been read already"
    assert (finding.wasted_calls, finding.first_iteration) == (5, 11)


def test_memory_is_bounded() -> None:
    guard = make_guard()
    for n in range(400):
        step = read({**by_length(n * 700, 700), "path": str(n % 20)}, lines(n * 700, 700))
        guard.observe("run", step)
    episode = guard._runs.get("run")
    assert episode is not None
    kept = episode.deeds.ranges
    assert kept is not None
    assert len(kept._sources) <= ranges.MAX_SOURCES
    assert all(len(each._reads) <= ranges.MAX_READS for each in kept._sources.values())
    assert len(kept._known) + len(kept._older) <= ranges.MAX_KNOWN
    episode.condense()
    assert episode.deeds.ranges is None


numbers = st.integers(-5, 200)
args_ = st.dictionaries(
    st.sampled_from("abcd"),
    st.one_of(numbers, st.lists(numbers, max_size=3), st.text(max_size=5), st.booleans()),
    max_size=4,
)


@given(st.lists(st.tuples(args_, st.sampled_from([MISSING, "", "x", lines(1, 5)])), max_size=40))
def test_any_arguments_are_fine(calls: list[tuple[Ask, object]]) -> None:
    observe([read(*each) for each in calls])


@pytest.mark.parametrize(
    "args",
    [
        {"from": 1},
        {"from": 1, "to": 2, "step": 3},
        {"from": 1, "to": -1},
        {"from": True, "to": 2},
        {"pair": [1, 2, 3]},
        {"pair": [1, "2"]},
        {"pair": [1, 2], "other": [3, 4]},
        {"from": 1, "to": 2, "of": TOO_DEEP},
        '{"from": 1, "to": 2, of}',
        '[{"from": 1, "to": 2}]',
        MISSING,
        None,
    ],
)
def test_what_is_no_part(args: object) -> None:
    assert extent_of(Fingerprinter(b"key"), "open", args, "text") is None
