"""What somebody has declared about tools, and what follows of it for their calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from otel_loopguard.core.action import Action
from otel_loopguard.core.decision import GO, Decision, Verdict, Why, weighed
from otel_loopguard.core.model import Finding, Kind, Pattern, Severity
from otel_loopguard.core.names import changes
from otel_loopguard.core.records import remember
from otel_loopguard.core.recovery import HUMAN, LADDERS, suggested, to_human

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from otel_loopguard.core.decision import Standing
    from otel_loopguard.core.model import Step
    from otel_loopguard.core.traits import Traits

MAX_TOOLS: Final = 1_000
MAX_RUNS: Final = 10_000
MAX_CALLS: Final = 256


def alters(step: Step) -> bool:
    """Whether a step's tool changes something, by what is declared, else by its name."""
    traits = step.traits
    if traits is None or not (traits.idempotent or traits.irreversible):
        return changes(step.action)
    return traits.irreversible


def over_limit(
    action: str, args_key: str, times: int, limit: int, severity: Severity = Severity.WARNING
) -> Finding:
    """What is said of a call that came `times`, and may come `limit` times."""
    return Finding(
        pattern=Pattern.HARD_LOOP,
        severity=severity,
        identity=f"{Pattern.HARD_LOOP.value}:{action}:{args_key}/limit",
        period=1,
        repeats=times,
        evidence=f"{action} was called {_often(times)} with the same arguments, and may be called "
        f"{_often(limit)} by its declaration",
        suggested_action=suggested(Pattern.HARD_LOOP),
        action=action,
        args_key=args_key,
        wasted_calls=max(0, times - limit),
    )


def _often(times: int) -> str:
    return "once" if times == 1 else f"{times} times"


class Call(NamedTuple):
    """A call that is about to be made."""

    run: str
    action: str
    args_key: str | None
    call_id: str | None


class _Made:
    """The calls of one run that declarations concern."""

    __slots__ = ("by_id", "refused", "times")

    def __init__(self) -> None:
        self.times: dict[tuple[str, str], int] = {}
        self.by_id: dict[str, int] = {}
        self.refused: dict[tuple[str, str | None], Decision] = {}


class Declared:
    """The tools about which something is declared, and how often their calls came. Bounded.

    Args:
        tools: what the settings say; it is joined with what the code says of the same tool.
        identify: makes the id of a finding.

    Attributes:
        tools: what is declared of each tool.
        limits: whether any declaration limits how often a call may come.
    """

    __slots__ = ("_coded", "_identify", "_runs", "_set", "limits", "tools")

    def __init__(self, tools: Mapping[str, Traits], identify: Callable[[str], str]) -> None:
        self._set = tools
        self._coded: dict[str, Traits] = {}
        self.tools = dict(tools)
        self._identify = identify
        self._runs: dict[str, _Made] = {}
        self.limits = any(each.max_repeats is not None for each in tools.values())

    def irreversible(self, action: str | None) -> bool:
        """Whether what a tool does cannot be undone."""
        traits = None if action is None else self.tools.get(action)
        return traits is not None and traits.irreversible

    def says(self, action: str, traits: Traits) -> bool:
        """Whether just that was declared in code already."""
        return self._coded.get(action) == traits

    def add(self, action: str, traits: Traits) -> None:
        """Somebody declares something of a tool in code, which stands beside what is set."""
        remember(self._coded, action, traits, MAX_TOOLS)
        known = self._set.get(action)
        remember(self.tools, action, traits.and_also(known) if known else traits, MAX_TOOLS)
        self.limits = self.limits or traits.max_repeats is not None

    def forget(self, run: str) -> None:
        """A run is over."""
        self._runs.pop(run, None)

    def hear(self, run: str, kind: Kind) -> None:
        """Take a step that is no call: a user who speaks lets calls count from here on."""
        made = self._runs.get(run)
        if made is None:
            return
        if kind is Kind.USER:
            del self._runs[run]
        elif kind is Kind.MODEL:
            made.by_id.clear()  # from here on ids may stand for other calls

    def refuse(self, call: Call, decision: Decision) -> None:
        """A human did not allow a call: who makes it again is stopped, and nobody is asked."""
        refused = decision._replace(verdict=Verdict.HALT, why=Why.REFUSED, climb=None)
        remember(self._made(call.run).refused, call[1:3], refused, MAX_CALLS)

    def decide(
        self,
        call: Call,
        traits: Traits | None,
        standing: Standing | None,
        mode: Callable[[Pattern], Action],
        at_ns: int,
        *,
        asks: bool,
    ) -> Decision:
        """What becomes of a call, by what stands in its run and what is declared of its tool.

        `asks` says whether a human can be asked about what cannot be undone.
        """
        asks = asks and traits is not None and traits.irreversible
        chosen = _breaking(mode) if asks else mode
        decision = GO
        if standing is not None:
            decision = standing.decide(*call[1:], at_ns, chosen)
        if traits is None:
            return decision
        made = self._runs.get(call.run)
        refused = None if made is None else made.refused.get(call[1:3])
        if refused is not None:
            return refused
        if decision.finding is None and traits.max_repeats is not None:
            decision = self._within(call, traits.max_repeats, chosen(Pattern.HARD_LOOP))
        raised = None if standing is None or not asks else standing.alarm.raised
        if decision.finding is None and raised is not None:
            decision = Decision(Verdict.ASK, *raised, 1, chosen(raised[0].pattern))
        finding = decision.finding
        if finding is None or not asks or not (raised or _is_due(decision, finding)):
            return decision
        tried = () if standing is None else standing.climbs.of(finding.identity).tried
        climbed = to_human(finding.pattern, tried)
        return decision._replace(verdict=Verdict.ASK, why=Why.UNASKED, climb=climbed)

    def _within(self, call: Call, limit: int, mode: Action) -> Decision:
        """Whether a call came as often as it may. One call id is one call."""
        if call.args_key is None:
            return GO
        made, key = self._made(call.run), (call.action, call.args_key)
        times = None if call.call_id is None else made.by_id.get(call.call_id)
        if times is None:
            times = made.times.get(key, 0) + 1
            remember(made.times, key, times, MAX_CALLS)
            if call.call_id is not None:
                remember(made.by_id, call.call_id, times, MAX_CALLS)
        nth = times - limit
        if nth <= 0 or mode is Action.OBSERVE:
            return GO
        finding = over_limit(*key, limit, limit)
        finding_id = self._identify(f"{call.run}:{finding.identity}")
        return Decision(weighed(mode, nth), finding, finding_id, nth, mode, Why.LIMIT)

    def _made(self, run: str) -> _Made:
        made = self._runs.get(run) or _Made()
        remember(self._runs, run, made, MAX_RUNS)
        return made


def _is_due(decision: Decision, finding: Finding) -> bool:
    """Whether the ladder of a loop has come to a human."""
    return decision.verdict is Verdict.HALT or LADDERS[finding.pattern][0] == HUMAN


def _breaking(mode: Callable[[Pattern], Action]) -> Callable[[Pattern], Action]:
    """Who can be asked breaks loops of what cannot be undone, whatever else is done about loops."""
    shadow = Action.SHADOW
    return lambda pattern: shadow if mode(pattern) is shadow else Action.BREAK
