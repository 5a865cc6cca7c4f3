"""What to do about a call before it is made: let it go, answer with a note instead, or stop.

A call is held back only while a finding of warning or worse stands that this very call goes on
with. A finding stands from the step that it was made at until one of its calls comes to another
end, anything else is learned or changed, or the user speaks. What is done about the next request
to the model while it stands says `advice`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from otel_loopguard.core.action import Action
from otel_loopguard.core.climbs import Climbs
from otel_loopguard.core.model import Kind, Pattern, Severity, Word
from otel_loopguard.core.records import remember
from otel_loopguard.core.recovery import END

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from otel_loopguard.core.episode import Episode
    from otel_loopguard.core.model import Finding, Step
    from otel_loopguard.core.recovery import Climb

MAX_DECIDED: Final = 64
MAX_ASKED: Final = 31
GRACE: Final = 2
"""So many notes a loop gets before a run is stopped: the first, and one more step of grace."""
COOL_DOWN_NS: Final = 30_000_000_000
"""How long a tool that fails again and again is left alone; then one call may try it again."""
_ENDS: Final = frozenset({Kind.USER, Kind.EFFECT, Kind.COMPACT})


class Verdict(Word):
    """What becomes of one call of a tool, or of one request to a model."""

    GO = "go"
    NUDGE = "nudge"  # of a request: something in it is changed
    HALT = "halt"
    ASK = "ask"  # a human decides; who cannot ask one does not make the call


class Why(Word):
    """Why a call is not made, as the model is told."""

    LOOP = "loop"
    LIMIT = "limit"  # it came as often as it was declared to
    UNASKED = "unasked"  # a human has to allow it
    REFUSED = "refused"  # a human did not allow it


class Decision(NamedTuple):
    """What becomes of one call, and why.

    Attributes:
        verdict: what is to be done.
        finding: the loop that the call goes on with; None for `GO`.
        finding_id: what `loopguard.finding_id` says of it.
        nth: how often something was done about this loop, this time included.
        mode: what is done about loops of this pattern; `SHADOW` only says what would be done.
        why: why the call is held back.
        climb: the rung of the ladder that is taken.
        told: whether the same was decided before, about another attempt of the same.
    """

    verdict: Verdict
    finding: Finding | None = None
    finding_id: str = ""
    nth: int = 0
    mode: Action = Action.OBSERVE
    why: Why = Why.LOOP
    climb: Climb | None = None
    told: bool = False

    @property
    def shadow(self) -> bool:
        """Whether it is only to be said, not done."""
        return self.mode is Action.SHADOW


GO: Final = Decision(Verdict.GO)
STOPPED: Final = "deadlock"
UNANSWERED: Final = "escalation_timeout"


def weighed(mode: Action, nth: int) -> Verdict:
    """What becomes of the `nth` call that goes on with a loop."""
    return Verdict.HALT if mode is not Action.NUDGE and nth > GRACE else Verdict.NUDGE


class DeadlockError(Exception):
    """A run was stopped, since it went on with a loop that notes to the model did not end.

    It holds no content: no arguments, no results.

    Attributes:
        finding: the loop.
        finding_id: what `loopguard.finding_id` says of it.
        run_id: what `loopguard.run_id` says.
        reason: `deadlock`; `escalation_timeout` where a human was asked and did not answer.
    """

    __module__ = "otel_loopguard"  # where users find it

    def __init__(
        self, finding: Finding, finding_id: str, run_id: str, reason: str = STOPPED
    ) -> None:
        super().__init__(f"stopped: {finding.pattern.value}: {finding.evidence}")
        self.finding = finding
        self.finding_id = finding_id
        self.run_id = run_id
        self.reason = reason

    def __reduce__(self) -> tuple[type[DeadlockError], tuple[Finding, str, str, str]]:
        """Rebuild it from its attributes: it may have to pass to another process."""
        return DeadlockError, (self.finding, self.finding_id, self.run_id, self.reason)


class Alarm:
    """Whether a run is so far off that nothing that cannot be undone is to be done unasked.

    That is where a guardrail loop got critical, or so many different patterns were found, since the
    user spoke.

    Attributes:
        raised: the finding that raised it, with its id; None while none did.
    """

    __slots__ = ("_patterns", "raised")

    PATTERNS: Final = 3

    def __init__(self) -> None:
        self._patterns: set[Pattern] = set()
        self.raised: tuple[Finding, str] | None = None

    def take(self, step: Step, found: Iterable[tuple[Finding, str]]) -> None:
        """Take a step, and the findings that hold at it, each with its id."""
        if step.kind is Kind.USER:
            self._patterns.clear()
            self.raised = None
        for each in found:
            finding = each[0]
            self._patterns.add(finding.pattern)
            guarded = finding.pattern is Pattern.GUARDRAIL_LOOP
            critical = guarded and finding.severity is Severity.CRITICAL
            if critical or len(self._patterns) >= self.PATTERNS:
                self.raised = each


class _Held:
    """One loop that stands."""

    __slots__ = ("finding", "finding_id", "until_ns")

    def __init__(self, finding: Finding, finding_id: str, since_ns: int) -> None:
        self.finding = finding
        self.finding_id = finding_id
        storms = finding.pattern is Pattern.RETRY_STORM
        self.until_ns = since_ns + COOL_DOWN_NS if storms and since_ns else 0

    def covers(self, action: str, args_key: str, now_ns: int = 0) -> bool:
        """Whether a call goes on with the loop, and not after a pause that may have helped."""
        covered = self.finding.covers
        calls = ((action, args_key), (action, None), ("*", None))
        known = any(each in covered for each in calls)
        return known and not 0 < self.until_ns < now_ns


class Standing:
    """The loops of one run that stand right now, and what was decided about its calls.

    Attributes:
        alarm: whether it is that far off that a human is asked before what cannot be undone.
        climbs: how far the ladder of each was climbed.
        advised: what was decided about the newest request to the model, and `climbs.moves` then.
    """

    __slots__ = ("_decided", "_held", "advised", "alarm", "climbs")

    def __init__(self) -> None:
        self.alarm = Alarm()
        self.climbs = Climbs()
        self.advised: tuple[int, Decision] = (-1, GO)
        self._held: dict[str, _Held] = {}
        self._decided: dict[str, Decision] = {}

    @property
    def any(self) -> bool:
        """Whether any loop stands."""
        return bool(self._held)

    @property
    def loops(self) -> list[tuple[Finding, str]]:
        """The findings that stand, each with its id."""
        return [(held.finding, held.finding_id) for held in self._held.values()]

    def take(
        self, step: Step, found: Collection[tuple[Finding, str]], episode: Episode, *, news: bool
    ) -> None:
        """Take a step of the run, and the findings that hold at it, each with its id.

        Args:
            step: the newest step.
            found: the findings of warning or worse.
            episode: the run.
            news: whether the step brought something new, or changed something.
        """
        findings = (finding for finding, _ in found)
        self.climbs.take(step, findings, episode.iteration, asked=episode.asked)
        if step.kind is Kind.MODEL:
            self._decided.clear()  # providers use the same ids again
        if step.kind in _ENDS or news:
            self._held.clear()
        elif step.args_key is not None:
            over = [
                key for key, held in self._held.items() if held.covers(step.action, step.args_key)
            ]
            for key in over:
                del self._held[key]
        self.alarm.take(step, found)
        for finding, finding_id in found:
            self._held[finding.identity] = _Held(finding, finding_id, step.end_ns)

    def relent(self) -> None:
        """No loop stands any more."""
        self._held.clear()
        self._decided.clear()
        self.advised = (-1, GO)

    def decide(
        self,
        action: str,
        args_key: str | None,
        call_id: str | None,
        now_ns: int,
        mode: Callable[[Pattern], Action],
    ) -> Decision:
        """What becomes of a call. The same call id gets the same answer.

        Args:
            action: the tool.
            args_key: the digest of its arguments; None, as they were not captured, lets it go.
            call_id: the provider's id of the call, if known.
            now_ns: the time; 0 if unknown.
            mode: what to do about the loops of a pattern.
        """
        if args_key is None:
            return GO
        known = None if call_id is None else self._decided.get(call_id)
        if known is not None:
            return known
        found = (each for each in self._held.values() if each.covers(action, args_key, now_ns))
        held = next(found, None)
        chosen = Action.OBSERVE if held is None else mode(held.finding.pattern)
        decision = GO if held is None or chosen is Action.OBSERVE else self._hold(held, chosen)
        if call_id is not None:
            remember(self._decided, call_id, decision, MAX_DECIDED)
        return decision

    def _hold(self, held: _Held, mode: Action) -> Decision:
        grace = None if mode is Action.NUDGE else GRACE
        progress, climbed = self.climbs.hold(held.finding, grace)
        verdict = Verdict.HALT if climbed.rung is END else Verdict.NUDGE
        return Decision(verdict, held.finding, held.finding_id, progress.nth, mode, climb=climbed)


def asked_about(episode: Episode, action: str) -> Standing | None:
    """The loops that stand in a run, of which somebody asks about a call of a tool."""
    if action not in episode.asked:
        episode.asked = (*episode.asked[-MAX_ASKED:], action)
    return episode.standing


def let_stand(episode: Episode, step: Step, held: Iterable[Finding]) -> None:
    """Remember which findings hold at a run's newest step, for the calls about to be made."""
    alerts = ((each, episode.told(each.identity).get(each.identity)) for each in held)
    found = [(finding, alert.finding_id) for finding, alert in alerts if alert is not None]
    if episode.standing is None:
        if not found:
            return
        episode.standing = Standing()
    evidence = episode.deeds.evidence
    news = episode.call is not None and (evidence.moved or evidence.changed)
    episode.standing.take(step, found, episode, news=news)
