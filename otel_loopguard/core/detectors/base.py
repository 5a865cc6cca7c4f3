"""What all detectors share: the callable's shape and the arithmetic of waste."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from otel_loopguard.core.episode import Episode
    from otel_loopguard.core.model import Finding, Step
    from otel_loopguard.core.records import Moment

_WORD: Final = re.compile("[a-z]+")
_WAITING: Final = frozenset({"wait", "sleep", "delay", "pause"})


class Detector(Protocol):
    """A callable on a frozen dataclass whose fields are its settings.

    It is called after `Episode.add` took the step, holds no state of its own and does no I/O; one
    instance serves all runs. One that has a true `only_repeats` is not asked
    about steps that repeat nothing (`Episode.repeats`).
    """

    def __call__(self, episode: Episode, step: Step, /) -> Finding | None:
        """Say what is wrong with the run now, or None."""
        ...


@lru_cache(maxsize=256)
def waits(action: str) -> bool:
    """Whether a tool's name says that it only lets time pass."""
    return not _WAITING.isdisjoint(_WORD.findall(action.lower()))


def waste(episode: Episode, step: Step, first: Moment) -> tuple[int, float]:
    """Tokens and seconds spent since a loop's first lap ended."""
    seconds = (step.end_ns - first.end_ns) / 1e9 if first.end_ns and step.end_ns else 0.0
    return episode.tokens - first.tokens, max(0.0, seconds)
