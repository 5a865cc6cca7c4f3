"""context_rot: the context is compacted for nothing, or throws away what is needed next."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from otel_loopguard.core.detectors.base import found
from otel_loopguard.core.model import Kind, Pattern

if TYPE_CHECKING:
    from otel_loopguard.core.episode import Episode
    from otel_loopguard.core.model import Finding, Step


@dataclass(frozen=True, slots=True)
class ContextRot:
    """A context that no longer holds what the run needs.

    Source: reports of compactions that free half a percent each, and the guard of OpenClaw against
    the calls that come again after a compaction.
    Catches: compactions in a row that free less than 5 % each; the same three results fetched again
    after one compaction and after the next. Leaves alone: one such compaction, or any that frees
    more; files that are read again after a compaction, once.
    """

    only_repeats: ClassVar[bool] = True
    warning: int = field(default=2, metadata={"doc": "compactions for nothing: warning"})
    critical: int = field(default=4, metadata={"doc": "compactions for nothing: critical"})

    def __call__(self, episode: Episode, step: Step, /) -> Finding | None:
        """See `Detector`."""
        window = None if episode.talk is None else episode.talk.window
        if window is None:
            return None
        futile = step.kind is Kind.COMPACT
        spell = window.futile if futile else window.fetched
        return spell and found(
            episode,
            step,
            Pattern.CONTEXT_ROT,
            key="futile" if futile else "fetched",
            limits=(self.warning, self.critical),
            first=spell.first,
            repeats=spell.count,
            evidence=f"{spell.count} compactions in a row freed next to nothing"
            if futile
            else f"after {spell.count} compactions in a row the same results were fetched again",
            suggested_action="inject_objective_anchor",
        )
