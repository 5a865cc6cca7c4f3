"""guardrail_loop: what was refused is tried again and again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final

from otel_loopguard.core.detectors.base import found
from otel_loopguard.core.model import Outcome, Pattern

if TYPE_CHECKING:
    from otel_loopguard.core.episode import Episode
    from otel_loopguard.core.model import Finding, Step

# Before Python 3.12 it takes long to read a member from its enum.
_REFUSED: Final = Outcome.REFUSED


@dataclass(frozen=True, slots=True)
class GuardrailLoop:
    """A tool's calls are refused one after the other, or those of several tools are.

    Neither the wording of the refusal nor the arguments matter: who rephrases is refused again. A
    call of the tool that is let through ends it; for several tools, any that brings something new.
    Thresholds as for any call that comes again; denials worded anew each time were seen 384 times.
    Catches: three refusals of `shell`, each for another spelling; a way around by five tools.
    Leaves alone: two refusals and a call that is let through; one refusal each of three tools.
    """

    only_repeats: ClassVar[bool] = True

    warning: int = field(default=3, metadata={"doc": "refusals of one tool: warning"})
    critical: int = field(default=5, metadata={"doc": "refusals of one tool: critical"})
    tools_warning: int = field(default=5, metadata={"doc": "refusals of several tools: warning"})
    tools_critical: int = field(default=8, metadata={"doc": "refusals of several tools: critical"})

    def __call__(self, episode: Episode, step: Step, /) -> Finding | None:
        """See `Detector`."""
        rejections = episode.rejections
        if rejections is None or rejections.like is None or step.outcome is not _REFUSED:
            return None
        rejected, of_any = rejections.like
        limits, key = (self.warning, self.critical), step.action
        if rejected.weight < self.warning:
            rejected, limits = of_any, (self.tools_warning, self.tools_critical)
            key = "several"
        who = step.action if len(rejected.tools) == 1 else f"{len(rejected.tools)} tools"
        return found(
            episode,
            step,
            Pattern.GUARDRAIL_LOOP,
            key=key,
            limits=limits,
            first=rejected.first,
            repeats=rejected.times,
            weight=rejected.weight,
            evidence=f"{who} refused {rejected.times} calls and let none through",
            action=step.action,
            covers=frozenset({(step.action, step.args_key)}),
        )
