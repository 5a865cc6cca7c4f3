"""Short ways to write steps and sightings, and to run them past a guard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from otel_loopguard.core.detectors import BUILTIN
from otel_loopguard.core.episode import Episode
from otel_loopguard.core.fingerprint import Fingerprinter
from otel_loopguard.core.guard import Guard
from otel_loopguard.core.model import MISSING, Kind, Outcome, Sighting, Source, Step

if TYPE_CHECKING:
    from collections.abc import Iterable

    from otel_loopguard.core.model import Observation

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND
PAGE = "The page lists the opening hours of all branches, sorted by city. " * 8


def page(number: int) -> str:
    """A page that says something else than all others."""
    return " ".join(f"{word}{number}" for word in PAGE.split())


Spoken = tuple[int, str, str]
"""At which step, which pattern, how bad."""


def tool(
    action: str = "search",
    args: str | None = "a",
    result: str | None = "r",
    *,
    outcome: Outcome | None = None,
    size: int = 500,
    **more: object,
) -> Step:
    """A tool's step by its digests."""
    default = Outcome.OK if result is not None else Outcome.UNKNOWN
    values = {"source": Source.HOOK, "outcome": outcome or default, "size": size, **more}
    return Step(Kind.TOOL, action, args_key=args, result_key=result, **values)  # type: ignore[arg-type]


def other(kind: Kind, **more: object) -> Step:
    """A step that is no call."""
    return Step(kind, "model", Source.HOOK, None, None, **more)  # type: ignore[arg-type]


def episode_of(steps: Iterable[Step]) -> Episode:
    """An episode that took these steps."""
    episode = Episode("run")
    for step in steps:
        episode.add(step)
    return episode


def call(
    name: str = "search", args: object = "x", result: object = PAGE, **more: object
) -> Sighting:
    """A tool call with its content."""
    return Sighting(Kind.TOOL, name, args={"q": args}, result=result, **more)  # type: ignore[arg-type]


def failure(
    name: str = "fetch", args: object = "x", text: object = MISSING, **more: object
) -> Sighting:
    """A tool call that failed."""
    error = str(more.pop("error", "ConnectionError"))
    return call(name, args, text, error=error, **more)


def seen(kind: Kind, **more: object) -> Sighting:
    """A sighting of something that is no call."""
    return Sighting(kind, "model", **more)  # type: ignore[arg-type]


def make_guard(**settings: object) -> Guard:
    """A guard with all detectors at their defaults."""
    detectors = settings.pop("detectors", None) or [each() for each in BUILTIN.values()]
    return Guard(detectors, Fingerprinter(b"key"), **settings)  # type: ignore[arg-type]


def observe(sightings: Iterable[Sighting], guard: Guard | None = None) -> list[Observation]:
    """Show sightings of one run to a guard."""
    guard = guard or make_guard()
    return [guard.observe("run", each) for each in sightings]


def utterances(sightings: Iterable[Sighting], guard: Guard | None = None) -> list[Spoken]:
    """What a guard says to the sightings of one run, with the 1-based step at which it says it."""
    return [
        (at, each.finding.pattern.value, each.finding.severity.label)
        for at, observation in enumerate(observe(sightings, guard), 1)
        for each in observation.utterances
    ]
