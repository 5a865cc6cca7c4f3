"""truncation_loop: the answer is cut off at its limit, again and again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from otel_loopguard.core.detectors.base import found
from otel_loopguard.core.model import Pattern

if TYPE_CHECKING:
    from otel_loopguard.core.episode import Episode
    from otel_loopguard.core.model import Finding, Step


@dataclass(frozen=True, slots=True)
class TruncationLoop:
    """Answers in a row that stop at the token limit: what they ask for never comes out whole.

    The provider says so, or they have the same large number of tokens each. An answer that says
    something new weighs a quarter, a call that came out broken after one weighs a half. Source: the
    rule for silent truncation of deer-flow (2 and 3), and the cases of tests/cases.
    Catches: two answers with the same start, both cut off; answers of 8,192 tokens each whose call
    is not valid JSON. Leaves alone: one answer that is cut off; a cut answer whose call succeeds.
    """

    only_repeats: ClassVar[bool] = True
    warning: int = field(default=2, metadata={"doc": "answers that were cut off: warning"})
    critical: int = field(default=4, metadata={"doc": "answers that were cut off: critical"})

    def __call__(self, episode: Episode, step: Step, /) -> Finding | None:
        """See `Detector`."""
        window = None if episode.talk is None else episode.talk.window
        if window is None or window.cut is None:
            return None
        cut = window.cut
        return found(
            episode,
            step,
            Pattern.TRUNCATION_LOOP,
            key="cut",
            limits=(self.warning, self.critical),
            first=cut.first,
            repeats=cut.count,
            weight=cut.weight,
            evidence=f"{cut.count} answers in a row were cut off at the token limit",
        )
