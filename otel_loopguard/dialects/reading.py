"""What the readers say about a span: `Start` when it starts, `Reading` when it has ended."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from otel_loopguard.core.model import MISSING, Sighting


class Role(str, Enum):
    """What a span of an agent shows."""

    TOOL = "tool"
    MODEL = "model"
    AGENT = "agent"


class Asked(NamedTuple):
    """A tool call that a model response asked for; `args` is `MISSING` if not captured."""

    call_id: str | None
    name: str
    args: object = MISSING


class Start(NamedTuple):
    """What can be said when a span starts: many instrumentations set their attributes later.

    Attributes:
        role: what the span shows.
        name: the tool's, model's or agent's name, if known yet.
    """

    role: Role
    name: str | None = None


class Reading(NamedTuple):
    """What a finished span says. It holds content and lives as long as a `Sighting`.

    Attributes:
        role: what the span shows.
        sightings: the actions in it, in their order. For a tool, that tool. For a model, the newest
            tool results that its request carried (each with a call id, and over when the request
            starts), then the model call itself. For an agent that has a name, its invocation.
        agent: the agent's name.
        conversation_id: the conversation, which is often on model spans only.
        dialect: which convention the span follows.
        asked: the tool calls that a model response asked for, so that a tool span without
            arguments can be joined by its call id.
    """

    role: Role
    sightings: tuple[Sighting, ...]
    agent: str | None
    conversation_id: str | None
    dialect: str
    asked: tuple[Asked, ...] = ()
