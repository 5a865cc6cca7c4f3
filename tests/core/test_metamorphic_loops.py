"""What must not change the verdict on a loop does not, and what must change it does: on loops made
up.
"""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from otel_loopguard.core.records import WAIT_NS
from tests.core.relations import (
    Case,
    after_healthy_steps,
    each_step,
    in_rounds,
    moved,
    translated,
    verdict,
    verdicts_interleaved,
    with_double_gaps,
    with_keys_in_any_order,
    with_neutral_names,
    with_other_agents,
    with_rounds_split,
    with_steps,
    with_talk,
    with_user_turn,
    words,
)

NAMES = st.sampled_from(["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"])
ARGS = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=4),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=5,
    ),
    max_size=4,
)
WARNED = 3
"""How many laps a loop has when it is warned of."""
few_examples = settings(max_examples=40)


@st.composite
def laps(draw: st.DrawFn, longest: int = 5) -> Case:
    """One lap of a loop: different calls, each with a result that says much, or with a failure."""
    random = Random(draw(st.integers(0, 10**6)))
    period = draw(st.integers(1, longest))
    gap = draw(st.floats(0, 9))
    steps = [
        {
            "kind": "tool",
            "tool": f"{draw(NAMES)}_{at}",
            "args": draw(ARGS),
            "result": words(random, 50),
            "dt_s": gap,
        }
        for at in range(period)
    ]
    return {"id": "made", "steps": steps}


def repeated(lap: Case, times: int) -> Case:
    return with_steps(lap, lap["steps"] * times)


def failing(case: Case) -> Case:
    return each_step(case, lambda step: {**step, "error": step["result"], "result": None})


def first(case: Case) -> int | None:
    """The step at which a case is first spoken of."""
    return next((each.at for each in verdict(case)), None)


@few_examples
@given(laps())
def test_a_loop_is_told_at_the_end_of_its_third_lap(lap: Case) -> None:
    assert first(repeated(lap, 6)) == WARNED * len(lap["steps"])
    assert first(repeated(lap, WARNED - 1)) is None


@few_examples
@given(laps(), st.integers(0, 90), st.integers(0, 9))
def test_healthy_steps_before_a_loop_do_not_delay_it(lap: Case, count: int, seed: int) -> None:
    loop = repeated(lap, 6)
    assert verdict(after_healthy_steps(loop, count, seed)) == moved(verdict(loop), count)


@few_examples
@given(laps(), st.integers(0, 99), st.booleans())
def test_names_keys_and_language_of_a_loop_do_not_matter(lap: Case, seed: int, fails: bool) -> None:
    loop = failing(repeated(lap, 6)) if fails else repeated(lap, 6)
    said = verdict(loop)
    assert said
    assert verdict(with_neutral_names(loop)) == said
    assert verdict(with_keys_in_any_order(loop, seed)) == said
    assert verdict(translated(loop)) == said


@few_examples
@given(laps(), st.integers(0, 10**6))
def test_what_is_said_between_calls_does_not_hide_a_loop(lap: Case, seed: int) -> None:
    loop = repeated(lap, 6)
    told = [each._replace(at=2 * each.at) for each in verdict(loop)]
    assert verdict(with_talk(loop, seed)) == told


@few_examples
@given(st.integers(12, 60), st.integers(0, 10**6), st.integers(0, 40))
def test_a_text_again_and_again_is_told_whatever_its_language(
    length: int, seed: int, count: int
) -> None:
    said = words(Random(seed), length)
    loop = {"id": "made", "steps": [{"kind": "model", "text": said, "agent": "a"}] * 8}
    told = verdict(loop)
    assert told
    assert told[0].at <= 5
    assert verdict(translated(loop)) == told
    assert verdict(with_other_agents(loop)) == told
    calls = [
        {"kind": "tool", "tool": "look", "args": {"n": n}, "result": words(Random(n), 40)}
        for n in range(count)
    ]
    assert verdict(with_steps(loop, [*calls, *loop["steps"]])) == moved(told, count)


@few_examples
@given(st.integers(12, 60), st.integers(0, 10**6))
def test_texts_that_differ_are_no_loop(length: int, seed: int) -> None:
    random = Random(seed)
    steps = [{"kind": "model", "text": words(random, length)} for _ in range(12)]
    assert verdict({"id": "made", "steps": steps}) == []


@few_examples
@given(laps(), st.data())
def test_a_user_turn_starts_the_count_anew(lap: Case, data: st.DataObject) -> None:
    size = len(lap["steps"])
    at = data.draw(st.integers(1, WARNED * size - 1))
    loop = with_user_turn(repeated(lap, 6), at)
    assert first(loop) == at + 1 + WARNED * size


@few_examples
@given(laps())
def test_after_a_warning_and_a_user_turn_a_relapse_needs_half_as_many(lap: Case) -> None:
    size = len(lap["steps"])
    loop = with_user_turn(repeated(lap, 2 * WARNED), WARNED * size)
    again = [each.at for each in verdict(loop) if each.at > WARNED * size + 1]
    assert again[0] == WARNED * size + 1 + (WARNED + 1) // 2 * size


@few_examples
@given(laps())
def test_a_parallel_round_is_one_lap_whether_split_or_not(lap: Case) -> None:
    size = len(lap["steps"])
    parallel = in_rounds(repeated(lap, 6), size)
    reported = first(parallel)
    assert reported is not None
    assert (WARNED - 1) * size < reported <= WARNED * size
    assert verdict(with_rounds_split(parallel)) == verdict(repeated(lap, 6))


@few_examples
@given(laps(longest=1), st.integers(2, 6))
def test_equal_calls_in_one_round_are_one_until_split(lap: Case, times: int) -> None:
    round_ = in_rounds(repeated(lap, times), times)
    assert verdict(round_) == []
    assert bool(verdict(with_rounds_split(round_))) == (times >= WARNED)


@few_examples
@given(laps())
def test_double_gaps_matter_only_where_they_become_a_wait(lap: Case) -> None:
    gap = sum(step["dt_s"] for step in lap["steps"])
    loop = repeated(lap, 6)
    waits_then = gap < WAIT_NS / 1e9 <= 2 * gap
    assert waits_then or verdict(with_double_gaps(loop)) == verdict(loop)


@few_examples
@given(laps(), laps(), st.integers(1, 4), st.integers(1, 4))
def test_loops_of_two_runs_do_not_mix(one: Case, other: Case, few: int, many: int) -> None:
    cases = (repeated(one, few), repeated(other, many))
    assert verdicts_interleaved(*cases) == [verdict(case) for case in cases]


@few_examples
@given(laps(), st.integers(0, 10**6))
def test_results_that_differ_are_no_loop(lap: Case, seed: int) -> None:
    random = Random(seed)
    loop = each_step(repeated(lap, 6), lambda step: {**step, "result": words(random, 50)})
    assert verdict(loop) == []
