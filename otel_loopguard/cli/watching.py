"""Detectors that note what they saw, for `otel-loopguard explain`: the same ones, looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from otel_loopguard.core.detectors import BUILTIN

if TYPE_CHECKING:
    from otel_loopguard.core.alerts import Alerts
    from otel_loopguard.core.detectors.base import Detector
    from otel_loopguard.core.episode import Episode
    from otel_loopguard.core.model import Finding, Severity, Step
    from otel_loopguard.core.records import Moment


class Graded(NamedTuple):
    """A loop that a detector weighed.

    Attributes:
        weight: how often it went round, less where the evidence is poor.
        limits: from which weight on it is a warning, and critical; half that for a relapse.
        severity: what came of it.
    """

    weight: float
    limits: tuple[float, float]
    severity: Severity | None


class Note(NamedTuple):
    """What one detector made of one step."""

    detector: str
    graded: tuple[Graded, ...]
    finding: Finding | None


class Watched:
    """A detector whose verdicts are noted.

    Args:
        detector: the detector.
        notes: where they go.
    """

    def __init__(self, detector: Detector, notes: list[Note]) -> None:
        self._detector = detector
        self._notes = notes
        names = (pattern.value for pattern, kind in BUILTIN.items() if isinstance(detector, kind))
        self._name = next(names, getattr(detector, "__name__", type(detector).__name__))
        self.only_repeats = getattr(detector, "only_repeats", False)

    def __call__(self, episode: Episode, step: Step, /) -> Finding | None:
        """What the detector says."""
        weighing = _Weighing(episode)
        finding = self._detector(cast("Episode", weighing), step)
        self._notes.append(Note(self._name, tuple(weighing.noted), finding))
        return finding


class _Weighing:
    """An episode that notes what is weighed of it."""

    def __init__(self, episode: Episode) -> None:
        self._episode = episode
        self.noted: list[Graded] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._episode, name)

    def told(self, identity: str) -> _Scales:
        """As `Episode.told`."""
        return _Scales(self._episode.told(identity), self.noted)


class _Scales(NamedTuple):
    alerts: Alerts
    noted: list[Graded]

    def grade(
        self, identity: str, repeats: float, limits: tuple[float, float], first: Moment
    ) -> Severity | None:
        """As `Alerts.grade`."""
        severity = self.alerts.grade(identity, repeats, limits, first)
        self.noted.append(Graded(repeats, limits, severity))
        return severity
