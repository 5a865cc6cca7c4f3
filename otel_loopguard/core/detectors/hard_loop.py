"""hard_loop: the same tool, the same arguments, the same result."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final

from otel_loopguard.core.detectors.base import waits, waste
from otel_loopguard.core.model import FAILED, Finding, Outcome, Pattern, Step

if TYPE_CHECKING:
    from otel_loopguard.core.episode import Episode

# Before Python 3.12 it takes long to read a member from its enum.
_PATTERN: Final = Pattern.HARD_LOOP
_NAME: Final = _PATTERN.value
_PENDING: Final = Outcome.PENDING


@dataclass(frozen=True, slots=True)
class HardLoop:
    """An equal call with an equal result, again and again with nothing new learned between.

    Results that say "not yet", and what is called between them, are polls and have a scale of
    their own; failures are a retry storm.
    Catches: search("x") -> the same page, three times; a call whose results differ in a timestamp.
    Leaves alone: the same call with another result each time; a call repeated after other news.
    """

    only_repeats: ClassVar[bool] = True
    warning: int = field(default=3, metadata={"doc": "equal calls with equal results: warning"})
    critical: int = field(default=5, metadata={"doc": "equal calls with equal results: critical"})
    poll_warning: int = field(default=10, metadata={"doc": "equal calls while waiting: warning"})
    poll_critical: int = field(default=20, metadata={"doc": "equal calls while waiting: critical"})

    def __call__(self, episode: Episode, step: Step, /) -> Finding | None:
        """See `Detector`."""
        call, cycle = episode.call, episode.cycle
        if call is None or call.weight < 2 or step.args_key is None or step.outcome in FAILED:
            return None
        if cycle is not None and cycle.period > 1:
            return None
        polls = episode.polls(2) or waits(step.action)
        limits = (self.poll_warning, self.poll_critical) if polls else (self.warning, self.critical)
        identity = f"{_NAME}:{step.action}:{step.args_key}"
        severity = episode.grade(identity, call.weight, limits, call.first)
        if severity is None:
            return None
        tokens, seconds = waste(episode, step, call.first)
        answer = "the same result" if step.outcome is not _PENDING else "no final result"
        return Finding(
            pattern=_PATTERN,
            severity=severity,
            identity=identity,
            period=1,
            repeats=call.repeats,
            evidence=f"{step.action} was called {call.repeats} times with the same arguments and "
            f"gave {answer} each time",
            suggested_action="wait_longer" if polls else "inject_correction",
            first_span=call.first.span,
            first_iteration=call.first.iteration,
            action=step.action,
            args_key=step.args_key,
            wasted_calls=call.repeats - 1,
            wasted_tokens=tokens,
            wasted_seconds=seconds,
        )
