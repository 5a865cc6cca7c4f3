"""Ways to change a recorded run of which one knows what they must do to its verdict.

A run is a case of a step file. Each function returns another case and leaves the given one alone.
"""

from __future__ import annotations

import re
from itertools import groupby, zip_longest
from random import Random
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, NamedTuple

from otel_loopguard.core.model import Severity
from otel_loopguard.dialects.steps import sightings
from tests.core.steps import make_guard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from otel_loopguard.core.guard import Guard
    from otel_loopguard.core.model import Observation

Step = dict[str, Any]
Case = dict[str, Any]

_WORD = re.compile(r"(?<![\w\\])[a-zA-Z]{3,}(?!\w)")
_MADE_UP = "qzkxjvbpygwfmucldrhsntoiae"
_VOCABULARY = str.maketrans(ascii_lowercase + ascii_lowercase.upper(), _MADE_UP + _MADE_UP.upper())


class Said(NamedTuple):
    """One time that the guard spoke: at which step, from 1 on, of which pattern, how bad."""

    at: int
    pattern: str
    severity: str


def said(observed: Iterable[Observation]) -> list[Said]:
    """What pages somebody, in order."""
    return [
        Said(each.step.span[1], spoken.finding.pattern.value, spoken.finding.severity.label)
        for each in observed
        for spoken in each.utterances
        if spoken.finding.severity >= Severity.WARNING and each.step.span
    ]


def observe(case: Case, guard: Guard | None = None) -> list[Observation]:
    """Show a case to a guard."""
    guard = guard or make_guard()
    return [guard.observe(run, seen) for run, seen in sightings(case, 1)]


def verdict(case: Case) -> list[Said]:
    """What a guard says of a case."""
    return said(observe(case))


def verdicts_interleaved(*cases: Case) -> list[list[Said]]:
    """What one guard says of each case when their steps come in turn, each case in its own runs."""
    guard = make_guard()
    found: list[list[Observation]] = [[] for _ in cases]
    turns = zip_longest(*(sightings(case, 1) for case in cases))
    for turn in turns:
        for number, each in enumerate(turn):
            if each is not None:
                run, seen = each
                parent = None if seen.parent is None else f"{number}:{seen.parent}"
                seen = seen._replace(parent=parent)
                found[number].append(guard.observe(f"{number}:{run}", seen))
    return [said(each) for each in found]


def moved(verdict: Iterable[Said], by: int) -> list[Said]:
    """The same verdict, so many steps later."""
    return [each._replace(at=each.at + by) for each in verdict]


def with_steps(case: Case, steps: Iterable[Step]) -> Case:
    """The case with other steps."""
    return {**case, "steps": list(steps)}


def each_step(case: Case, change: Callable[[Step], Step]) -> Case:
    """The case with each step changed."""
    return with_steps(case, (change(step) for step in case["steps"]))


def with_neutral_names(case: Case) -> Case:
    """Tools have names that say nothing."""
    names: dict[str, str] = {}

    def rename(step: Step) -> Step:
        if step.get("tool") is None:
            return step
        number = len(names)
        letters = f"{ascii_lowercase[number // 26]}{ascii_lowercase[number % 26]}"
        return {**step, "tool": names.setdefault(step["tool"], f"tool_{letters}q")}

    return each_step(case, rename)


def with_keys_in_any_order(case: Case, seed: int) -> Case:
    """The keys of all arguments in another order, and each time in another one."""
    random = Random(seed)

    def shuffled(value: Any) -> Any:
        if isinstance(value, list):
            return [shuffled(each) for each in value]
        if not isinstance(value, dict):
            return value
        return {key: shuffled(value[key]) for key in random.sample(list(value), len(value))}

    return each_step(case, lambda step: {**step, "args": shuffled(step.get("args"))})


def translated(case: Case) -> Case:
    """All words replaced by made-up ones, in what was said, asked for and given back.

    Numbers, signs, the keys of structures and the names of tools and agents stay.
    """
    agents = {step["agent"].lower() for step in case["steps"] if step.get("agent")}

    def words(value: Any) -> Any:
        if isinstance(value, str):
            if value.lower() in agents:
                return value
            return _WORD.sub(lambda found: found.group().translate(_VOCABULARY), value)
        if isinstance(value, list):
            return [words(each) for each in value]
        return (
            {key: words(each) for key, each in value.items()} if isinstance(value, dict) else value
        )

    spoken = ("args", "result", "error", "text", "thought")
    return each_step(
        case, lambda step: {**step, **{key: words(step[key]) for key in spoken if key in step}}
    )


