"""hard_loop, where somebody has declared how often a call may come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from otel_loopguard.core.declared import over_limit
from otel_loopguard.core.model import Severity

if TYPE_CHECKING:
    from otel_loopguard.core.episode import Episode
    from otel_loopguard.core.model import Finding, Step


@dataclass(frozen=True, slots=True)
class DeclaredLimit:
    """An equal call came more often than its tool is declared to be called, whatever it gave.

    Runs ask it once such a declaration is known; more than twice the limit is critical.
    Catches: the second equal transfer of a tool that may make one; the sixth equal search of five.
    Leaves alone: the fifth of five; other arguments; an equal call after the user spoke again.
    """

    def __call__(self, episode: Episode, step: Step, /) -> Finding | None:
        """See `Detector`."""
        limit = None if step.traits is None else step.traits.max_repeats
        call = episode.call
        if limit is None or call is None or step.args_key is None or call.seen <= limit:
            return None
        severity = Severity.CRITICAL if call.seen > 2 * limit else Severity.WARNING
        return over_limit(step.action, step.args_key, call.seen, limit, severity)
