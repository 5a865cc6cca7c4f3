"""What all detectors share: the callable's shape, and how a loop becomes a finding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from otel_loopguard.core.model import Finding, Severity
from otel_loopguard.core.recovery import suggested

if TYPE_CHECKING:
    from otel_loopguard.core.episode import Episode
    from otel_loopguard.core.model import Pattern, Step
    from otel_loopguard.core.records import Moment

# Before Python 3.12 it takes long to read a member from its enum.
_CRITICAL: Final = Severity.CRITICAL


ANSWERS: Final = ("answers:", None)
"""Stands in what a finding covers for the answers of the model: no tool has such a name."""
Limits = tuple[float, float]
"""From which weight on a loop is a warning, and critical."""


class Detector(Protocol):
    """A callable on a frozen dataclass whose fields are its settings.

    It is called after `Episode.add` took the step, holds no state and does no I/O; one serves all
    runs. One with a true `only_repeats` is not asked about steps that repeat nothing.
    """

    def __call__(self, episode: Episode, step: Step, /) -> Finding | None:
        """Say what is wrong with the run now, or None."""


def found(
    episode: Episode,
    step: Step,
    pattern: Pattern,
    *,
    key: str,
    limits: Limits,
    first: Moment,
    repeats: int,
    weight: float | None = None,
    evidence: str,
    period: int = 1,
    action: str | None = None,
    args_key: str | None = None,
    wasted_calls: int | None = None,
    covers: frozenset[tuple[str, str | None]] | None = None,
    doubt: bool = False,
    waits: bool = False,
) -> Finding | None:
    """Returns the finding of a loop that `step` goes on; None while it is not worth a word.

    Args:
        episode: the run.
        step: its newest step.
        pattern: which deadlock.
        key: what makes the loop the same loop later on, within its pattern.
        limits: from which weight on it is a warning, and critical; half that for a relapse.
        first: the loop's first step.
        repeats: how often it went round.
        weight: `repeats`, less where the evidence is poor.
        evidence: one sentence, without any content.
        period: how many steps one lap has.
        action: the tool that comes again.
        args_key: its arguments, where they are the same.
        wasted_calls: calls that brought nothing; all laps but the first if not given.
        covers: the calls that go on with the loop; if not given those of `action`, and without one
            the answers of the model.
        doubt: whether this is enough to speak of a loop, but below critical not enough to act on,
            unless its calls are declared to read only and are the same.
        waits: whether what goes round only waits for something.
    """
    if repeats <= episode.ordered:
        return None
    identity, laps = f"{pattern.value}:{key}", repeats if weight is None else weight
    severity = episode.told(identity).grade(identity, laps, limits, first)
    if severity is None:
        return None
    reads = step.traits is not None and step.traits.idempotent and args_key is not None
    if doubt and severity is not _CRITICAL and not reads:
        covers = frozenset()
    elif covers is None:
        covers = frozenset({ANSWERS if action is None else (action, args_key)})
    return Finding(
        pattern=pattern,
        severity=severity,
        identity=identity,
        period=period,
        repeats=repeats,
        evidence=evidence,
        suggested_action=suggested(pattern, waits=waits),
        first_span=first.span,
        first_iteration=first.iteration,
        action=action,
        args_key=args_key,
        wasted_calls=(repeats - 1) * period if wasted_calls is None else wasted_calls,
        wasted_tokens=episode.tokens - first.tokens,
        wasted_seconds=max(0, step.end_ns - first.end_ns) / 1e9 if first.end_ns else 0.0,
        covers=covers,
    )
