"""Recorded runs that went wrong in every way that a file can go wrong."""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from otel_loopguard.core.detectors import BUILTIN
from otel_loopguard.core.model import Kind, Pattern, Severity
from otel_loopguard.dialects.steps import sightings
from tests.core.steps import make_guard
from tests.fuzz import junk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from otel_loopguard.core.model import Observation, Sighting, Utterance

FILES = sorted((Path(__file__).parents[1] / "cases").glob("*.jsonl"))
KINDS = [kind.value for kind in Kind]
KEYS = (
    *("tool", "args", "result", "error", "text", "thought", "usage", "finish_reason", "round"),
    *("agent", "run", "dt_s", "ts", "duration_s", "target"),
)
MAX_RUNS = 40
ENDLESS = "endless"

Step = dict[str, Any]


class Tally:
    """What came of it.

    Attributes:
        steps: how many steps were shown to a guard.
        broken: how many cases had a step that is not of the format.
        spoken: how often the guard spoke.
        weights: how much memory the guard held, a few times.
    """

    def __init__(self) -> None:
        self.steps = self.broken = self.spoken = 0
        self.weights: list[int] = []


def cases(random: Random) -> Iterator[list[Step]]:
    """Mutated cases without end."""
    texts = [line for file in FILES for line in file.read_text("utf-8").splitlines()]
    while True:
        steps = json.loads(random.choice(texts))["steps"][: random.randrange(1, 120)]
        rate = random.choice([0.0, 0.02, 0.3])
        yield [each for step in steps for each in _mutated(random, step, rate)]


def _mutated(random: Random, step: Step, rate: float) -> Iterator[Step]:
    if random.random() >= rate:
        yield step
        return
    kind = random.randrange(7)
    if kind == 6:
        yield junk.value(random)
        return
    if kind == 0:
        return
    if kind == 1:
        yield from [step] * random.randrange(2, 7)
        return
    if kind == 2:
        yield {**step, "kind": random.choice(KINDS)}
        return
    key = random.choice([*step, *KEYS])
    if kind == 3:
        yield {name: held for name, held in step.items() if name != key}
    elif kind == 4 and isinstance(step.get(key), str):
        yield {**step, key: junk.mangled(random, step[key])}
    else:
        yield {**step, key: junk.value(random)}


def run(count: int, seed: int) -> Tally:
    """Show so many steps to guards: one sees all as one run without end, others as many runs."""
    tally, random = Tally(), Random(seed)
    endless, many = make_guard(), make_guard(max_runs=MAX_RUNS)
    for number, steps in enumerate(cases(random)):
        for run_id, sighting in _readable({"id": str(number), "steps": steps}, tally):
            for guard, name in ((endless, ENDLESS), (many, f"{number}:{run_id}")):
                tally.spoken += check(guard.observe(name, sighting))
        if tally.steps >= (len(tally.weights) + 1) * count / 4:
            tally.weights.append(junk.weight(endless._runs))
            assert len(many._runs) <= MAX_RUNS
        if tally.steps >= count:
            return tally
    raise AssertionError("the cases have an end")


def _readable(case: dict[str, Any], tally: Tally) -> list[tuple[str, Sighting]]:
    """What a case shows; nothing if it is broken, which is to be said by a ValueError."""
    try:
        seen = list(sightings(case, 1))
    except ValueError:
        tally.broken += 1
        return []
    tally.steps += len(seen)
    return seen


def check(seen: Observation) -> int:
    """Whether an observation is whole; returns how often the guard spoke."""
    assert seen.iteration >= 0
    assert seen.repeat_count >= 0
    for spoken in seen.utterances:
        check_utterance(spoken)
    return len(seen.utterances)


def check_utterance(spoken: Utterance) -> None:
    """Whether what the guard says is whole."""
    finding = spoken.finding
    assert finding.pattern in BUILTIN
    assert isinstance(finding.pattern, Pattern)
    assert finding.severity >= Severity.WARNING
    assert all((finding.identity, finding.evidence, finding.suggested_action, spoken.finding_id))
    assert finding.first_span
    assert finding.period >= 1
    assert finding.repeats >= 1
    assert 0 <= finding.first_iteration <= spoken.iteration
    assert finding.wasted_calls >= 0
    assert finding.wasted_tokens >= 0
    assert finding.wasted_seconds >= 0
    assert isfinite(finding.wasted_seconds)
    assert spoken.report_no >= 1
