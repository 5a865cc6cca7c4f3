"""`otel-loopguard scan`: what the guard would have said of recorded steps."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from otel_loopguard.dialects.steps import sightings
from otel_loopguard.runtime import build
from otel_loopguard.settings import from_env

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from otel_loopguard.core.model import Observation
    from otel_loopguard.settings import Settings


def scan(lines: Iterable[str], settings: Settings | None = None) -> Iterator[dict[str, object]]:
    """One object a case: its id and its findings; with the settings of the environment if None."""
    settings = settings or from_env()
    for number, line in enumerate(lines, 1):
        case = cast("Mapping[str, object]", json.loads(line))
        guard = build(settings).guard
        findings: list[dict[str, object]] = []
        for run, seen in sightings(case, number):
            findings += _findings(guard.observe(run, seen, None))
        yield {"id": case["id"], "findings": findings}


def _findings(seen: Observation) -> Iterator[dict[str, object]]:
    step = seen.step.span
    for utterance in seen.utterances:
        finding = utterance.finding
        yield {
            "step": step[1] if step else None,
            "severity": finding.severity.label,
            "pattern": finding.pattern.value,
            "period": finding.period,
            "repeats": finding.repeats,
            "first_step": finding.first_span[1] if finding.first_span else None,
            "evidence": finding.evidence,
            "wasted_calls": finding.wasted_calls,
            "wasted_tokens": finding.wasted_tokens,
            "wasted_seconds": finding.wasted_seconds,
        }
