"""What an episode has to know, worked out from the whole history: slow and plain."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from otel_loopguard.core.cycles import MAX_PERIOD
from otel_loopguard.core.model import FAILED, Kind, Outcome, Step

if TYPE_CHECKING:
    from collections.abc import Sequence

WAIT = 20_000_000_000


@dataclass
class Facts:
    """What is known after the newest call."""

    iteration: int
    consecutive: int
    seen: int
    same: int
    repeats: int
    weight: float
    first_iteration: int
    results: int
    failures: int
    failure_weight: float
    laps: list[int]
    tokens: int


class History:
    """All steps of one run, in order; the newest one is a call."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = steps
        users = [at for at, step in enumerate(steps) if step.kind is Kind.USER]
        self.turn = users[-1] + 1 if users else 0
        self.rounds = self.number_rounds()

    def number_rounds(self) -> list[int]:
        """The round of each step; those that are no calls have that of the call before."""
        numbers: list[int] = []
        number, name, end = 0, None, 0
        for step in self.steps:
            if step.kind is Kind.TOOL:
                named = step.round is not None and name is not None
                joins = step.round == name if named else 0 < step.start_ns < end
                if not joins:
                    number, name, end = number + 1, None, 0
                name, end = step.round or name, max(end, step.end_ns)
            numbers.append(number)
        return numbers

    def calls(self, until: int) -> list[int]:
        """The calls of this turn up to and without `until`."""
        return [at for at in range(self.turn, until) if self.steps[at].kind is Kind.TOOL]

    def moved(self, at: int) -> bool:
        """Whether a step brought something new or changed something."""
        step = self.steps[at]
        if step.kind is not Kind.TOOL:
            return step.kind is Kind.EFFECT
        if step.outcome in FAILED or step.outcome is Outcome.PENDING:
            return False
        before = [self.steps[each] for each in self.calls(at)]
        of_tool = [each.result_key for each in before if each.action == step.action]
        if step.result_key is not None and step.result_key not in of_tool:
            return True
        keys = [(each.action, each.args_key) for each in before]
        says_little = step.result_key is None or step.outcome in (Outcome.ACK, Outcome.EMPTY)
        says_little |= step.outcome is Outcome.OK and (step.size or 0) <= 32
        return says_little and (step.args_key is None or (step.action, step.args_key) not in keys)

    def quiet(self, one: int, other: int) -> bool:
        """Whether nothing moved between two steps."""
        return not any(self.moved(at) for at in range(one + 1, other))

    def last_of_round(self, one: int, other: int) -> int:
        """The last call before the second that is of the same round as the first."""
        return max(each for each in self.calls(other) if self.rounds[each] == self.rounds[one])

    def waited(self, one: int, other: int) -> bool:
        """Whether the second started long after the first, and no model worked meanwhile."""
        worked = sum(
            max(0, step.end_ns - step.start_ns)
            for step in self.steps[one + 1 : other]
            if step.kind is Kind.MODEL
        )
        first, second = self.steps[one], self.steps[other]
        return first.end_ns > 0 and second.start_ns - first.end_ns - worked >= WAIT

    def occurrences(self, at: int) -> list[int]:
        """The calls equal to this one, itself included."""
        step = self.steps[at]
        if step.args_key is None:
            return [at]
        key = (step.action, step.args_key)
        return [
            each
            for each in [*self.calls(at), at]
            if (self.steps[each].action, self.steps[each].args_key) == key
        ]

    def count_call(self, at: int) -> tuple[int, int, float, int]:
        """Equal results in a row; repeats and weight since something was learned; since when."""
        occurrences = self.occurrences(at)
        same, repeats, weight, first = 1, 1, 1.0, occurrences[0]
        for one, other in pairwise(occurrences):
            result = self.steps[other].result_key
            if result is None or result != self.steps[one].result_key:
                same, repeats, weight, first = 1, 1, 1.0, other
            elif self.rounds[one] != self.rounds[other]:
                same += 1
                if self.quiet(self.last_of_round(one, other) if repeats == 1 else one, other):
                    repeats += 1
                    weight += 0.25 if self.waited(one, other) else 1.0
                else:
                    repeats, weight, first = 1, 1.0, other
        return same, repeats, weight, self.rounds[first]

    def end_of(self, at: int) -> tuple[str, str] | None:
        """What a call came to, as a streak counts it."""
        step = self.steps[at]
        if step.outcome in FAILED:
            return "failure", step.error or step.outcome.value
        bare = step.outcome is Outcome.OK and (step.size or 0) <= 32
        if bare or step.result_key is None or step.outcome in (Outcome.ACK, Outcome.PENDING):
            return None
        return "result", step.result_key

    def count_streak(self, at: int, kind: str) -> tuple[int, float]:
        """How often in a row the tool came to this end, and the weight of that."""
        of_tool = [
            each
            for each in [*self.calls(at), at]
            if self.steps[each].action == self.steps[at].action
        ]
        end = self.end_of(at)
        if end is None or end[0] != kind:
            return 0, 0.0
        streak = [of_tool.pop()]
        while of_tool and self.end_of(of_tool[-1]) == end and self.quiet(of_tool[-1], streak[0]):
            streak.insert(0, of_tool.pop())
        count, weight = 1, 1.0
        for one, other in pairwise(streak):
            if self.rounds[one] != self.rounds[other]:
                count += 1
                weight += 0.25 if self.waited(one, other) else 1.0
        return count, weight

    def laps(self) -> list[int]:
        """How many full laps the tail holds, for each period."""
        sets: dict[int, dict[tuple[str, str | None], str | None]] = {}
        for at in self.calls(len(self.steps)):
            step = self.steps[at]
            sets.setdefault(self.rounds[at], {})[step.action, step.args_key] = step.result_key
        rounds = [
            None if any(None in (key[1], value) for key, value in each.items()) else each
            for each in sets.values()
        ]
        laps: list[int] = []
        for period in range(1, MAX_PERIOD + 1):
            length = 0
            while length + period < len(rounds):
                newer = rounds[len(rounds) - 1 - length]
                if newer is None or newer != rounds[len(rounds) - 1 - length - period]:
                    break
                length += 1
            laps.append(length // period + 1 if length >= period else 0)
        return laps

    def facts(self) -> Facts:
        """What is known after the newest step, which is a call."""
        at = len(self.steps) - 1
        consecutive = 0
        for each in reversed(self.calls(at + 1)):
            if self.steps[each].action != self.steps[at].action:
                break
            consecutive += 1
        same, repeats, weight, first = self.count_call(at)
        failures, failure_weight = self.count_streak(at, "failure")
        return Facts(
            iteration=self.rounds[at],
            consecutive=consecutive,
            seen=len(self.occurrences(at)),
            same=same,
            repeats=repeats,
            weight=weight,
            first_iteration=first,
            results=self.count_streak(at, "result")[0],
            failures=failures,
            failure_weight=failure_weight,
            laps=self.laps(),
            tokens=sum(step.tokens for step in self.steps),
        )
