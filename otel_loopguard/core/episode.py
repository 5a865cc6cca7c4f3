"""What is remembered of one agent run: fixed size, O(1) a step, whatever the history.

An `Episode` takes steps and keeps incremental facts; detectors read them and hold no state of
their own. One rule is behind all of them, *evidence before counts*: an equal call with an equal
result is a repeat, a changed result is progress, and repeats only add up while nothing new was
learned between.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from otel_loopguard.core.callids import CallIds, Claim
from otel_loopguard.core.cycles import MAX_PERIOD, Cycle, Cycles
from otel_loopguard.core.model import FAILED, Kind, Outcome, Pattern, Severity, Status, Step, Stuck
from otel_loopguard.core.records import (
    Alert,
    CallRecord,
    Mark,
    Spoken,
    Streak,
    ToolRecord,
    remember,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

RING: Final = 64
MAX_CALLS: Final = 256
MAX_RESULTS: Final = 256
MAX_TOOLS: Final = 64
MAX_ALERTS: Final = 64
RECOVERY_STEPS: Final = 5
WAIT_NS: Final = 20_000_000_000
WAIT_WEIGHT: Final = 0.25
MASKED_WEIGHT: Final = 0.5

_NOTHING_NEW: Final = FAILED | {Outcome.EMPTY, Outcome.PENDING}


class Episode:
    """The bounded state of one agent run.

    Attributes:
        run: the run's id.
        agent: the agent's name, if known.
        steps: the newest counted steps, at most 64.
        call: the record of the newest step's call; None if that step was no call.
        tool: the record of the newest step's tool; None if that step was no call.
        cycle: the cycle of at least two laps that the newest call goes on; None if there is none.
        iteration: number of tool rounds so far; a parallel round is one.
        turn_start: the iteration at which the user last spoke.
        tokens: tokens spent so far.
        consecutive: length of the streak of the newest tool.
        progress: how many steps brought something new.
        good: how many steps brought something new since a finding last held.
        stuck: the worst that is wrong right now, None while healthy.
        last_seen_ns: when the newest step ended; 0 while no step said.
        closed: whether the run was said to be over since its newest step.
        spoken: the last time that each pattern spoke.
    """

    __slots__ = (
        "_alerts", "_call_ids", "_calls", "_cycles", "_health", "_last_action", "_model_ns",
        "_pending_round", "_results", "_round", "_round_end_ns", "_tools", "agent", "call",
        "closed", "consecutive", "cycle", "good", "iteration", "last_seen_ns", "progress", "run", "spoken",
        "steps", "stuck", "tokens", "tool", "turn_start",
    )  # fmt: skip

    def __init__(self, run: str, agent: str | None = None) -> None:
        self.run = run
        self.agent = agent
        self.steps: deque[Step] = deque(maxlen=RING)
        self.call: CallRecord | None = None
        self.tool: ToolRecord | None = None
        self.cycle: Cycle | None = None
        self.iteration = 0
        self.turn_start = 0
        self.tokens = 0
        self.consecutive = 0
        self.progress = 0
        self.good = 0
        self.stuck: Stuck | None = None
        self.last_seen_ns = 0
        self.closed = False
        self.spoken: dict[Pattern, Spoken] = {}
        self._calls: dict[tuple[str, str], CallRecord] = {}
        self._tools: dict[str, ToolRecord] = {}
        self._results: dict[tuple[str, str], None] = {}
        self._alerts: dict[str, Alert] = {}
        self._call_ids = CallIds()
        self._cycles = Cycles()
        self._last_action: str | None = None
        self._round: str | None = None
        self._round_end_ns = 0
        self._model_ns = 0
        self._pending_round = -MAX_PERIOD
        self._health = Status.HEALTHY

    @property
    def alerts(self) -> Mapping[str, Alert]:
        """What was last said about each loop, by the finding's identity."""
        return self._alerts

    def earlier(self, action: str, args_key: str | None) -> CallRecord | None:
        """What is known of a call; None if it did not come yet, or is unknown."""
        return None if args_key is None else self._calls.get((action, args_key))

    def add(self, step: Step) -> bool:
        """Take one step; False if it was no step of its own (seen before, or another attempt)."""
        self.touch(step)
        if step.kind is Kind.TOOL or step.kind is Kind.AGENT:
            return self._add_call(step)
        if step.kind is Kind.RETRY:
            return False
        if step.kind is Kind.MODEL:
            self.tokens += step.tokens
            self._model_ns += max(0, step.end_ns - step.start_ns)
            self._call_ids.model_responded()
        elif step.kind is Kind.USER:
            self._start_over()
        elif step.kind is Kind.EFFECT:
            self.progress += 1
        self.steps.append(step)
        return True

    def touch(self, step: Step) -> None:
        """Take note that the run is alive, whatever the step is."""
        self.last_seen_ns = max(self.last_seen_ns, step.end_ns)
        self.closed = False
        self.call = self.tool = self.cycle = None

    def _start_over(self) -> None:
        """A user turn: what was counted is void, what was said is not forgotten."""
        self._calls.clear()
        self._tools.clear()
        self._results.clear()
        self._cycles.clear()
        self.consecutive = 0
        self.turn_start = self.iteration
        self._last_action = None
        self._health = Status.HEALTHY

    def _add_call(self, step: Step) -> bool:
        claim = self._call_ids.claim(step)
        if claim is Claim.SEEN:
            return False
        again = claim is Claim.AGAIN
        opens = not again and self._opens_round(step)
        if opens:
            self.iteration += 1
        if not again:
            self.steps.append(step)
            self.consecutive = self.consecutive + 1 if step.action == self._last_action else 1
            self._last_action = step.action
        mark = Mark(step.span, self.iteration, step.end_ns, self.tokens)
        call = self._count_call(step, mark, again=again)
        self._count_tool(step, mark, again=again)
        result = call.masked_key or step.result_key
        self._cycles.add(step.action, step.args_key, result, mark, opens=opens)
        self.cycle = self._cycles.longest(2)
        self._judge_health(step, call)
        return not again

    def _opens_round(self, step: Step) -> bool:
        """Calls of one model response, and calls that overlap in time, are one round."""
        if step.round is not None and self._round is not None:
            joins = step.round == self._round
        else:
            joins = 0 < step.start_ns < self._round_end_ns
        if not joins:
            self._round_end_ns = 0
        self._round = step.round or (self._round if joins else None)
        self._round_end_ns = max(step.end_ns, self._round_end_ns)
        return not joins

    def _count_call(self, step: Step, mark: Mark, *, again: bool) -> CallRecord:
        call = self.earlier(step.action, step.args_key) or CallRecord(mark)
        equal = step.result_key is not None and step.result_key == call.result_key
        alike = step.masked_key is not None and step.masked_key == call.masked_key
        if not again:
            call.seen += 1
        if not (equal or alike):
            call.same = 1
            call.restart(mark)
        elif not again and call.round_no != self.iteration:
            call.same += 1
            self._weigh(call, step, mark, 1.0 if equal else MASKED_WEIGHT)
        if not equal or step.masked_key is not None:
            call.masked_key = step.masked_key
        call.result_key = step.result_key
        self._judge_news(call, step)
        call.progress, call.round_no = self.progress, self.iteration
        call.model_ns, call.end_ns = self._model_ns, step.end_ns
        self.call = call
        if step.args_key is not None:
            remember(self._calls, (step.action, step.args_key), call, MAX_CALLS)
        return call

    def _weigh(self, call: CallRecord, step: Step, mark: Mark, weight: float) -> None:
        """Add one equal occurrence, graded by how good the evidence is."""
        if call.progress != self.progress:
            call.restart(mark)
            return
        waited = step.start_ns - call.end_ns - (self._model_ns - call.model_ns)
        if call.end_ns and waited >= WAIT_NS:
            weight *= WAIT_WEIGHT
        call.repeats += 1
        call.weight += weight

    def _judge_news(self, call: CallRecord, step: Step) -> None:
        """Count progress: a result new to this tool, or a new call whose result says little."""
        keys = [(step.action, key) for key in (step.result_key, step.masked_key) if key]
        if step.outcome is Outcome.ACK or not keys:
            news = call.seen == 1 and step.outcome not in _NOTHING_NEW
        else:
            news = step.outcome not in _NOTHING_NEW and not any(k in self._results for k in keys)
        for key in keys:
            remember(self._results, key, None, MAX_RESULTS)
        self.progress += news
        self.good += news

    def _count_tool(self, step: Step, mark: Mark, *, again: bool) -> None:
        if step.outcome is Outcome.PENDING:
            self._pending_round = self.iteration
        tool = self._tools.get(step.action) or ToolRecord()
        remember(self._tools, step.action, tool, MAX_TOOLS)
        self.tool = tool
        if step.outcome in FAILED:
            tool.results = None
            key = step.error or step.outcome.value
            tool.failures = self._extend(tool.failures, key, step, mark, again=again)
            return
        tool.failures = None
        if step.outcome in (Outcome.ACK, Outcome.PENDING) or step.result_key is None:
            tool.results = None
        else:
            tool.results = self._extend(tool.results, step.result_key, step, mark, again=False)

    def _extend(
        self, streak: Streak | None, key: str, step: Step, mark: Mark, *, again: bool
    ) -> Streak:
        """One more equal end of a tool, or the first of another streak."""
        if streak is None or streak.key != key or streak.progress != self.progress:
            streak = Streak(mark, key, self.progress)
        streak.extend(step.args_key, self.iteration, again=again)
        return streak

    def recover(self) -> None:
        """The run is no longer stuck once enough steps brought something new."""
        if self.stuck is not None and self.good >= RECOVERY_STEPS:
            self.stuck = None

    def grade(
        self, identity: str, repeats: float, limits: tuple[int, int], first: Mark
    ) -> Severity | None:
        """How bad a loop is that began at `first`; None if it is not worth a word.

        Args:
            identity: what makes the loop the same loop later on.
            repeats: how often it went round.
            limits: from how many repeats on it is a warning, and critical. A relapse, that is a
                loop that was spoken of and then interrupted, needs half as many.
            first: its first step.
        """
        warning, critical = limits
        alert = self._alerts.get(identity)
        if alert is not None and (alert.relapsed or first.iteration > alert.first_iteration):
            warning, critical = (warning + 1) // 2, (critical + 1) // 2
        if repeats >= critical:
            return Severity.CRITICAL
        return Severity.WARNING if repeats >= warning else None

    def remember_alert(self, identity: str, alert: Alert) -> None:
        """Keep what was said about a loop."""
        remember(self._alerts, identity, alert, MAX_ALERTS)

    def polls(self, rounds: int) -> bool:
        """Whether one of the newest rounds was told to wait."""
        return self.iteration - self._pending_round < rounds

    @property
    def status(self) -> Status:
        """The run's health, judged by its newest call."""
        return self._health if self.stuck is None else Status.DEADLOCKED

    def _judge_health(self, step: Step, call: CallRecord) -> None:
        period = self.cycle.period if self.cycle is not None else 1
        results = self.tool.results if self.tool is not None else None
        self._health = Status.HEALTHY
        if step.outcome in FAILED or self.polls(max(period, 2)):
            return
        if results is not None and results.count >= 3:
            self._health = Status.STAGNANT
        elif call.weight >= 2 or period > 1:
            self._health = Status.REPEATING
