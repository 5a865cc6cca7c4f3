"""constraint_drift: plans that do not move on, and the neighbours that are left alone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard.core import plans
from otel_loopguard.core.detectors import ConstraintDrift
from otel_loopguard.core.model import MISSING, Kind, Sighting
from otel_loopguard.core.plans import plan_of
from tests.core.steps import PAGE, Spoken, call, make_guard, observe, page, seen, utterances

DRIFT = "constraint_drift"
ITEMS = ["Read the report on the third axis", "Draft the letter", "Send it to the branch in Ulm"]


def plan(states: str, result: object = "ok", items: list[str] = ITEMS, **more: object) -> Sighting:
    """One letter a state."""
    rows = [{"content": text, "status": each} for text, each in zip(items, states, strict=True)]
    return Sighting(Kind.TOOL, "note", args={"list": rows}, result=result, **more)  # type: ignore[arg-type]


def spoken(*steps: Sighting) -> list[Spoken]:
    return [each for each in utterances(steps) if each[1] == DRIFT]


ROWS = [{"content": text, "status": "o"} for text in ITEMS]
TO_AND_FRO = ["ooo", "xoo", "oxo", "oox", "xoo", "oox", "oxo", "xoo"]


def test_items_that_go_to_and_fro() -> None:
    assert spoken(*map(plan, TO_AND_FRO)) == [(7, DRIFT, "warning")]


@pytest.mark.parametrize("result", [MISSING, "", "saved"])
def test_whatever_the_answer(result: object) -> None:
    assert spoken(*[plan(each, result) for each in TO_AND_FRO]) == [(7, DRIFT, "warning")]


def test_as_json_text_in_other_cases_and_order() -> None:
    steps: list[Sighting] = []
    for at, states in enumerate(TO_AND_FRO):
        items = [text.upper() if at % 2 else text for text in ITEMS]
        args = plan(states, items=items).args
        assert isinstance(args, dict)
        rows = args["list"][:: -1 if at % 3 else 1]
        steps.append(plan(states)._replace(args=json.dumps({"list": rows})))
    assert spoken(*steps) == [(7, DRIFT, "warning")]


def test_a_status_that_is_worded_anew_each_time() -> None:
    steps = [plan(["o", "o", f"attempt {n}"]) for n in range(9)]  # type: ignore[arg-type]
    assert spoken(*steps) == [(8, DRIFT, "warning")]


def test_what_is_learned_between_halves_what_a_plan_counts() -> None:
    laps = [*TO_AND_FRO, "oxo", "oox", "xoo", "oxo"]
    steps = [step for n, each in enumerate(laps)
             for step in (plan(each), call("search", n, f"{n} {PAGE}"))]  # fmt: skip
    assert [each[0] for each in spoken(*steps)] == [19]


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([plan(each) for each in ["ooo", "xoo", "+oo", "+xo", "++o", "++x", "+++"]],
                     id="one after the other is done"),
        pytest.param([plan(each) for each in ["ooo", "xoo", "oxo", "oox", "xoo", "oox"]],
                     id="three times"),
        pytest.param([plan("oxo")] * 2 + [plan("ooo")] * 2 + [plan("xoo"), plan("ooo")],
                     id="mostly as it was"),
        pytest.param([plan(each, MISSING, error="Busy") for each in TO_AND_FRO * 2], id="failures"),
        pytest.param([plan("oxo")._replace(args={"to": n, "list": ROWS}) for n in range(9)],
                     id="the same list, sent elsewhere"),
        pytest.param([step for n, each in enumerate(TO_AND_FRO * 2)
                      for step in (plan(each), call("edit", n, "ok"))], id="something is changed"),
        pytest.param([step for each in TO_AND_FRO * 2
                      for step in (plan(each), seen(Kind.EFFECT))], id="changed from outside"),
        pytest.param([step for each in TO_AND_FRO * 2 for step in (plan(each), seen(Kind.USER))],
                     id="the user speaks"),
        pytest.param([plan(each, " ".join(f"fact {n}.{i}" for i in range(60)))
                      for n, each in enumerate(TO_AND_FRO * 2)],
                     id="the answers are news"),
        pytest.param([plan("o" * n, items=[f"Step number {i}" for i in range(n)])
                      for n in range(2, 12)], id="a plan in the making"),
    ],
)  # fmt: skip
def test_what_is_no_drift(steps: list[Sighting]) -> None:
    assert spoken(*steps) == []


SAYS = [f"I will now see to the {each}, and to nothing else than that." for each in ITEMS]


def replans(states: str, *, result: object = "ok", says: list[str] = SAYS) -> list[Sighting]:
    """A plan in other words and a text, in turns, nine times."""
    return [
        step
        for n in range(9)
        for step in (
            plan(states, result, [f"{each} {n}" for each in ITEMS]),
            seen(Kind.MODEL, result=says[n % len(says)]),
        )
    ]


def test_who_only_plans_anew_and_says_so_does_nothing() -> None:
    assert utterances(replans("ooo"))[0][1:] == ("reflection_paralysis", "warning")


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(replans("xoo"), id="something is begun"),
        pytest.param(replans("ooo", says=[f"{page(n)[:80]} {n}" for n in range(9)]), id="says"),
        pytest.param(
            [
                step
                for n, each in enumerate(replans("ooo"))
                for step in (each, call("read", n, f"{PAGE}{n}"))
            ],
            id="does",
        ),
        pytest.param(
            [each._replace(args={"q": n}) if each.action == "note" else each
             for n, each in enumerate(replans("ooo"))], id="no plans",
        ),
    ],
)  # fmt: skip
def test_who_plans_and_gets_on(steps: list[Sighting]) -> None:
    assert [each for each in utterances(steps) if each[1] == "reflection_paralysis"] == []


def test_never() -> None:
    guard = make_guard(detectors=[ConstraintDrift(plans=0)])
    assert utterances(map(plan, TO_AND_FRO), guard) == []


def test_the_evidence_quotes_nothing() -> None:
    (finding,) = [
        each.finding
        for observation in observe(map(plan, TO_AND_FRO))
        for each in observation.utterances
        if each.finding.pattern.value == DRIFT
    ]
    assert finding.evidence == "note wrote down the same plan 4 times and no item of it moved on"


def test_memory_is_bounded() -> None:
    guard = make_guard()
    for n in range(200):
        step = plan([str(n), "o", "x"])._replace(action=f"note {n // 20}")  # type: ignore[arg-type]
        guard.observe("run", step)
    episode = guard._runs.get("run")
    assert episode is not None
    kept = episode.deeds.plans
    assert kept is not None
    assert len(kept._written) == plans.MAX_TOOLS
    sizes = [len(states) for each in kept._written.values() for states in each.states.values()]
    assert max(sizes) == plans.MAX_STATES
    episode.condense()
    assert episode.deeds.plans is None


@pytest.mark.parametrize(
    "args",
    [
        {"list": [{"content": "only one"}]},
        {"list": [{"content": "one"}, "two"]},
        {"list": [{"n": 1}, {"n": 2}]},
        {"list": [{"content": "a long text"}, {"status": "done"}]},
        {"list": ["one", "two"]},
        {"list": [{"content": str(n)} for n in range(plans.MAX_ITEMS + 1)]},
        '{"list": [{"content": "one"}, {"content": }]}',
        '{"list": 3}',
        MISSING,
        "text",
        None,
    ],
)
def test_what_is_no_plan(args: object) -> None:
    assert plan_of(args) is None


values = st.one_of(st.text(max_size=9), st.integers(), st.none(), st.lists(st.none(), max_size=2))
rows = st.lists(st.dictionaries(st.sampled_from("ab"), values), max_size=4)


@given(st.lists(rows, max_size=20))
def test_any_list_is_fine(lists: list[list[dict[str, object]]]) -> None:
    observe([Sighting(Kind.TOOL, "note", args={"list": each}, result="ok") for each in lists])
