"""Which run and which call a span belongs to: the same whether it is open or was recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from otel_loopguard.core.model import MISSING
from otel_loopguard.dialects.reading import Role

if TYPE_CHECKING:
    from otel_loopguard.dialects.reading import Reading, Start


# Before Python 3.12 it takes long to read a member from its enum.
_AGENT: Final = Role.AGENT
_MODEL: Final = Role.MODEL


class Scope(Protocol):
    """What has to be known of a run."""

    @property
    def agent(self) -> str | None:
        """The agent's name, if known."""
        ...

    @property
    def scoped(self) -> bool:
        """Whether an agent scope opened it, rather than some local root span."""
        ...

    @property
    def foreign(self) -> bool:
        """Whether a span of someone else opened it."""
        ...


@dataclass(slots=True)
class Call:
    """A call as foreign spans show it: several instrumentations may each put a span around it.

    Attributes:
        role: tool or model.
        name: the tool's name, if known when the outermost span starts.
        outermost: the id of that span.
        told: whether one of the spans was read already, or a hook of ours tells of the call.
    """

    role: Role
    name: str | None
    outermost: int
    told: bool = False

    def shown_by(self, role: Role, name: str | None) -> bool:
        """Whether a span inside of this call's spans shows this very call.

        Layers often know a model by different names.
        """
        return role is self.role and (role is _MODEL or not name or name == (self.name or name))


def opens_run(start: Start | None, outer: Scope | None) -> bool:
    """Whether a span of somebody else opens a run: that of an agent's outermost span does.

    Args:
        start: what is known of the span when it starts.
        outer: the run that it starts in.
    """
    if start is None or start.role is not _AGENT:
        return False
    if outer is None or not outer.scoped:
        return True
    return outer.foreign and start.name not in (None, outer.agent)  # else: one more layer of it


def met_call(start: Start | None, span_id: int, around: Call | None) -> Call | None:
    """The call that a span of somebody else is in: one that it shows, else the one around it."""
    if start is None or start.role is _AGENT:
        return around
    if around is not None and around.shown_by(start.role, start.name):
        return around
    return Call(start.role, start.name, span_id)


def tells(reading: Reading, run_id: str, call: Call | None, span_id: int) -> bool:
    """Whether a span is to be told of, or another one tells of the same.

    An agent's span is a step of the run around its own; one more layer of the same agent is not.

    Args:
        reading: what the span shows.
        run_id: the run that it is in, or that it has opened.
        call: the call that it is in.
        span_id: its id.
    """
    if reading.role is _AGENT:
        return f"{span_id:016x}" == run_id
    return call is None or _is_first_to_tell(reading, call, span_id)


def _is_first_to_tell(reading: Reading, call: Call, span_id: int) -> bool:
    """Whether a span has to be read, or another one tells of the same call.

    Inner spans end first, and are preferred if they show arguments and result, or what was said.
    """
    newest = reading.sightings[-1]
    if not call.shown_by(reading.role, newest.action):
        return True
    if call.told:
        return False
    if reading.role is _MODEL:
        shows_all = newest.result is not MISSING or bool(reading.asked)
    else:
        shows_all = newest.result is not MISSING and newest.args is not MISSING
    call.told = shows_all or span_id == call.outermost
    return call.told
