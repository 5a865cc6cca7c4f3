"""What a repeat counts: how good the evidence is that it is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from otel_loopguard.core.model import FAILED, Outcome
from otel_loopguard.core.records import WAIT_NS, WAIT_WEIGHT
from otel_loopguard.core.streaks import CLOSE_ROUNDS, NEWS_WEIGHT, is_bare
from otel_loopguard.core.weights import LONG_WEIGHT, MASKED_WEIGHT

if TYPE_CHECKING:
    from otel_loopguard.core.evidence import Evidence
    from otel_loopguard.core.model import Step
    from otel_loopguard.core.records import CallRecord, Moment

MAX_ROUNDS: Final = 30
"""A call that comes back later than that has not come back."""
NEAR_WEIGHT: Final = 0.8
"""What a repeat counts whose result says almost nothing new."""
NEXT_WEIGHT: Final = 0.75
LATER_WEIGHT: Final = 0.5
"""What a repeat counts when results were not captured: in the very next round, or later."""
AT_ONCE_WEIGHT: Final = 0.75
"""What a repeat counts that the model has not asked for by itself, where it asks for the first."""
STATUS: Final = 200
"""Who waits for something is told in up to so many characters that it is not there."""
FINAL_WEIGHT: Final = 0.45
"""What a repeat counts that came after a wait, and says more than that."""

REGULAR_NS: Final = 45_000_000_000
REGULAR_WEIGHT: Final = 0.05
"""What it counts after so long a wait: so works who looks again at regular times."""

# Before Python 3.12 it takes long to read a member from its enum.
_EMPTY: Final = Outcome.EMPTY
_OK: Final = Outcome.OK
_SURE: Final = (1.0, LONG_WEIGHT, MASKED_WEIGHT)


def compare(learned: Evidence, call: CallRecord, step: Step) -> float | None:
    """What an equal result counts; 0.0 for unknown ones, None if the result is another one."""
    result_key, masked_key = step.result_key, step.masked_key
    if result_key == call.result_key:
        if result_key is not None:
            return 1.0
        return 0.0 if step.outcome not in FAILED else None
    near = 0 if step.words is None else learned.sketch(call).take(step.words)
    masked = masked_key is not None and masked_key == call.masked_key
    learned.alike = learned.alike or masked or near > 0
    if masked:
        return LONG_WEIGHT if near else MASKED_WEIGHT
    return NEAR_WEIGHT * near or None


def weigh(learned: Evidence, call: CallRecord, step: Step, now: Moment, weight: float) -> None:
    """Add one equal occurrence, graded by how good the evidence is; 0.0 for an unknown one."""
    latest = call.latest
    rounds = now.iteration - latest.iteration
    if call.epoch != learned.epoch or rounds > MAX_ROUNDS:
        call.restart(now)
        return
    call.doubtful = call.doubtful or weight not in _SURE
    if weight == 0.0:
        if call.replays != learned.replays:
            call.restart(now)
            return
        weight = NEXT_WEIGHT if rounds == 1 else LATER_WEIGHT
    elif call.progress != learned.progress:
        if rounds > CLOSE_ROUNDS or _says_nothing(step):
            call.restart(now)
            return
        weight *= NEWS_WEIGHT
        call.doubtful = True
    pause = now.pause(step, latest)
    if step.start_ns > 0 and (step.outcome is _EMPTY or is_bare(step)):
        pause = max(pause, step.end_ns - step.start_ns)  # one may call it to wait for what may come
    if pause >= WAIT_NS:
        regular = pause >= REGULAR_NS
        final = step.outcome is _OK and (step.size or 0) > STATUS
        weight *= FINAL_WEIGHT if final else REGULAR_WEIGHT if regular else WAIT_WEIGHT
    elif now.model_ns == latest.model_ns and call.first.iteration <= learned.prompted:
        weight *= AT_ONCE_WEIGHT
    call.repeats += 1
    call.weight += weight


def _says_nothing(step: Step) -> bool:
    """Whether a result is an acknowledgement, or blank: so it may be each time."""
    return is_bare(step) or (step.outcome is _EMPTY and not step.size)
