"""Spans that real instrumentations made of the same scripted tasks (fixtures/<recording>.json).

The tasks: `loop` (the default) calls get_weather(city="Paris") four times and then answers; `par`
calls it once for Paris and once for Rome in one round; `error` calls boom(x=1), which raises
ValueError("kaboom"); `unknown` asks for no_such_tool; `badargs` and `badjson` ask for get_weather
with a wrong parameter or with broken JSON.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from otel_loopguard.core.model import Kind, Sighting
from otel_loopguard.dialects import Asked, Reading, Role, read
from otel_loopguard.dialects.view import SpanView

FIXTURES = Path(__file__).parent / "fixtures"
ALL = sorted(path.stem for path in FIXTURES.glob("*.json"))


class Recorded(NamedTuple):
    """A span as it ended, and the names of the attributes that it had when it started."""

    view: SpanView
    at_start: tuple[str, ...]


def made(
    attributes: dict[str, object],
    *,
    name: str = "span",
    kind: str = "internal",
    scope: str = "app",
    is_error: bool = False,
    events: tuple[tuple[str, dict[str, object]], ...] = (),
) -> SpanView:
    """A span that nobody recorded."""
    return SpanView(
        name, kind, "1" * 32, "2" * 16, None, scope, 10, 20, is_error, attributes, events
    )


def spans(recording: str) -> list[Recorded]:
    text = (FIXTURES / f"{recording}.json").read_text(encoding="utf-8")
    return [_recorded(span) for span in json.loads(text)["spans"]]


def _recorded(span: dict[str, object]) -> Recorded:
    at_start = span.pop("at_start")
    span["events"] = tuple((event, held) for event, held in span["events"])
    return Recorded(SpanView(**span), tuple(at_start))


def readings(recording: str) -> list[Reading]:
    found = (read(span.view) for span in spans(recording))
    return [reading for reading in found if reading is not None]


def tools(recording: str) -> list[Sighting]:
    """What the tool spans of a recording show."""
    return [
        sighting
        for reading in readings(recording)
        if reading.role is Role.TOOL
        for sighting in reading.sightings
    ]


def carried(recording: str) -> list[Sighting]:
    """The tool results that the model requests of a recording carried."""
    return [
        sighting
        for reading in readings(recording)
        if reading.role is Role.MODEL
        for sighting in reading.sightings
        if sighting.kind is Kind.TOOL
    ]


def asked(recording: str) -> list[Asked]:
    """The tool calls that the model responses of a recording asked for."""
    return [call for reading in readings(recording) for call in reading.asked]
