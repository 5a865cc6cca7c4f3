"""Bounds: no table outgrows its limit, whatever the steps; busy processes condense idle runs."""

from __future__ import annotations

import random

from otel_loopguard.core import alerts, callids, cycles, evidence, records, runs, streaks
from otel_loopguard.core.episode import Episode
from otel_loopguard.core.model import Kind, Outcome
from otel_loopguard.core.records import newest, remember
from otel_loopguard.core.runs import Runs
from tests.core.steps import call, make_guard, other, tool


def test_a_table_drops_its_oldest_entry() -> None:
    table: dict[str, int] = {}
    for number, key in enumerate("abcab"):
        remember(table, key, number, 3)
    assert list(table.items()) == [("c", 2), ("a", 3), ("b", 4)]
    remember(table, "d", 5, 3)
    assert list(table) == ["a", "b", "d"]
    assert list(newest(table, 2)) == ["b", "d"]
    assert newest(table, 9) == table


def test_no_table_outgrows_its_limit() -> None:
    run, dice = Episode("run"), random.Random(7)
    widest = dict.fromkeys(["calls", "tools", "results", "ids", "round", "args"], 0)
    outcomes = list(Outcome)
    for number in range(10_000):
        if number % 997 == 0:
            run.add(other(dice.choice([Kind.MODEL, Kind.EFFECT, Kind.HANDOFF, Kind.COMPACT])))
        run.add(
            tool(
                f"tool {dice.randrange(100)}",
                dice.choice([None, str(dice.randrange(5000))]),
                dice.choice([None, str(dice.randrange(5000))]),
                outcome=dice.choice(outcomes),
                call_id=str(number),
                round=str(number // 150),
                masked_key=dice.choice([None, str(dice.randrange(5000))]),
            )
        )
        records_of = run._deeds.evidence
        of_tool = [run.tool.failures, run.tool.results] if run.tool else []
        sizes = {
            "calls": len(records_of.calls),
            "tools": len(records_of.tools),
            "results": len(records_of.results),
            "ids": len(run._call_ids._newer),
            "round": len(run._deeds.cycles._calls),
            "args": max((len(each.args) for each in of_tool if each), default=0),
        }
        widest = {key: max(widest[key], size) for key, size in sizes.items()}
    assert widest.pop("args") <= records.MAX_STREAK_ARGS
    assert widest == {
        "calls": evidence.MAX_CALLS,
        "tools": streaks.MAX_TOOLS,
        "results": evidence.MAX_RESULTS,
        "ids": callids.MAX_IDS,
        "round": cycles.MAX_ROUND + 1,
    }


def test_a_streak_keeps_eight_of_its_arguments() -> None:
    run = Episode("run")
    for number in range(20):
        run.add(tool(args=str(number), result=str(number), outcome=Outcome.ERROR, error="E"))
    assert run.tool is not None
    assert run.tool.failures is not None
    assert len(run.tool.failures.args) == len(run.tool.failures.texts) == records.MAX_STREAK_ARGS


def test_alerts_are_bounded_too() -> None:
    guard = make_guard()
    for number in range(100):
        for _ in range(3):
            guard.observe("run", call("search", number))
    run = guard._runs.get("run")
    assert run is not None
    assert len(run.alerts) == alerts.MAX_ALERTS


def test_the_newest_runs_are_awake_and_the_oldest_are_lost() -> None:
    table = Runs(runs.MAX_AWAKE + 2)
    for number in range(runs.MAX_AWAKE + 2):
        assert table.wake(str(number), None)[1] is None
        run = table.get(str(number))
        assert run is not None
        run.add(tool())
    assert (len(table), len(table._awake), len(table._asleep)) == (1002, 1000, 2)
    assert [each.newest is None for each in table][:4] == [True, True, False, False]
    asleep = table.get("0")
    assert asleep is not None
    assert table.wake("0", None) == (asleep, None)
    assert list(table._asleep) == ["1", "2"]
    _, lost = table.wake("new", None)
    assert lost is not None
    assert lost.run == "1"
    assert [each.run for each in table][:3] == ["2", "3", "4"]
    assert table.pop("2") is not None
    assert table.pop("2") is None
    assert table.get("2") is None


def test_a_loop_is_seen_in_a_thousand_runs_at_once() -> None:
    guard = make_guard()
    told = [
        guard.observe(str(number), call())
        for _ in range(5)
        for number in range(runs.MAX_AWAKE + 500)
    ]
    spoken = [each.finding.severity.label for one in told for each in one.utterances]
    assert spoken == ["warning"] * 1500 + ["critical"] * 1500
    assert guard.is_stuck("0")
    assert len(guard._runs) == 1500
