"""Which series an expression watches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard.cli.promql import Selector, selectors


def names(expression: str) -> list[str | None]:
    return [each.name for each in selectors(expression)]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("loopguard_stuck_runs > 0", ["loopguard_stuck_runs"]),
        ("sum by (job, agent) (increase(a_total[5m])) > 0", ["a_total"]),
        ("sum(rate(a[5m:1m] offset 1d)) without (x) / b", ["a", "b"]),
        ("a * on (job) group_left (x) b", ["a", "b"]),
        ("a unless max_over_time(a[6h] offset 5m) or increase(c[5m])", ["a", "a", "c"]),
        ("topk(3, a) and on () vector(1) == bool 2", ["a"]),
        ('{__name__="x:y", job="b"}', ["x:y"]),
        ('{"loopguard.deadlocks", job="b"} > 1e3', ["loopguard.deadlocks"]),
        ('label_replace(a, "dst", "$1", "src", "(.*)")', ["a"]),
        ("a # not_b\n + c @ end()", ["a", "c"]),
        ('{job="b"}', [None]),
        ("Inf > NaN", []),
        ("", []),
    ],
)
def test_names(expression: str, expected: list[str | None]) -> None:
    assert names(expression) == expected


@pytest.mark.parametrize(
    ("matcher", "labels"),
    [
        ('x="1"', {"x"}),
        ('x=""', set()),
        ('x!="1"', set()),
        ('x=~"1|2"', {"x"}),
        ('x=~".*"', set()),
        ('x=~"|1"', set()),
        ('x!~"1"', set()),
        ('x="}", y="1",', {"x", "y"}),
    ],
)
def test_labels_that_a_series_must_have(matcher: str, labels: set[str]) -> None:
    assert selectors(f"a{{{matcher}}}") == [Selector("a", frozenset(labels))]


def test_who_asks_for_absence_wants_none() -> None:
    found = selectors("absent(sum(a)) and absent_over_time(b[1h]) or c")
    assert [(each.name, each.of_absence) for each in found] == [
        ("a", True),
        ("b", True),
        ("c", False),
    ]


@given(st.text(alphabet='ab_({})[]",=~! \n#by1', max_size=60))
def test_never_raises_and_comes_to_an_end(expression: str) -> None:
    for each in selectors(expression):
        assert each.name is None or each.name in expression
