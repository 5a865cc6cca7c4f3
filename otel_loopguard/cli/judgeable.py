"""Which patterns a recorded run allows no verdict on, since what they look at was not captured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from otel_loopguard.core.detectors import BUILTIN
from otel_loopguard.core.model import MISSING, Kind, Pattern

if TYPE_CHECKING:
    from otel_loopguard.core.model import Sighting, Step

_ARGUMENTS: Final = 1
_RESULTS: Final = 2
_OUTCOMES: Final = 4
_INPUTS: Final = 8
_TEXTS: Final = 16
_ENDINGS: Final = 32
_CONTENT: Final = 64
_NEEDS: Final[dict[Pattern, int]] = {
    Pattern.HARD_LOOP: _ARGUMENTS,
    Pattern.TOOL_OSCILLATION: _ARGUMENTS,
    Pattern.RESULT_STAGNATION: _RESULTS,
    Pattern.RETRY_STORM: _OUTCOMES,
    Pattern.TOOL_HALLUCINATION: _OUTCOMES,
    Pattern.GUARDRAIL_LOOP: _OUTCOMES,
    Pattern.REFLECTION_PARALYSIS: _TEXTS,
    Pattern.CONTEXT_ROT: _TEXTS | _CONTENT,
    Pattern.CONSTRAINT_DRIFT: _CONTENT,
    Pattern.TRUNCATION_LOOP: _ENDINGS,
    Pattern.DELEGATION_LOOP: _INPUTS,
    Pattern.ITERATION_BUDGET: 0,
}
"""What has to be known for a verdict."""

_OF_CALLS: Final = _ARGUMENTS | _RESULTS | _OUTCOMES | _CONTENT
_TOOL: Final = Kind.TOOL
_MODEL: Final = Kind.MODEL
_AGENT: Final = Kind.AGENT


class Seen:
    """What was known of a run's steps, and what was not."""

    __slots__ = ("_asked", "_known")

    def __init__(self) -> None:
        self._asked = 0
        self._known = 0

    def take(self, sighting: Sighting, step: Step) -> None:
        """Take note of one step."""
        if step.kind is _TOOL:
            self._asked |= _OF_CALLS
            if self._known & _OF_CALLS == _OF_CALLS:
                return
            self._known |= _CONTENT * (sighting.args is not MISSING)
            self._known |= _ARGUMENTS * (step.args_key is not None)
            self._known |= (_RESULTS | _OUTCOMES) * (step.result_key is not None)
            self._known |= _OUTCOMES * (step.error is not None)
        elif step.kind is _MODEL:
            said = sighting.result is not MISSING or sighting.thought is not MISSING
            self._asked |= _TEXTS | _ENDINGS
            self._known |= _TEXTS * said | _ENDINGS * (sighting.finish is not None)
        elif step.kind is _AGENT:
            self._asked |= _INPUTS
            self._known |= _INPUTS * (step.args_key is not None)

    def not_judged(self) -> tuple[str, ...]:
        """The patterns of which nothing can be said: what they need was withheld at each step."""
        lacking = self._asked & ~self._known
        return tuple(pattern.value for pattern in BUILTIN if lacking & _NEEDS[pattern])
