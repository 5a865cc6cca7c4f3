"""What is remembered of one agent run: fixed size, O(1) a step, whatever the history.

An `Episode` takes steps and keeps incremental facts; detectors read them and hold no state of
their own. One rule is behind all of them, *evidence before counts*: an equal call with an equal
result is a repeat, a changed result is progress, and repeats only add up while nothing new was
learned between.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Final, TypeVar

from otel_loopguard.core.cycles import Cycles
from otel_loopguard.core.model import (
    FAILED,
    Kind,
    Outcome,
    Pattern,
    Severity,
    Source,
    Status,
    Step,
    Stuck,
)
from otel_loopguard.core.records import Alert, CallRecord, Mark, Streak, ToolRecord

RING: Final = 64
MAX_CALLS: Final = 256
MAX_TOOLS: Final = 64
MAX_ALERTS: Final = 64
MAX_STREAK_ARGS: Final = 8
WAIT_NS: Final = 20_000_000_000
WAIT_WEIGHT: Final = 0.25
MASKED_WEIGHT: Final = 0.5

_K = TypeVar("_K")
_V = TypeVar("_V")
_NOTHING_NEW: Final = FAILED | {Outcome.EMPTY, Outcome.PENDING, Outcome.UNKNOWN}


def _remember(table: OrderedDict[_K, _V], key: _K, value: _V, limit: int) -> None:
    """Put `value` at the young end of a table that drops its oldest entries beyond `limit`."""
    table[key] = value
    table.move_to_end(key)
    if len(table) > limit:
        table.popitem(last=False)


class Episode:
    """The bounded state of one agent run.

    Attributes:
        run: the run's id.
        agent: the agent's name, if known.
        steps: the newest counted steps, at most 64.
        calls: what is known of each call, by (action, arguments' digest).
        tools: what is known of each tool.
        cycles: the period counters.
        alerts: what was last said about each loop, by the finding's identity.
        iteration: number of tool rounds so far; a parallel round is one.
        tokens: tokens spent so far.
        consecutive: length of the streak of the newest tool.
        progress: how many steps brought something new.
        good: how many steps in a row brought something new.
        stuck: the worst that is wrong right now, None while healthy.
        call: the record of the newest step's call; None if that step was no call.
        tool: the record of the newest step's tool; None if that step was no call.
        spoken: in which iteration each pattern last spoke.
    """

    __slots__ = (
        "_call_ids", "_last_action", "_model_ns", "_results", "_round", "_round_end_ns",
        "agent", "alerts", "call", "calls", "consecutive", "cycles", "good", "iteration",
        "last_seen_ns", "progress", "run", "spoken", "steps", "stuck", "tokens", "tool", "tools",
    )  # fmt: skip

    def __init__(self, run: str, agent: str | None = None) -> None:
        self.run = run
        self.agent = agent
        self.steps: deque[Step] = deque(maxlen=RING)
        self.calls: OrderedDict[tuple[str, str | None], CallRecord] = OrderedDict()
        self.tools: OrderedDict[str, ToolRecord] = OrderedDict()
        self.cycles = Cycles()
        self.alerts: OrderedDict[str, Alert] = OrderedDict()
        self.iteration = 0
        self.tokens = 0
        self.consecutive = 0
        self.progress = 0
        self.good = 0
        self.stuck: Stuck | None = None
        self.call: CallRecord | None = None
        self.tool: ToolRecord | None = None
        self.spoken: dict[Pattern, int] = {}
        self.last_seen_ns = 0
        self._last_action: str | None = None
        self._round: str | None = None
        self._round_end_ns = 0
        self._model_ns = 0
        self._call_ids: OrderedDict[str, Source] = OrderedDict()
        self._results: OrderedDict[tuple[str, str], None] = OrderedDict()

    def add(self, step: Step) -> bool:
        """Take one step; False if it was no step of its own (seen before, or another attempt)."""
        self.last_seen_ns = max(self.last_seen_ns, step.end_ns)
        self.call = self.tool = None
        if step.kind is Kind.TOOL or step.kind is Kind.AGENT:
            return self._add_call(step)
        if step.kind is Kind.RETRY:
            return False
        if step.kind is Kind.MODEL:
            self.tokens += step.tokens
            self._model_ns += max(0, step.end_ns - step.start_ns)
        elif step.kind is Kind.USER:
            self._start_over()
        elif step.kind is Kind.EFFECT:
            self.progress += 1
        self.steps.append(step)
        return True

    def _start_over(self) -> None:
        """A user turn: what was counted is void, what was said is not forgotten."""
        self.calls.clear()
        self.tools.clear()
        self.cycles.clear()
        self.consecutive = 0
        self._last_action = None

    def _add_call(self, step: Step) -> bool:
        earlier = self._call_ids.get(step.call_id) if step.call_id else None
        if earlier is not None and earlier is not step.source:
            return False  # somebody else shows the same call
        if step.call_id:
            _remember(self._call_ids, step.call_id, step.source, MAX_CALLS)
        again = earlier is not None
        opens = not again and self._opens_round(step)
        if opens:
            self.iteration += 1
        if not again:
            self.steps.append(step)
            self.consecutive = self.consecutive + 1 if step.action == self._last_action else 1
            self._last_action = step.action
        mark = Mark(step.span_id, step.end_ns, self.tokens)
        self._count_call(step, mark, again=again)
        self._count_tool(step, mark, again=again)
        self.cycles.add(
            step.action, step.args_key, step.masked_key or step.result_key, mark, opens=opens
        )
        return not again

    def _opens_round(self, step: Step) -> bool:
        """Calls of one model response, and calls that overlap in time, are one round."""
        named = step.round is not None and step.round == self._round
        overlaps = 0 < step.start_ns < self._round_end_ns
        self._round = step.round
        self._round_end_ns = max(step.end_ns, self._round_end_ns if named or overlaps else 0)
        return not (named or overlaps)

    def _count_call(self, step: Step, mark: Mark, *, again: bool) -> None:
        key = (step.action, step.args_key)
        record = self.calls.get(key) if step.args_key is not None else None
        if record is None:
            record = CallRecord(mark)
        if not again:
            self._weigh(record, step, mark)
        self._judge_news(record, step)
        record.result_key, record.masked_key = step.result_key, step.masked_key
        record.round_no, record.progress = self.iteration, self.progress
        record.model_ns, record.end_ns = self._model_ns, step.end_ns
        self.call = record
        if step.args_key is not None:
            _remember(self.calls, key, record, MAX_CALLS)

    def _weigh(self, record: CallRecord, step: Step, mark: Mark) -> None:
        """Add one occurrence to a call's record."""
        same_round = record.seen > 0 and record.round_no == self.iteration
        record.seen += 1
        equal = step.result_key is not None and step.result_key == record.result_key
        masked = step.masked_key is not None and step.masked_key == record.masked_key
        if same_round and (equal or masked):
            return
        if not (equal or masked):
            record.same, record.weight, record.first = 1, 1.0, mark
            return
        record.same += 1
        if record.progress != self.progress:
            record.weight, record.first = 1.0, mark
            return
        waited = step.start_ns - record.end_ns - (self._model_ns - record.model_ns)
        weight = 1.0 if equal else MASKED_WEIGHT
        record.weight += weight * (WAIT_WEIGHT if record.end_ns and waited >= WAIT_NS else 1.0)

    def _judge_news(self, record: CallRecord, step: Step) -> None:
        """Count progress: a result new to this tool, or a new call acknowledged."""
        keys = [(step.action, key) for key in (step.result_key, step.masked_key) if key]
        if step.outcome is Outcome.ACK:
            news = record.seen == 1
        else:
            news = step.outcome not in _NOTHING_NEW and not any(k in self._results for k in keys)
        for key in keys:
            _remember(self._results, key, None, MAX_CALLS)
        self.progress += news
        self.good = self.good + 1 if news else 0

    def _count_tool(self, step: Step, mark: Mark, *, again: bool) -> None:
        tool = self.tools.get(step.action) or ToolRecord()
        _remember(self.tools, step.action, tool, MAX_TOOLS)
        self.tool = tool
        if step.outcome in FAILED:
            self._extend(tool.failures, step.error or step.outcome.value, step, mark, again=again)
            tool.results.clear()
            return
        tool.failures.clear()
        if step.outcome in (Outcome.ACK, Outcome.PENDING) or step.result_key is None:
            tool.results.clear()
        elif not again:
            self._extend(tool.results, step.result_key, step, mark, again=False)

    def _extend(self, streak: Streak, key: str, step: Step, mark: Mark, *, again: bool) -> None:
        """One more equal end of a tool; a parallel round counts once, each attempt counts."""
        if streak.key != key or streak.progress != self.progress or streak.first is None:
            streak.key, streak.count, streak.first, streak.args = key, 0, mark, set()
            streak.progress = self.progress
        if again or streak.count == 0 or streak.round_no != self.iteration:
            streak.count += 1
        streak.round_no = self.iteration
        if len(streak.args) < MAX_STREAK_ARGS:
            streak.args.add(step.args_key)

    def grade(
        self, identity: str, repeats: float, warning: float, critical: float
    ) -> Severity | None:
        """How bad `repeats` of a loop are; None if not worth a word.

        A relapse, that is a loop that was spoken of and then interrupted, needs half as many.
        """
        alert = self.alerts.get(identity)
        if alert is not None and (alert.relapsed or repeats < alert.repeats):
            warning, critical = -(-warning // 2), -(-critical // 2)
        if repeats >= critical:
            return Severity.CRITICAL
        return Severity.WARNING if repeats >= warning else None

    def remember_alert(self, identity: str, alert: Alert) -> None:
        """Keep what was said about a loop."""
        _remember(self.alerts, identity, alert, MAX_ALERTS)

    @property
    def status(self) -> Status:
        """The run's health, judged by its newest step."""
        if self.stuck is not None:
            return Status.DEADLOCKED
        newest = self.steps[-1].outcome if self.steps else Outcome.UNKNOWN
        if newest is Outcome.PENDING or newest in FAILED:
            return Status.HEALTHY
        if self.tool is not None and self.tool.results.count >= 3:
            return Status.STAGNANT
        repeats = self.call is not None and self.call.weight >= 2
        cycle = self.cycles.longest(2)
        if repeats or (cycle is not None and cycle.period > 1):
            return Status.REPEATING
        return Status.HEALTHY
