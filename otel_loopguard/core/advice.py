"""What to do about a request to a model before it is sent, while the run is in a loop.

The loops that show in what the model says, and those whose calls nobody can hold back, are broken
here: by a word in the request, by what the model is given and may do, and at last by stopping the
run. A loop is acted on only while it goes on, and only by the rung that is due.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from otel_loopguard.core.action import Action
from otel_loopguard.core.decision import GO, GRACE, Decision, Verdict
from otel_loopguard.core.detectors.base import ANSWERS
from otel_loopguard.core.model import Pattern, Severity
from otel_loopguard.core.recovery import (
    BY_NOTE,
    CORRECTION,
    END,
    HUMAN,
    LADDERS,
    Climb,
    Level,
    climb,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

    from otel_loopguard.core.climbs import Progress
    from otel_loopguard.core.decision import Standing
    from otel_loopguard.core.model import Finding
    from otel_loopguard.core.recovery import Remedy

_VERDICTS: Final = {END: Verdict.HALT, HUMAN: Verdict.ASK}
SEVERAL: Final = 3
"""Who is in so many kinds of loops at once needs a human."""


def advise(
    standing: Standing,
    can: AbstractSet[Remedy],
    mode: Callable[[Pattern], Action],
    asked: Callable[[str | None], bool],
) -> Decision:
    """What becomes of a request of a run. Until something happens the same answer is given.

    Args:
        standing: the loops that stand in the run.
        can: what this request allows to be done; the run can always be stopped.
        mode: what to do about the loops of a pattern.
        asked: whether a human is asked about what a tool does.
    """
    climbs = standing.climbs
    moves, known = standing.advised
    if moves == climbs.moves:
        return known._replace(told=True)
    loops = sorted(standing.loops, key=lambda loop: -loop[0].severity)
    several = len({finding.pattern for finding, _ in loops}) >= SEVERAL
    decision = GO
    for finding, finding_id in loops:
        progress, chosen = climbs.of(finding.identity), mode(finding.pattern)
        if chosen is Action.OBSERVE or not climbs.goes_on(progress):
            continue
        by_human = asked(finding.action)
        human = several or by_human or _is_forbidden(finding)
        climbed = _due(finding, progress, can, chosen, human=human)
        if climbed is None or (by_human and progress.hooked and climbed.rung.level is Level.STOP):
            continue  # before the next call of the tool itself somebody is asked
        progress.take(climbed, climbs.turn)
        verdict = _VERDICTS.get(climbed.rung, Verdict.NUDGE)
        decision = Decision(verdict, finding, finding_id, progress.nth, chosen, climb=climbed)
        break
    standing.advised = (climbs.moves, decision)
    return decision


def answered(standing: Standing, decision: Decision, *, allowed: bool) -> None:
    """A human was asked about a request; the same is given to whoever sends it again.

    With a yes the run has one more step of grace.
    """
    if decision.finding is None:
        return
    if allowed:
        progress = standing.climbs.of(decision.finding.identity)
        progress.notes = min(progress.notes, GRACE - 1)
    said = GO if allowed else decision._replace(verdict=Verdict.HALT)
    standing.advised = (standing.climbs.moves, said)


def _is_forbidden(finding: Finding) -> bool:
    return finding.pattern is Pattern.GUARDRAIL_LOOP and finding.severity is Severity.CRITICAL


def _due(
    finding: Finding,
    progress: Progress,
    can: AbstractSet[Remedy],
    mode: Action,
    *,
    human: bool,
) -> Climb | None:
    """The rung that is due for a loop that goes on; None while none is."""
    pattern, first = finding.pattern, LADDERS[finding.pattern][0]
    sure = finding.covers or finding.severity is Severity.CRITICAL
    if progress.seen_at <= progress.rung_at or not sure:
        return None
    calls = progress.hooked and finding.covers - {ANSWERS}
    if calls and not progress.notes and first.remedy in BY_NOTE:
        return None  # its next call will be held back
    climbed = climb(pattern, progress.passed, can, tried=progress.tried, asks=human)
    if climbed.rung.level is Level.STEER:
        return climbed
    ends, stops = climbed.rung is END, climbed.rung.level is Level.STOP
    early = stops and progress.nth < GRACE and finding.severity is not Severity.CRITICAL
    if mode is not Action.NUDGE and not early and not (ends and progress.notes):
        return climbed
    if progress.notes:
        return None  # its calls are held back until the run ends
    rung = first if first.level is Level.STEER else CORRECTION
    skipped = () if mode is Action.NUDGE else climbed.skipped
    return Climb(rung, skipped) if rung.remedy in can else None