def with_double_gaps(case: Case) -> Case:
    """Twice the time between steps."""
    clocks = [key for key in ("dt_s", "ts") if any(step.get(key) for step in case["steps"])]
    return each_step(
        case, lambda step: {**step, **{key: 2 * (step.get(key) or 0) for key in clocks}}
    )


def with_other_agents(case: Case) -> Case:
    """Agents have other names, as long as theirs, also where a call names one."""
    both = ("agent", "target")
    found = (step[key] for step in case["steps"] for key in both if step.get(key))
    names = {name: name.translate(_VOCABULARY) for name in found}
    names |= {name.lower(): other.lower() for name, other in names.items()}
    either = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    within = re.compile(rf"(?<![^\W_])(?:{either or '(?!)'})(?![^\W_])")

    def named(value: Any) -> Any:
        return names.get(value, value) if isinstance(value, str) else value

    def rename(step: Step) -> Step:
        who = {key: named(step[key]) for key in both if step.get(key)}
        if isinstance(step.get("tool"), str):
            who["tool"] = within.sub(lambda found: names[found.group()], step["tool"])
        args = step.get("args")
        if isinstance(args, dict):
            who["args"] = {key: named(value) for key, value in args.items()}
        return {**step, **who}

    return each_step(case, rename)


def much_later(case: Case, seconds: float) -> Case:
    """All of it so much later, after a word of the user."""
    first = {"kind": "user", "text": "hello", "dt_s": seconds}
    later = (
        {**step, "ts": step["ts"] + seconds} if step.get("ts") is not None else step
        for step in case["steps"]
    )
    return with_steps(case, [first, *later])


def with_talk(case: Case, seed: int) -> Case:
    """The model says something else before each step."""
    random = Random(seed)
    talk = ({"kind": "model", "text": words(random, 25)} for _ in case["steps"])
    return with_steps(
        case, (each for both in zip(talk, case["steps"], strict=True) for each in both)
    )


def with_user_turn(case: Case, before: int) -> Case:
    """The user speaks before the step with that index."""
    steps = case["steps"]
    return with_steps(case, [*steps[:before], {"kind": "user", "text": "go on"}, *steps[before:]])


def with_rounds_split(case: Case) -> Case:
    """Calls that came in parallel come one after the other."""
    return each_step(case, lambda step: {**step, "round": None})


def in_rounds(case: Case, size: int) -> Case:
    """Calls that came one after the other come in parallel, so many at a time."""

    def put(at: int, step: Step) -> Step:
        gap = step.get("dt_s") if at % size == 0 else 0
        return {**step, "round": f"r{at // size}", "dt_s": gap}

    return with_steps(case, (put(at, step) for at, step in enumerate(case["steps"])))


def with_rounds_shuffled(case: Case, seed: int) -> Case:
    """The calls of each parallel round in another order."""
    random = Random(seed)
    found: list[Step] = []
    for name, together in groupby(case["steps"], lambda step: step.get("round")):
        steps = list(together)
        found += steps if name is None else random.sample(steps, len(steps))
    return with_steps(case, found)


def after_healthy_steps(case: Case, count: int, seed: int = 0) -> Case:
    """First some steps that get somewhere, by the case's own tools and the agent that begins it.

    Agents that others start are new, so they have done nothing before. The last step is a call:
    what a model says right before the case's own steps would be a part of them.
    """
    random = Random(seed)
    calls = [step for step in case["steps"] if step["kind"] == "tool"] or [{"tool": "look"}]
    begins: Step = next(iter(case["steps"]), {})
    who = {key: begins[key] for key in ("agent", "run") if key in begins}
    is_known = any(step.get("result") is not None for step in calls)
    healthy: list[Step] = []
    for at in range(count):
        like, news = random.choice(calls), words(random, 40)
        if at % 5 == 4 and at < count - 1:
            healthy.append({**who, "kind": "model", "text": news})
        else:
            call = {"tool": like["tool"], "args": {"q": news[:40]}}
            result = news if is_known else None
            healthy.append({**who, "kind": "tool", **call, "result": result})
    return with_steps(case, [*healthy, *case["steps"]])


def words(random: Random, count: int) -> str:
    """So many words that nobody has ever seen."""
    return " ".join(
        "".join(random.choices(ascii_lowercase, k=random.randint(3, 9))) for _ in range(count)
    )
