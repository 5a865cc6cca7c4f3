"""Healthy work is let alone: each call of the quiet cases, and each request, is decided before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from otel_loopguard.core.decision import Verdict
from otel_loopguard.core.model import Kind
from otel_loopguard.core.recovery import Remedy
from otel_loopguard.dialects.steps import sightings
from otel_loopguard.runtime import Runtime
from otel_loopguard.settings import from_env
from tests.accuracy.suites import committed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

EVERYTHING = frozenset(Remedy)
TTL_NS = 900 * 10**9
CASES = [case for suite in committed() for case in suite.cases]
QUIET = [case for case in CASES if not case["expect"]]
LOOPS = [case for case in CASES if case["expect"]]


def held_back(case: Mapping[str, Any]) -> list[tuple[int, str]]:
    """The calls of a case that would be held back, and the requests to a model that would be
    changed: each one's step, and the loop's pattern.
    """
    guard = Runtime(from_env({}, action="break")).guard
    held: list[tuple[int, str]] = []
    newest: dict[str, int] = {}
    for run, seen in sightings(case, 1):
        if seen.start_ns - newest.get(run, seen.start_ns) > TTL_NS:
            guard.end(run, "expired")  # as it would be by then
        newest[run] = seen.end_ns
        if seen.kind is Kind.TOOL:
            args_key = seen.args_key or guard.fingerprinter.of_args(seen.args)
            decision = guard.decide(run, seen.action, args_key, seen.call_id, seen.start_ns)
            if decision.finding is not None:
                assert decision.verdict is not Verdict.GO
                held.append((seen.span[1] if seen.span else 0, decision.finding.pattern.value))
        elif seen.kind is Kind.MODEL:
            advice = guard.advise(run, lambda: EVERYTHING)
            if advice.finding is not None:
                held.append((seen.span[1] if seen.span else 0, advice.finding.pattern.value))
        guard.observe(run, seen)
    return held


@pytest.mark.parametrize("case", [pytest.param(each, id=each["id"]) for each in QUIET])
def test_nothing_is_held_back_in_healthy_work(case: dict[str, Any]) -> None:
    assert held_back(case) == []


def test_loops_are() -> None:
    """So that the test above can fail."""
    assert sum(bool(held_back(case)) for case in LOOPS) > len(LOOPS) / 4
