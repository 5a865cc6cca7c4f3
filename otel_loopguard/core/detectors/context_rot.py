"""context_rot: the context does not hold what the run needs, so that it is read again and again."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, ClassVar

from otel_loopguard.core.detectors.base import ANSWERS, found
from otel_loopguard.core.model import Kind, Pattern

if TYPE_CHECKING:
    from otel_loopguard.core.episode import Episode
    from otel_loopguard.core.model import Finding, Step


@dataclass(frozen=True, slots=True)
class ContextRot:
    """A context that no longer holds what the run needs.

    Source: reports of compactions that free half a percent each, the guard of OpenClaw against the
    calls that come again after a compaction, and a report of one file read 164 times in slices.
    Catches: compactions in a row that free less than 5 % each; the same three results fetched again
    after one compaction and after the next; a file paged through to its end, and once more in
    slices that are cut in other places. Leaves alone: one such compaction, or any that frees more;
    files that are read again after a compaction, once; parts read again after something was
    changed, or whose text is new: a text of three lines or more says so by its lines.
    """

    only_repeats: ClassVar[bool] = True
    warning: int = field(default=2, metadata={"doc": "compactions for nothing: warning"})
    critical: int = field(default=4, metadata={"doc": "compactions for nothing: critical"})
    again_warning: int = field(default=5, metadata={"doc": "parts that were read again: warning"})
    again_critical: int = field(default=8, metadata={"doc": "parts that were read again: critical"})

    def __call__(self, episode: Episode, step: Step, /) -> Finding | None:
        """See `Detector`."""
        return self._lost(episode, step) or self._again(episode, step)

    def _lost(self, episode: Episode, step: Step) -> Finding | None:
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
        )

    def _again(self, episode: Episode, step: Step) -> Finding | None:
        is_part = step.gist is not None and step.gist.kind == "extent"
        ranges = episode.deeds.ranges if is_part else None
        again = None if ranges is None else ranges.again
        return again and found(
            episode,
            step,
            Pattern.CONTEXT_ROT,
            key=f"again:{step.action}",
            limits=(self.again_warning, inf if again.doubtful else self.again_critical),
            first=again.first,
            repeats=again.count,
            weight=again.weight,
            evidence=f"{again.count} parts that {step.action} read had been read already",
            action=step.action,
            wasted_calls=again.count,
            covers=frozenset({ANSWERS}),
        )
