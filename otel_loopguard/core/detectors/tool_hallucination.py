"""tool_hallucination: calls of tools that do not exist, or that do not fit their schema."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final

from otel_loopguard.core.detectors.base import found
from otel_loopguard.core.model import Outcome, Pattern

if TYPE_CHECKING:
    from otel_loopguard.core.episode import Episode
    from otel_loopguard.core.model import Finding, Step

# Before Python 3.12 it takes long to read a member from its enum.
_UNKNOWN: Final = Outcome.UNKNOWN_TOOL
_INVALID: Final = Outcome.INVALID_ARGS


@dataclass(frozen=True, slots=True)
class ToolHallucination:
    """An agent goes on calling tools that it was told do not exist, or with arguments that miss.

    Unknown tools count together, whatever their names: who was told that one does not exist and
    makes up another has not understood. Arguments that do not fit count by tool; as long as the
    complaint changes the agent is on its way and may take twice as long. A call that fits ends it.
    One try and one slip are common; the third in a row is not.
    Catches: three calls of tools that were never offered; the same missing field three times.
    Leaves alone: a misspelt name and then the right one; two fields forgotten one after the other.
    """

    only_repeats: ClassVar[bool] = True

    warning: int = field(default=3, metadata={"doc": "calls of unknown tools: warning"})
    critical: int = field(default=5, metadata={"doc": "calls of unknown tools: critical"})
    schema_warning: int = field(default=3, metadata={"doc": "calls that do not fit: warning"})
    schema_critical: int = field(default=5, metadata={"doc": "calls that do not fit: critical"})

    def __call__(self, episode: Episode, step: Step, /) -> Finding | None:
        """See `Detector`."""
        rejections = episode.rejections
        if rejections is None or rejections.like is None:
            return None
        if step.outcome is not _UNKNOWN and step.outcome is not _INVALID:
            return None
        is_unknown = step.outcome is _UNKNOWN
        rejected = rejections.like[is_unknown]
        limits, weight = (self.warning, self.critical), rejected.weight
        said = f"{rejected.times} calls were for tools that do not exist"
        if not is_unknown:
            limits = (self.schema_warning, self.schema_critical)
            weight = max(rejected.weight / 2, min(rejected.same, rejected.weight))
            said = f"{rejected.times} calls of {step.action} in a row did not fit its schema"
        return found(
            episode,
            step,
            Pattern.TOOL_HALLUCINATION,
            key="unknown" if is_unknown else step.action,
            limits=limits,
            first=rejected.first,
            repeats=rejected.times,
            weight=weight,
            evidence=said,
            action=None if is_unknown else step.action,
            covers=frozenset({(step.action, step.args_key)}),
        )
