"""What was said about each loop, and how bad a loop is in the light of that."""

from __future__ import annotations

from math import ceil, inf
from typing import TYPE_CHECKING, Final

from otel_loopguard.core.model import Severity
from otel_loopguard.core.records import newest, remember

if TYPE_CHECKING:
    from otel_loopguard.core.model import Finding
    from otel_loopguard.core.records import Alert, Moment, Spoken

MAX_ALERTS: Final = 64

# Before Python 3.12 it takes long to read a member from its enum.
_WARNING: Final = Severity.WARNING
_CRITICAL: Final = Severity.CRITICAL


class Alerts:
    """What was last said about each loop, by the finding's identity. Bounded; oldest go."""

    __slots__ = ("_table",)

    def __init__(self) -> None:
        self._table: dict[str, Alert] = {}

    def __len__(self) -> int:
        return len(self._table)

    def get(self, identity: str) -> Alert | None:
        """What was last said about a loop."""
        return self._table.get(identity)

    def put(self, identity: str, alert: Alert) -> None:
        """Keep what was said about a loop."""
        remember(self._table, identity, alert, MAX_ALERTS)

    def condense(self, limit: int) -> None:
        """Forget all but the newest."""
        self._table = newest(self._table, limit)

    def grade(
        self, identity: str, repeats: float, limits: tuple[float, float], first: Moment
    ) -> Severity | None:
        """How bad a loop is that began at `first`; None if it is not worth a word.

        Args:
            identity: what makes the loop the same loop later on.
            repeats: how often it went round.
            limits: from how many repeats on it is a warning, and critical. A relapse, that is a
                loop that was spoken of and then interrupted, needs half as many.
            first: its first step.
        """
        warning, critical = limits
        alert = self._table.get(identity)
        if alert is not None and (alert.relapsed or first.iteration > alert.first_iteration):
            warning, critical = _half(warning), _half(critical)
        if repeats >= critical:
            return _CRITICAL
        return _WARNING if repeats >= warning else None


def said_in_round(last: Spoken | None, iteration: int, finding: Finding) -> bool:
    """Whether another call of the same parallel round has said this already: a round is one set."""
    if last is None or last.iteration != iteration or last.identity == finding.identity:
        return False
    return last.severity >= finding.severity


def _half(limit: float) -> float:
    return ceil(limit / 2) if limit < inf else inf
