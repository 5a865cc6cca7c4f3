"""Who hands what to whom, within one run and through the runs nested in it.

Agents hand over by a hand-off, by calling another agent, by a tool that names one, or by a text
after which another one acts. All runs that are nested in each other share one record: each hop of a
delegation may open a run of its own, and only together do they show that the task goes round.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from otel_loopguard.core.alerts import Alerts
from otel_loopguard.core.model import FAILED, Kind, Outcome, Step
from otel_loopguard.core.passing import Baton
from otel_loopguard.core.records import WAIT_NS, WAIT_WEIGHT, Recent, remember
from otel_loopguard.core.series import Series
from otel_loopguard.core.sizes import BARE, SHORT
from otel_loopguard.core.tasks import ALIKE, names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from otel_loopguard.core.records import Moment
    from otel_loopguard.core.tasks import Task

MAX_ERRANDS: Final = 32
MAX_AGENTS: Final = 32
MAX_KNOWN: Final = 128
MAX_HEARD: Final = 512
FEW: Final = 3
MOST: Final = 6
"""Among few agents hand-overs go round; among more, up to so many, those do that were made before.
"""
TELLING: Final = 6
"""So many new words, if half of all are, tell something new, as a new name or number does."""
LONG_WORDS: Final = 16
"""A hand-over of so many longer words is what somebody wrote, not only who goes on."""
MUCH: Final = 3
"""An errand that brought more news than this was worth it: asking again is another errand."""


_PENDING: Final = Outcome.PENDING
_NO_NEWS: Final = FAILED | {Outcome.EMPTY}
_ENDS: Final = frozenset({Kind.TOOL, Kind.AGENT})
_TEXTS: Final = frozenset({Kind.MODEL, Kind.HANDOFF})
_HANDS_OVER: Final = frozenset({Kind.TOOL, Kind.AGENT, Kind.HANDOFF})


class Errand:
    """One task that one agent gave to another, and how often.

    Attributes:
        caller, target, key, task: who asks whom; the instruction's digest, and what it asks for.
        first, times: since when and how often it was given, since it last brought much.
        first_idle, idle: since when and how often it was given since anything new came of it,
            where nothing of the caller's own words is new. After a wait it counts less.
        open: how many that it was given to are still at it.
    """

    __slots__ = (
        "_news", "caller", "first", "first_idle", "idle", "key", "open", "target", "task", "times",
    )  # fmt: skip

    def __init__(self, caller: str, target: str, step: Step, now: Moment) -> None:
        self.caller, self.target, self.task = caller, target, step.task
        self.key = step.args_key or step.action
        self.first = self.first_idle = now
        self.times = self.idle = 0.0
        self.open = 0
        self._news = 0

    def is_(self, caller: str, target: str, key: str, task: Task | None) -> bool:
        """Whether it is this one that is given."""
        if self.caller != caller or self.target != target:
            return False
        if key == self.key:
            return True
        return task is not None and self.task is not None and task.same(self.task, ALIKE)

    def give(self, now: Moment, news: int, weight: float) -> None:
        """It is given once more; `news` is how much had been new to the caller by then."""
        came = news - self._news
        if came > MUCH or not self.times:
            self.times, self.first = 0.0, now
        if came or not self.idle:
            self.idle, self.first_idle = 0.0, now
        self.times += weight if self.times else 1.0
        self.idle += weight if self.idle else 1.0
        self._news = news


class Relay(NamedTuple):
    """Hand-overs to agents that do nothing but hand over, whatever they say in doing so.

    Attributes:
        agents, ways: who takes part, and who handed over to whom.
        times: how many hand-overs there were; those after a wait count less.
        first: the first of them.
    """

    agents: frozenset[str]
    ways: frozenset[tuple[str, str]]
    times: float
    first: Moment


class Handoffs:
    """The hand-overs of one run and of those nested in it. Bounded.

    Attributes:
        errand: the errand that the newest step gave, or showed to be one; None if it did not.
        baton: the task that is passed on.
        relay: the hand-overs since somebody did anything else; None if there was none.
        alerts: what was last said about them.
    """

    __slots__ = (
        "_agents", "_errands", "_given", "_heard", "_known", "_last", "_listed", "_movers", "_news",
        "_series", "_word", "alerts", "baton", "errand", "relay",
    )  # fmt: skip

    def __init__(self) -> None:
        self.alerts = Alerts()
        self.errand: Errand | None = None
        self.baton = Baton()
        self._agents: dict[str, int] = {}  # and how much was new in their own words
        self._errands: list[Errand] = []
        self._known: Recent[str, None] = Recent(MAX_KNOWN)
        self._heard: dict[int | str | None, None] = {}
        self._given: str | None = None
        self._movers: dict[str, None] = {}
        self._last: tuple[Step, Moment] | None = None
        self._news = 0
        self._word: str | None = None
        self._series: dict[tuple[str, str], Series] = {}
        self._listed = False
        self.relay: Relay | None = None

    def clear(self) -> None:
        """A user turn: what was handed over before it is void."""
        self._errands.clear()
        self._series.clear()
        self.baton.drop()
        self._given = self._last = self.errand = self.relay = None

    def named(self, caller: str | None, action: str, words: Iterable[object]) -> str | None:
        """The agent that a call names: as one of its arguments' values, or in the tool's name."""
        known = list(words)
        found = (each for each in self._agents if each != caller and names(each, action, known))
        return max(found, key=len, default=None)

    def moves(self, step: Step) -> bool:
        """Whether a call only hands over: its tool was seen to, and it says no more than that."""
        brief = step.target is not None and (step.size or 0) <= SHORT
        return brief and step.action in self._movers

    def add(self, step: Step, now: Moment) -> None:
        """Take one step of any of the runs."""
        self.errand = self.baton.passed = None
        agent = step.agent
        if agent is None:
            self._news += step.kind is Kind.EFFECT
            return
        if self._word is not None and (self._word != agent or step.target is None):
            self.relay = None  # it was no word in passing, but all that there was to say
        self._word = None
        self._take_over(agent, is_new=agent not in self._agents)
        remember(self._agents, agent, self._agents.get(agent, 0), MAX_AGENTS)
        if step.kind in _ENDS and self._is_end(agent, step):
            self.baton.drop()
        else:
            self._hand_over(agent, step, now)
        self._learn(agent, step)
        self._last = (step, now)

    def _hand_over(self, agent: str, step: Step, now: Moment) -> None:
        if step.target is not None and step.target != agent and step.kind is not Kind.TOOL:
            self._give(agent, step.target, step, now)
            self._given = step.target
            self._hand_on(agent, step, now)
        if step.kind in _HANDS_OVER:
            self.baton.take(step, now)

    def _is_end(self, agent: str, step: Step) -> bool:
        """Whether a call is the end of an errand whose start was seen."""
        for each in self._errands:
            if each.open and each.caller == agent and each.target == step.target:
                each.open -= 1
                return True
        return False

    def _take_over(self, agent: str, *, is_new: bool) -> None:
        """Somebody acts: if it is another agent than before, it was handed over to."""
        if self._last is None or self._last[0].agent == agent:
            return
        last, when = self._last
        if last.kind is Kind.TOOL and last.target == agent and (last.size or 0) <= SHORT:
            caller = last.agent or ""  # its call named the agent that acts now, and said no more
            self._give(caller, agent, replace(last, task=None), when)
            self._hand_on(caller, last, when)
            remember(self._movers, last.action, None, MAX_AGENTS)
        if self._given != agent and last.kind is Kind.MODEL and last.size:
            self._say(last, agent, when)
        self._given = None
        if is_new or last.target == agent:
            self.baton.taken_by(agent)

    def _give(self, caller: str, target: str, step: Step, now: Moment) -> None:
        key, task, errands = step.args_key or step.action, step.task, self._errands
        errand = next((each for each in errands if each.is_(caller, target, key, task)), None)
        if errand is None:
            errand = Errand(caller, target, step, now)
            errands.append(errand)
            if len(errands) > MAX_ERRANDS:
                del errands[0]
        errand.open += step.kind is Kind.HANDOFF
        series = self._series.get((caller, target)) or Series()
        remember(self._series, (caller, target), series, MAX_ERRANDS)
        self._listed = series.another(step.subject)
        if self._listed:
            errand.times = errand.idle = 0.0  # it is another errand
        errand.give(now, self._news - self._agents.get(caller, 0), self._weight(step))
        self.errand = errand

    def _say(self, last: Step, target: str, when: Moment) -> None:
        """A text after which another agent acts hands over, unless it is the answer to that one."""
        caller = last.agent or ""
        if not any(each.caller == target and each.target == caller for each in self._errands):
            self._give(caller, target, replace(last, args_key=last.result_key), when)

    def _hand_on(self, caller: str, step: Step, now: Moment) -> None:
        relay, way = self.relay, (caller, step.target or step.action)
        agents = frozenset(way) if relay is None else relay.agents.union(way)
        if relay is None or len(agents) > MOST or self._listed:
            self.relay = Relay(frozenset(way), frozenset({way}), 1.0, now)
            return
        goes_round = (len(agents) <= FEW or way in relay.ways) and not self._tells(step)
        times = relay.times + self._weight(step) * goes_round
        self.relay = Relay(agents, relay.ways | {way}, times, relay.first)

    def _tells(self, step: Step) -> bool:
        """Whether a hand-over says something that was in none before it, more than other words."""
        task, heard = step.task, self._heard
        if task is None:
            return False
        is_long = len(task.words) >= LONG_WORDS and step.args_key not in heard
        names, words = (
            [each for each in part if each not in heard] for part in (task.names, task.words)
        )
        for each in (*names, *words, step.args_key):
            remember(heard, each, None, MAX_HEARD)
        many = len(words) >= max(TELLING, len(task.words) / 2)
        return is_long or bool(names) or many

    def _weight(self, step: Step) -> float:
        """Less where nobody did anything for a while: that is how one waits."""
        before = 0 if self._last is None else self._last[1].end_ns
        return WAIT_WEIGHT if 0 < before <= step.start_ns - WAIT_NS else 1.0

    def _learn(self, agent: str, step: Step) -> None:
        """Take note of what is new to all: a result, a text, a change to the world, a wait."""
        key = step.args_key if step.kind is Kind.HANDOFF else step.result_key
        if step.outcome in _NO_NEWS or (key is None and step.kind is Kind.HANDOFF):
            return
        if key is None or step.outcome is _PENDING or self._is_new(key) or self._changes(step):
            self._news += 1
            self._agents[agent] += step.kind in _TEXTS
            if step.kind is Kind.MODEL and (step.size or 0) <= SHORT:
                self._word = agent
            elif step.target is None:
                self.relay = None
            if step.kind is not Kind.HANDOFF and (step.size or 0) > SHORT:
                self.baton.drop()  # the one who has the task does something about it

    def _changes(self, step: Step) -> bool:
        """Whether a call may have changed something: a new one that says no more than "done"."""
        if step.kind is not Kind.TOOL or step.target is not None or (step.size or 0) > BARE:
            return False
        return self._is_new(f"{step.action}:{step.args_key}")

    def _is_new(self, key: str) -> bool:
        known = self._known
        is_known = key in known
        known.put(key, None)
        return not is_known


def may_hand_over(before: Step | None, step: Step) -> bool:
    """Whether a step tells of another agent than the one before it."""
    if step.target is not None:
        return True
    if before is None or step.agent is None:
        return False
    return before.agent not in (None, step.agent)
