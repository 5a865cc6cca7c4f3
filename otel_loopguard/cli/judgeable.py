"""Which patterns a recorded run allows no verdict on, since what they look at was not captured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from otel_loopguard.core.detectors import BUILTIN
from otel_loopguard.core.model import MISSING, Kind, Pattern

if TYPE_CHECKING:
    from otel_loopguard.core.model import Sighting, Step

_NEEDS: Final[dict[Pattern, tuple[str, ...]]] = {
    Pattern.HARD_LOOP: ("arguments", "results"),
    Pattern.TOOL_OSCILLATION: ("arguments", "results"),
    Pattern.RESULT_STAGNATION: ("results",),
    Pattern.GUARDRAIL_LOOP: ("outcomes",),
    Pattern.TOOL_HALLUCINATION: ("outcomes",),
    Pattern.RETRY_STORM: ("outcomes",),
    Pattern.DELEGATION_LOOP: ("inputs",),
    Pattern.REFLECTION_PARALYSIS: ("texts",),
    Pattern.CONTEXT_ROT: ("texts",),
    Pattern.CONSTRAINT_DRIFT: ("texts",),
    Pattern.TRUNCATION_LOOP: ("endings",),
}
"""What has to be known for a verdict; patterns that are not here need nothing."""


class Seen:
    """What was known of a run's steps, and what was not."""

    __slots__ = ("_known", "_unknown")

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._unknown: set[str] = set()

    def take(self, sighting: Sighting, step: Step) -> None:
        """Take note of one step."""
        for fact, known in _facts(sighting, step):
            (self._known if known else self._unknown).add(fact)

    def not_judged(self) -> tuple[str, ...]:
        """The patterns of which nothing can be said: what they need was withheld at each step."""
        lacking = self._unknown - self._known
        return tuple(p.value for p in BUILTIN if not lacking.isdisjoint(_NEEDS.get(p, ())))


def _facts(sighting: Sighting, step: Step) -> tuple[tuple[str, bool], ...]:
    if step.kind is Kind.TOOL:
        return (
            ("arguments", step.args_key is not None),
            ("results", step.result_key is not None),
            ("outcomes", step.result_key is not None or step.error is not None),
        )
    if step.kind is Kind.AGENT:
        return (("inputs", step.args_key is not None),)
    if step.kind is Kind.MODEL:
        said = sighting.result is not MISSING or sighting.thought is not MISSING
        return (("texts", said), ("endings", sighting.finish is not None))
    return ()
