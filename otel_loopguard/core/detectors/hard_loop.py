"""hard_loop: the same tool, the same arguments, the same result."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from otel_loopguard.core.detectors.base import waste
from otel_loopguard.core.model import FAILED, Finding, Outcome, Pattern, Step

if TYPE_CHECKING:
    from otel_loopguard.core.episode import Episode


@dataclass(frozen=True, slots=True)
class HardLoop:
    """An equal call with an equal result, again and again with nothing new learned between.

    Results that say "not yet" are polls and have a scale of their own; failures are a retry storm.
    Catches: search("x") -> the same page, three times; a call whose results differ in a timestamp.
    Leaves alone: the same call with another result each time; a call repeated after other news.
    """

    warning: int = field(default=3, metadata={"doc": "equal calls with equal results: warning"})
    critical: int = field(default=5, metadata={"doc": "the same: critical"})
    poll_warning: int = field(default=10, metadata={"doc": "equal pending results: warning"})
    poll_critical: int = field(default=20, metadata={"doc": "the same: critical"})

    def __call__(self, episode: Episode, step: Step, /) -> Finding | None:
        """See `Detector`."""
        call = episode.call
        if call is None or step.args_key is None or step.outcome in FAILED or call.weight < 2:
            return None
        polls = step.outcome is Outcome.PENDING
        limits = (self.poll_warning, self.poll_critical) if polls else (self.warning, self.critical)
        identity = f"{Pattern.HARD_LOOP.value}:{step.action}:{step.args_key}"
        severity = episode.grade(identity, call.weight, *limits)
        cycle = episode.cycles.longest(2)
        if severity is None or (cycle is not None and cycle.period > 1):
            return None
        tokens, seconds = waste(episode, step, call.first)
        answer = "that it is not ready" if polls else "the same result"
        return Finding(
            pattern=Pattern.HARD_LOOP,
            severity=severity,
            identity=identity,
            period=1,
            repeats=call.same,
            evidence=f"{step.action} was called {call.same} times with the same arguments and gave "
            f"{answer} each time",
            suggested_action="wait_longer" if polls else "inject_correction",
            first_span_id=call.first.span_id,
            action=step.action,
            args_key=step.args_key,
            wasted_calls=call.same - 1,
            wasted_tokens=tokens,
            wasted_seconds=seconds,
        )
