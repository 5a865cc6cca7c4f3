"""What an episode has to know, worked out from the whole history: slow and plain."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from otel_loopguard.core.cycles import MAX_PERIOD
from otel_loopguard.core.model import FAILED, Kind, Outcome, Step
from otel_loopguard.core.names import changes

if TYPE_CHECKING:
    from collections.abc import Sequence

WAIT = 15_000_000_000
CLOSE, FAR = 4, 30
CHANGING = {"edit"}


@dataclass
class Facts:
    """What is known after the newest call."""

    iteration: int
    consecutive: int
    seen: int
    same: int
    repeats: int
    weight: float
    doubtful: bool
    first_iteration: int
    results: int
    loose: tuple[int, float, bool]
    failures: int
    failure_weight: float
    laps: list[int]
    tokens: int


def is_bare(step: Step) -> bool:
    """Whether a result says nothing, or no more than that the call is done."""
    if step.outcome is Outcome.OK:
        return (step.size or 0) <= (200 if changes(step.action) else 32)
    return step.outcome in (Outcome.ACK, Outcome.EMPTY)


def says_nothing(step: Step) -> bool:
    """Whether a result, if it comes again after news, is no repeat."""
    return not step.size if step.outcome is Outcome.EMPTY else is_bare(step)


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

    def before(self, at: int) -> list[Step]:
        """The calls of this turn before this one."""
        return [self.steps[each] for each in self.calls(at)]

    def is_first(self, at: int) -> bool:
        """Whether a call comes for the first time, as far as its arguments are known."""
        step = self.steps[at]
        if len(nearly := self.nearly(at)) > 1 and self.count_call(nearly)[1] > 1:
            return False
        keys = [(each.action, each.args_key) for each in self.before(at)]
        return step.args_key is None or (step.action, step.args_key) not in keys

    def is_news(self, at: int) -> bool:
        """Whether a step's result is known and new to its tool."""
        step = self.steps[at]
        of_tool = [each.result_key for each in self.before(at) if each.action == step.action]
        return step.result_key is not None and step.result_key not in of_tool

    @lru_cache(maxsize=None)  # noqa: B019, UP033 - lives for one example
    def moved(self, at: int) -> bool:
        """Whether a step brought something new or changed something."""
        step = self.steps[at]
        if step.kind is not Kind.TOOL:
            return step.kind is Kind.EFFECT
        if step.outcome in FAILED or step.outcome is Outcome.PENDING:
            return False
        says_little = step.result_key is None or is_bare(step)
        return self.is_news(at) or (says_little and self.is_first(at))

    @lru_cache(maxsize=None)  # noqa: B019, UP033 - lives for one example
    def changed(self, at: int) -> bool:
        """Whether a step changed something, as far as one can tell."""
        step = self.steps[at]
        if step.kind is not Kind.TOOL or not self.moved(at) or not self.is_first(at):
            return step.kind is Kind.EFFECT
        if is_bare(step) and (step.outcome is not Outcome.OK or not self.is_news(at)):
            return True
        return step.action in CHANGING

    def quiet(self, one: int, other: int) -> bool:
        """Whether nothing moved between two steps."""
        return not any(self.moved(at) for at in range(one + 1, other))

    def unchanged(self, one: int, other: int) -> bool:
        """Whether nothing was changed between two steps."""
        return not any(self.changed(at) for at in range(one + 1, other))

    def replayed(self, one: int, other: int) -> bool:
        """Whether the provider played something again between two steps."""
        return any(step.kind is Kind.RETRY for step in self.steps[one + 1 : other])

    def last_of_round(self, one: int, other: int) -> int:
        """The last call before the second that is of the same round as the first."""
        return max(each for each in self.calls(other) if self.rounds[each] == self.rounds[one])

    def worked(self, at: int) -> int:
        """How long a model worked: all the time since the step before, unless it says so."""
        step = self.steps[at]
        known = [each.end_ns for each in self.steps[:at] if each.end_ns]
        began = step.start_ns if step.start_ns < step.end_ns else max(known, default=step.end_ns)
        return max(1, step.end_ns - began)

    def pause(self, one: int, other: int) -> int:
        """How long after the first the second started, while no model worked."""
        models = (at for at in range(one + 1, other) if self.steps[at].kind is Kind.MODEL)
        worked = sum(map(self.worked, models))
        first, second = self.steps[one], self.steps[other]
        return second.start_ns - first.end_ns - worked if first.end_ns > 0 else 0

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

    def nearly(self, at: int) -> list[int]:
        """The calls nearly equal to this one, itself included; none if that is not known."""
        step = self.steps[at]
        if step.loose_key is None:
            return []
        key = (step.action, step.loose_key)
        return [
            each
            for each in [*self.calls(at), at]
            if (self.steps[each].action, self.steps[each].loose_key) == key
        ]

    def grade(self, first: int, one: int, other: int, since: int) -> tuple[float, bool] | None:
        """What the second of two occurrences counts, and if that is doubtful; None if nothing.

        What was in between is looked for from `since` on.
        """
        steps, apart = self.steps, self.rounds[other] - self.rounds[one]
        if apart > FAR or not self.unchanged(since, other):
            return None
        weight, doubtful = 1.0, True
        if steps[other].result_key is None:
            weight = 0.75 if apart == 1 else 0.5
        elif self.quiet(since, other):
            doubtful = False
        elif apart > CLOSE or says_nothing(steps[other]):
            return None
        else:
            weight = 0.45
        pause, nothing = self.pause(one, other), steps[other].outcome is Outcome.EMPTY
        if nothing or is_bare(steps[other]):
            pause = max(pause, steps[other].end_ns - steps[other].start_ns)
        if pause >= WAIT:
            final = steps[other].outcome is Outcome.OK and steps[other].size > 200
            waited = 0.05 if pause >= 3 * WAIT else 0.15
            return weight * (0.45 if final else waited), doubtful
        return weight * (0.75 if self.at_once(first, one, other) else 1.0), doubtful

    def at_once(self, first: int, one: int, other: int) -> bool:
        """Whether a model asked for several repeats at once, this one among them."""
        models = [at for at in range(other) if self.steps[at].kind is Kind.MODEL]
        if not models or models[-1] > one:
            return False
        asked = next(at for at in range(models[-1], other) if self.steps[at].kind is Kind.TOOL)
        return self.rounds[first] <= self.rounds[asked]

    def count_call(self, occurrences: list[int]) -> tuple[int, int, float, bool, int]:
        """Equal results in a row; repeats and weight since it began to repeat; since when."""
        steps = self.steps
        same, repeats, weight, doubtful, first = 1, 1, 1.0, False, occurrences[0]
        for one, other in pairwise(occurrences):
            result = steps[other].result_key
            unknown = result is None and steps[other].outcome not in FAILED
            if result != steps[one].result_key or (result is None and not unknown):
                same, repeats, weight, doubtful, first = 1, 1, 1.0, False, other
            elif self.rounds[one] != self.rounds[other]:
                same = 1 if unknown else same + 1
                since = self.last_of_round(one, other) if repeats == 1 else one
                graded = self.grade(first, one, other, since)
                if graded is None or (unknown and self.replayed(one, other)):
                    repeats, weight, doubtful, first = 1, 1.0, False, other
                else:
                    repeats += 1
                    weight += graded[0]
                    doubtful |= graded[1]
            elif unknown:
                same = 1
        return same, repeats, weight, doubtful, self.rounds[first]

    def end_of(self, at: int) -> tuple[str, str] | None:
        """What a call came to, as a streak counts it."""
        step = self.steps[at]
        if step.outcome in FAILED:
            return "failure", step.error or step.outcome.value
        bare = is_bare(step) and step.outcome is not Outcome.EMPTY
        if bare or step.result_key is None or step.outcome is Outcome.PENDING:
            return None
        return "result", "" if step.outcome is Outcome.EMPTY else step.result_key

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
        pairs: list[tuple[int, int]] = []
        while of_tool[:-1] and self.end_of(of_tool[-2]) == end:
            other, one = of_tool.pop(), of_tool[-1]
            apart, quiet = self.rounds[other] - self.rounds[one], self.quiet(one, other)
            step = self.steps[other]
            tolerant = kind == "failure" or (step.outcome is Outcome.EMPTY and bool(step.size))
            if not self.unchanged(one, other) or not (quiet or (tolerant and apart <= CLOSE)):
                break
            pairs.insert(0, (one, other))
        return self.weigh_streak(pairs, kind)

    def weigh_streak(self, pairs: list[tuple[int, int]], kind: str) -> tuple[int, float]:
        """How long a streak is of which these are the neighbours, and the weight of that."""
        count, weight, longest = 1, 1.0, 0
        tried = {self.steps[one].args_key for one, _ in pairs[:1]}
        for one, other in pairs:
            step, pause = self.steps[other], self.pause(one, other)
            if self.rounds[other] != self.rounds[one]:
                again = kind == "failure" and tried == {step.args_key}
                backs_off = again and 0 < longest * 1.3 <= pause and pause >= WAIT / 15
                count += 1
                full = 1.0 if kind == "result" or self.quiet(one, other) else 0.45
                weight += full * (0.15 if pause >= WAIT else 0.25 if backs_off else 1.0)
                longest = max(longest, pause)
            tried.add(step.args_key)
        return count, weight

    def laps(self) -> list[int]:
        """How many full laps the tail holds, for each period."""
        sets: dict[int, dict[tuple[str, str | None], str | None]] = {}
        for at in self.calls(len(self.steps)):
            step = self.steps[at]
            result = step.result_key
            if result is None and step.outcome not in FAILED:
                result = "not captured"
            sets.setdefault(self.rounds[at], {})[step.action, step.loose_key or step.args_key] = (
                result
            )
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
        same, repeats, weight, doubtful, first = self.count_call(self.occurrences(at))
        nearly = self.nearly(at)
        failures, failure_weight = self.count_streak(at, "failure")
        return Facts(
            iteration=self.rounds[at],
            consecutive=consecutive,
            seen=len(self.occurrences(at)),
            same=same,
            repeats=repeats,
            weight=weight,
            doubtful=doubtful,
            first_iteration=first,
            results=self.count_streak(at, "result")[0],
            loose=self.count_call(nearly)[1:4] if len(nearly) > 1 else (0, 0.0, False),
            failures=failures,
            failure_weight=failure_weight,
            laps=self.laps(),
            tokens=sum(step.tokens for step in self.steps),
        )
