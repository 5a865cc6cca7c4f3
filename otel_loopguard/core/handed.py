"""To whom a step hands over, and what for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from otel_loopguard.core.model import Kind
from otel_loopguard.core.tasks import task_of, values_of

if TYPE_CHECKING:
    from otel_loopguard.core.handoffs import Handoffs
    from otel_loopguard.core.model import Sighting
    from otel_loopguard.core.tasks import Task

HANDS_OVER: Final = frozenset({Kind.HANDOFF, Kind.AGENT})
_TOOL: Final = Kind.TOOL


def handed_over(
    sighting: Sighting, agent: str | None, size: int | None, handoffs: Handoffs | None
) -> tuple[str | None, Task | None]:
    """To whom a step hands over, and what that agent is to do, as far as it says so."""
    kind, action, args = sighting.kind, sighting.action, sighting.args
    if kind in HANDS_OVER:
        return action, task_of(args)
    if handoffs is None or kind is not _TOOL:
        return None, None
    target = handoffs.named(agent, action, values_of(args))
    asks = target is not None or handoffs.baton.may_pass(agent, size)
    return target, task_of(args) if asks else None
