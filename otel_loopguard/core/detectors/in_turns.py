"""result_stagnation, in turns: several tools give the same few results one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from otel_loopguard.core.detectors.base import found
from otel_loopguard.core.model import Pattern

if TYPE_CHECKING:
    from otel_loopguard.core.detectors.base import Limits
    from otel_loopguard.core.episode import Episode
    from otel_loopguard.core.model import Finding, Step

_TURNS: Final = "the same {} results came in turns, {} times, whatever the arguments"


def in_turns(episode: Episode, step: Step, limits: Limits) -> Finding | None:
    """Returns the finding of a round among known results; None while there is none.

    Catches: write and review that hand each other the same texts, each time with other arguments.
    Leaves alone: a sweep over many things, whose few answers come in any order.

    Args:
        episode: the run.
        step: its newest step.
        limits: from how many laps on it is a warning, and critical.
    """
    echoes = episode.deeds.echoes
    gone = None if echoes is None else echoes.round
    if gone is None:
        return None
    return found(
        episode,
        step,
        Pattern.RESULT_STAGNATION,
        key="+".join(sorted(gone.actions)),
        limits=limits,
        first=gone.first,
        repeats=gone.laps,
        evidence=_TURNS.format(gone.results, gone.laps),
        period=gone.results,
        action=step.action,
        covers=frozenset((action, None) for action in gone.actions),
    )
