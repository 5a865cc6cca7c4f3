"""What one agent of a run has done by itself: several may act in one run, in turn or at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from otel_loopguard.core.cycles import MAX_PERIOD, Cycles
from otel_loopguard.core.echoes import Echoes
from otel_loopguard.core.evidence import Evidence
from otel_loopguard.core.model import FAILED, Outcome, Status
from otel_loopguard.core.names import asks, steps, waits
from otel_loopguard.core.plans import Plan, Plans
from otel_loopguard.core.ranges import Ranges
from otel_loopguard.core.records import Moment, remember
from otel_loopguard.core.sizes import SHORT
from otel_loopguard.core.streaks import is_bare
from otel_loopguard.core.subject import sleeps
from otel_loopguard.core.tuples import make

if TYPE_CHECKING:
    from otel_loopguard.core.cycles import Cycle
    from otel_loopguard.core.model import Step
    from otel_loopguard.core.ranges import Extent
    from otel_loopguard.core.records import CallRecord, Once, ToolRecord
    from otel_loopguard.core.rejections import Rejections

MAX_AGENTS: Final = 16
"""How many agents of a run are told apart; beyond it the one that was silent longest is new."""

# Before Python 3.12 it takes long to read a member from its enum.
_EMPTY: Final = Outcome.EMPTY
_HEALTHY: Final = Status.HEALTHY
_REPEATING: Final = Status.REPEATING
_STAGNANT: Final = Status.STAGNANT

_HALF: Final = 0.5
_TOLD: Final = 0b01
_BLANK: Final = 0b10
_ALL: Final = (1 << 2 * MAX_PERIOD) - 1
_TOLDS: Final = _ALL // 3
_BLANKS: Final = _TOLDS << 1
_NOTHING: Final = frozenset({_EMPTY, Outcome.ACK})


class Deeds:
    """What is counted of one agent's calls; the others' neither add to it nor interrupt it.

    Attributes:
        evidence: its calls, and what it learned by them.
        cycles: how its rounds repeat.
        consecutive: length of the streak of its newest tool.
        waits: for each of the newest rounds two bits, the newest one's lowest: whether it was told
            to wait, and whether it was told nothing.
        rejections: how its calls are turned down; None while none is.
        ranges: the parts that it read; None before it read one.
        plans: what it wrote down that is to do; None before it did.
        echoes: how it goes round among results that it knew; None before one came again.
        opened: the number within the run of its newest round.
    """

    __slots__ = (
        "_last_action", "_round", "_round_end_ns", "consecutive", "cycles", "echoes", "evidence",
        "opened", "plans", "ranges", "rejections", "waits",
    )  # fmt: skip

    def __init__(self) -> None:
        self.evidence = Evidence()
        self.cycles = Cycles()
        self.rejections: Rejections | None = None
        self.ranges: Ranges | None = None
        self.plans: Plans | None = None
        self.echoes: Echoes | None = None
        self.consecutive = 0
        self.waits = 0
        self.opened = 0
        self._last_action: str | None = None
        self._round: str | None = None
        self._round_end_ns = 0

    def clear(self) -> None:
        """Forget what was counted: what comes next repeats nothing."""
        self.evidence.clear()
        self.cycles.clear()
        self.rejections = self.ranges = self.plans = self.echoes = None
        self.consecutive = 0
        self._last_action = None

    def begin(self, step: Step, number: int) -> bool:
        """Take one more call; whether it opens a round, which is then the run's one of that number.

        Calls of one model response, and calls that overlap in time, are one round.
        """
        action, name = step.action, step.round
        if action == self._last_action:
            self.consecutive += 1
        else:
            self.consecutive, self._last_action = 1, action
        if name is None or self._round is None:
            joins = 0 < step.start_ns < self._round_end_ns
        else:
            joins = name == self._round
        if joins:
            self._round = name or self._round
            self._round_end_ns = max(step.end_ns, self._round_end_ns)
        else:
            self._round = name or None
            self._round_end_ns = step.end_ns
            self.opened = number
            if self.waits:
                self.waits = (self.waits << 2) & _ALL
        if step.traits is not None and step.traits.poll:
            self.waits |= _TOLD
        return not joins

    def take_fresh(
        self, step: Step, number: int, tokens: int, model_ns: int
    ) -> tuple[Once, ToolRecord] | None:
        """Take a call that opens the round of that number and is new; None if it turns out not to.

        It comes to what `begin` and the counters come to, in fewer steps. Nothing is taken of a
        call that is none: another one may have come since it was found to be new.
        """
        name, evidence = step.round, self.evidence
        if name is None or self._round is None:
            joins = 0 < step.start_ns < self._round_end_ns
        else:
            joins = name == self._round
        action, args_key, result_key = step.action, step.args_key or "", step.result_key or ""
        key, end = (action, args_key), (action, result_key)
        if joins or key in evidence.calls or end in evidence.results or self.rejections is not None:
            return None
        if action == self._last_action:
            self.consecutive += 1
        else:
            self.consecutive, self._last_action = 1, action
        self._round, self._round_end_ns, self.opened = name or None, step.end_ns, number
        if self.waits:
            self.waits = (self.waits << 2) & _ALL
        if step.traits is not None and step.traits.poll:
            self.waits |= _TOLD
        now = make(Moment, (step.span, number, step.end_ns, tokens, model_ns))
        once = evidence.take_fresh(step, key, end, now, model_ns)
        self.cycles.begin(((action, args_key, result_key),), now)
        return once, evidence.tools.take_fresh(action, once)

    def health(
        self, step: Step, call: CallRecord | Once, tool: ToolRecord, cycle: Cycle | None
    ) -> Status:
        """How a run is doing whose newest call goes on with something."""
        period = 1 if cycle is None else cycle.period
        if step.outcome in FAILED or self.polls(max(period, 2)):
            return _HEALTHY
        equal_results = 0 if tool.results is None else tool.results.count
        says_much = step.outcome is _EMPTY or (step.size or 0) > SHORT
        if equal_results >= (3 if says_much else 6):
            return _STAGNANT
        return _REPEATING if call.same >= 2 <= call.weight or period > 1 else _HEALTHY

    def hear(self, step: Step) -> None:
        """Take what the newest round was told, if that is to wait, or nothing."""
        subject = step.subject
        slept = waits(step.action) or (subject is not None and sleeps(subject))
        if step.outcome is Outcome.PENDING or slept:
            self.waits |= _TOLD
        elif step.outcome in _NOTHING:
            self.waits |= _BLANK

    def waited(self, rounds: int) -> float:
        """How many of the newest rounds waited: the share of those that were told anything."""
        newest = self.waits & ((1 << 2 * rounds) - 1)
        told, blank = (newest & _TOLDS).bit_count(), (newest & _BLANKS & ~(newest << 1)).bit_count()
        return told / (rounds - blank) if told else 0.0

    def polls(self, rounds: int) -> bool:
        """Whether at least half of the newest rounds waited."""
        return self.waited(rounds) >= _HALF

    def asks(self, step: Step) -> bool:
        """Whether a call asks how far something is, by what it was told or by the tool's name.

        One that goes a step on each time, by its name, and is told no more than so, counts as well,
        and so does one that another tool has just begun, which said that it takes a while.
        """
        tells = (asks(step.action) and (step.size or 0) <= SHORT) or (
            steps(step.action) and (is_bare(step) or step.outcome is _EMPTY)
        )
        begun = (self.waits >> 2 * self.consecutive) & (_TOLD << 2 | _TOLD) == _TOLD
        begun = begun and (step.size or 0) <= SHORT
        return tells or begun or self.polls(2) or waits(step.action)

    def goes_round(self, step: Step, call: CallRecord | Once, now: Moment) -> bool:
        """Take a call that repeats something, after `evidence`; whether it goes round."""
        echoes = self.echoes = self.echoes or Echoes(now)
        echoes.take(step, call, self.evidence, now)
        return echoes.round is not None

    def understand(self, step: Step, gist: Extent | Plan, now: Moment) -> bool:
        """Take what a call says, after `evidence`; whether that was so before."""
        if isinstance(gist, Plan):
            plans = self.plans = self.plans or Plans()
            plans.take(step, gist, now, self.evidence)
            return plans.stuck is not None
        ranges = self.ranges = self.ranges or Ranges()
        ranges.take(step, gist, now, self.evidence)
        return ranges.again is not None


class Others:
    """The agents of a run that do not act now, in the order in which they did."""

    __slots__ = ("_deeds",)

    def __init__(self) -> None:
        self._deeds: dict[str, Deeds] = {}

    def get(self, agent: str) -> Deeds | None:
        """What an agent has done."""
        return self._deeds.get(agent)

    def swap(self, before: str, deeds: Deeds, agent: str) -> Deeds:
        """One agent stops and another one acts: returns what the latter has done."""
        known = self._deeds.pop(agent, None)
        remember(self._deeds, before, deeds, MAX_AGENTS)
        return known or Deeds()

    def see_change(self) -> None:
        """The world has changed: what they do again now is no repeat."""
        for deeds in self._deeds.values():
            deeds.evidence.see_change()
            deeds.cycles.clear()
            deeds.echoes = None
