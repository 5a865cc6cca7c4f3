"""What an application says of a run beforehand, for the notes that its model may get."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from otel_loopguard.breaking.reminders import ConstraintReminder, ObjectiveAnchor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Summarise = Callable[[Sequence[object]], str]


@dataclass(frozen=True, slots=True)
class Brief:
    """What a run is for, and what it has to keep to. It stays in the process.

    Attributes:
        anchor: the objective; without one the user's first message is taken for it.
        constraints: what has to be kept to; without any, the system message is taken for it.
        summarise: makes a text of the messages that are left out of a request, which are in the
            form that the model SDK is given them; without one they are counted, and 200 tokens say
            how the newest of them begin.
    """

    anchor: ObjectiveAnchor | None = None
    constraints: ConstraintReminder | None = None
    summarise: Summarise | None = None


def brief(
    objective: str | ObjectiveAnchor | None,
    constraints: Sequence[str] | ConstraintReminder,
    summarise: Summarise | None,
) -> Brief | None:
    """What an application says of a run; None if that is nothing.

    Raises:
        ValueError: the constraints are one text and not several.
    """
    if isinstance(constraints, str):
        raise ValueError("constraints are a sequence of texts")  # noqa: TRY004 - see Raises
    anchor = ObjectiveAnchor(objective) if isinstance(objective, str) else objective
    if not isinstance(constraints, ConstraintReminder):
        constraints = ConstraintReminder(tuple(constraints))
    reminder = constraints if constraints.constraints else None
    if anchor is None and reminder is None and summarise is None:
        return None
    return Brief(anchor, reminder, summarise)
