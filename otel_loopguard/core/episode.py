"""What is remembered of one agent run: fixed size, O(1) a step, whatever the history.

An `Episode` takes steps and keeps incremental facts; detectors read them and hold no state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from otel_loopguard.core.agents import Deeds, Others
from otel_loopguard.core.alerts import Alerts
from otel_loopguard.core.callids import CallIds
from otel_loopguard.core.cycles import NOT_CAPTURED, Cycle
from otel_loopguard.core.handoffs import Handoffs, may_hand_over
from otel_loopguard.core.model import FAILED, Kind, Outcome, Pattern, Status, Step, Stuck
from otel_loopguard.core.records import CallRecord, Moment, Once, Spoken, ToolRecord
from otel_loopguard.core.rejections import Rejections
from otel_loopguard.core.sizes import SHORT
from otel_loopguard.core.streaks import is_bare
from otel_loopguard.core.talk import Talk
from otel_loopguard.core.tuples import make

if TYPE_CHECKING:
    from otel_loopguard.core.decision import Standing

CONDENSED: Final = 16  # of each table, that a condensed run keeps
RECOVERY_STEPS: Final = 5
FEW: Final = 4  # of "done" nobody knows what was made

# Before Python 3.12 it takes long to read a member from its enum.
_TOOL: Final = Kind.TOOL
_AGENT: Final = Kind.AGENT
_EMPTY: Final = Outcome.EMPTY
_PENDING: Final = Outcome.PENDING
_TOLD: Final = frozenset({Kind.COMPACT, Kind.HANDOFF})
_HEALTHY: Final = Status.HEALTHY
_DELEGATION: Final = Pattern.DELEGATION_LOOP.value


class Episode:
    """The bounded state of one agent run.

    Attributes:
        run: the run's id.
        agent: the agent's name, if known.
        alerts: what was last said about each loop.
        newest: the newest step that counted; None before the first.
        call: the record of the newest step's call; None if that step was no call.
        loose: the record of all calls that are nearly the same as the newest step's, if some are.
        tool: the record of the newest step's tool; None if that step was no call.
        cycle: the cycle of at least two laps that the newest call goes on, or None.
        repeats: whether the newest step may repeat anything: a call, a cycle, an end, an errand.
        iteration, consecutive: tool rounds so far, a parallel one is one; the newest tool's streak.
        asked: the tools whose calls are asked about before they are made, as far as known.
        turn_start, ordered: when the user last spoke; how often to do what, or (< 0) things named.
        tokens: tokens spent so far.
        good: how many steps brought something new since a finding last held.
        health: what the newest call says of the run; not whether it is stuck.
        stuck: the worst that is wrong right now, None while healthy.
        last_seen_ns, closed: when the newest step ended, 0 if unknown; whether it is over since.
        spoken: the last time that each pattern spoke.
        talk: what the models say; None before any said a word.
        handoffs: who handed what to whom, shared with the runs nested in this one; None before.
        standing: the loops that stand right now; None while there was none.
    """

    __slots__ = (
        "_acting", "_call_ids", "_deeds", "_model_ns", "_others", "agent", "alerts", "asked",
        "call", "closed", "consecutive", "cycle", "good", "handoffs", "health", "iteration",
        "last_seen_ns", "loose", "newest", "ordered", "repeats", "run", "spoken", "standing",
        "stuck", "talk", "tokens", "tool", "turn_start",
    )  # fmt: skip

    def __init__(self, run: str, agent: str | None = None) -> None:
        self.run = run
        self.agent = agent
        self.newest: Step | None = None
        self.call: CallRecord | Once | None = None
        self.loose: CallRecord | None = None
        self.tool: ToolRecord | None = None
        self.cycle: Cycle | None = None
        self.repeats = self.closed = False
        self.asked: tuple[str, ...] = ()
        self.iteration = self.consecutive = self.turn_start = self.ordered = 0
        self.tokens = self.good = self.last_seen_ns = self._model_ns = 0
        self.stuck: Stuck | None = None
        self.spoken: dict[Pattern, Spoken] = {}
        self.talk: Talk | None = None
        self.handoffs: Handoffs | None = None
        self.standing: Standing | None = None
        self.alerts = Alerts()
        self._call_ids = CallIds()
        self.health = Status.HEALTHY
        self._acting: str | None = None
        self._deeds = Deeds()
        self._others: Others | None = None

    @property
    def rejections(self) -> Rejections | None:
        """How the calls of the agent that acts are turned down; None while none is."""
        return self._deeds.rejections

    @property
    def deeds(self) -> Deeds:
        """What the agent that acts has done."""
        return self._deeds

    def earlier(
        self, action: str, args_key: str | None, agent: str | None
    ) -> CallRecord | Once | None:
        """What is known of an agent's call; None if it did not come yet, or is unknown."""
        deeds: Deeds | None = self._deeds
        if agent is not None and self._acting is not None and agent != self._acting:
            deeds = None if self._others is None else self._others.get(agent)
        return None if deeds is None else deeds.evidence.earlier(action, args_key)

    def knows(
        self, action: str, args_key: str | None, result_key: str | None, agent: str | None
    ) -> bool:
        """Whether anything may be known of an agent's call, or of its result."""
        acting, evidence = self._acting, self._deeds.evidence
        if result_key is None or (agent != acting and None not in (agent, acting)):
            return True
        return (action, args_key) in evidence.calls or (action, result_key) in evidence.results

    def add(self, step: Step) -> bool:
        """Take one step; False if it was no step of its own (seen before, or another attempt)."""
        before_ns, kind = self.last_seen_ns, step.kind
        if step.end_ns > before_ns:
            self.last_seen_ns = step.end_ns
        self.closed = self.repeats = False
        self.call = self.loose = self.tool = self.cycle = None
        handoffs = self.handoffs
        turns = step.agent is not self._acting or step.target is not None
        if handoffs is None and turns and may_hand_over(self.newest, step):
            handoffs = self.hand_over()
        if kind is _TOOL or kind is _AGENT:
            counted = self._add_call(step)
        else:
            counted = self._add_other(step, before_ns)
        if counted and handoffs is not None:
            handoffs.add(step, self._moment(step))
            self.repeats = True  # what is handed over may come back
        return counted

    def _add_other(self, step: Step, before_ns: int) -> bool:
        if step.kind is Kind.RETRY:
            self._deeds.evidence.replays += 1
            return False
        if step.kind is Kind.MODEL:
            self.tokens += step.tokens
            began_ns = step.start_ns if step.start_ns < step.end_ns else before_ns or step.end_ns
            self._model_ns += max(1, step.end_ns - began_ns)  # each model step is to show in it
            self._call_ids.model_responded()
        elif step.kind is Kind.USER:
            self._start_over()
            self.ordered = step.size or 0
        elif step.kind is Kind.EFFECT:
            self._deeds.evidence.see_change()
            if self._others is not None:
                self._others.see_change()
        elif step.kind is Kind.COMPACT:
            self._deeds.ranges = None  # what was read is no longer known
        told = step.kind in _TOLD or step.error is not None
        if step.said is not None or self.talk is not None or told:
            talk = self.talk = self.talk or Talk()
            self.repeats = talk.take(step, self._moment(step))
        self.newest = step
        return True

    def hand_over(self) -> Handoffs:
        """The record of hand-overs that a run shares with those nested in it."""
        if self.handoffs is None:
            self.handoffs = Handoffs()
            if self.newest is not None:
                self.handoffs.add(self.newest, self._moment(self.newest))
        return self.handoffs

    def _moment(self, step: Step) -> Moment:
        return Moment(step.span, self.iteration, step.end_ns, self.tokens, self._model_ns)

    def touch(self, step: Step) -> None:
        """Take note that the run is alive by something that is no step of it."""
        self.last_seen_ns = max(self.last_seen_ns, step.end_ns)
        self.closed = self.repeats = False
        self.call = self.loose = self.tool = self.cycle = None

    def condense(self) -> None:
        """Forget what happened long ago, to take little room while other runs are busier."""
        self._others = self.handoffs = self.standing = None
        self._deeds.ranges = self._deeds.plans = self._deeds.echoes = None
        self._deeds.evidence.condense(CONDENSED)
        self._call_ids.condense(CONDENSED)
        self.alerts.condense(CONDENSED)
        if self.talk is not None:
            self.talk.condense()
        self.newest = self.call = self.loose = self.tool = self.cycle = None
        self.repeats = False

    def _start_over(self) -> None:
        """A user turn: what was counted is void, what was said is not forgotten."""
        self._others = None
        self._deeds.clear()
        if self.handoffs is not None:
            self.handoffs.clear()
        self.turn_start, self.consecutive, self.health = self.iteration, 0, _HEALTHY

    def _add_call(self, step: Step) -> bool:
        claim = None if step.call_id is None else self._call_ids.claim(step, step.call_id)
        if claim == "seen":
            return False
        if step.agent != self._acting and step.agent is not None:
            self._turn_to(step.agent)
        deeds, again = self._deeds, claim == "again"
        fresh = None
        if step.fresh and not again:
            fresh = deeds.take_fresh(step, self.iteration + 1, self.tokens, self._model_ns)
        self.health = _HEALTHY
        if fresh is None:
            call, now = self._count(deeds, step, again=again)
        else:  # as most often
            call, self.tool = fresh
            now, self.iteration = call.latest, deeds.opened
            self.good += 1
        self.call, self.consecutive = call, deeds.consecutive
        if not again:
            self.newest = step
            if step.gist is not None:
                self.repeats |= deeds.understand(step, step.gist, now)
        evidence = deeds.evidence
        if self._others is not None and evidence.changed:
            self._others.see_change()
        if self.talk is not None or step.said is not None:
            talk = self.talk = self.talk or Talk()
            moved = evidence.moved or step.result_key is None or step.outcome is _PENDING
            self.repeats |= talk.called(step, call, now, moved=moved)
        return not again

    def _turn_to(self, agent: str) -> None:
        """Another agent acts from here on; what was done before one was named is the first's."""
        if self._acting is not None:
            others = self._others = self._others or Others()
            self._deeds = others.swap(self._acting, self._deeds, agent)
        self._acting = agent

    def _count(self, deeds: Deeds, step: Step, *, again: bool) -> tuple[CallRecord, Moment]:
        """Take a call into all counters; with `again` another attempt at the newest one."""
        opens = not again and deeds.begin(step, self.iteration + 1)
        self.iteration += opens
        evidence = deeds.evidence
        now = make(Moment, (step.span, deeds.opened, step.end_ns, self.tokens, self._model_ns))
        call = evidence.count_call(step, now, again=again, opens=opens)
        self.tool = evidence.tools.count(evidence, step, now, again=again)
        self._weigh(step, call, self.tool, now, opens=opens)
        return call, now

    def _weigh(
        self, step: Step, call: CallRecord, tool: ToolRecord, now: Moment, *, opens: bool
    ) -> None:
        """Whether a call goes on with anything."""
        deeds = self._deeds
        evidence = deeds.evidence
        self.loose = evidence.loose
        self.good += evidence.moved and step.outcome is not _EMPTY
        deeds.hear(step)
        if deeds.rejections is not None or step.outcome in Rejections.OUTCOMES:
            rejections = deeds.rejections = deeds.rejections or Rejections()
            rejections.take(step, now, moved=evidence.moved, epoch=evidence.epoch)
            self.repeats = rejections.like is not None
        result = call.like or (None if step.outcome in FAILED else NOT_CAPTURED)
        args_key = step.loose_key or step.args_key
        vague = evidence.vague or (None if is_bare(step) else False)
        goes_on = deeds.cycles.add(step.action, args_key, result, now, opens=opens, vague=vague)
        self.cycle = (deeds.cycles.longest(2) if goes_on else None) or evidence.tour
        if call.seen > 1 or not step.fresh or self.cycle is not None:
            goes_round = deeds.goes_round(step, call, now)
            streak = tool.results or tool.failures
            in_row = 0 if streak is None else streak.count
            if goes_round or self.cycle or self.loose or call.repeats >= 2 or in_row >= 2:
                self.repeats = True
                self.health = deeds.health(step, call, tool, self.cycle)

    def recover(self) -> None:
        """The run is no longer stuck once enough steps brought something new."""
        if self.stuck is not None and self.good >= RECOVERY_STEPS:
            self.stuck = None

    def told(self, identity: str) -> Alerts:
        """What was said about a loop; of hand-overs, by all runs that are nested in each other."""
        if self.handoffs is not None and identity.startswith(_DELEGATION):
            return self.handoffs.alerts
        return self.alerts

    def wanted(self, step: Step, call: CallRecord | Once) -> bool:
        """Whether a call makes one of so many things as the user may have asked for one by one."""
        new = step.masked_key is not None and (step.size or 0) <= SHORT
        return call.repeats <= -self.ordered and (new or (call.repeats <= FEW and is_bare(step)))
