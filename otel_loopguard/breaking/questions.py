"""What a human is asked, by whom, and how that ends."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from otel_loopguard.core.model import Pattern

TIMEOUT_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class Request:
    """What a human is asked about; it holds no content of the conversation.

    Attributes:
        run_id: the run, as `loopguard.run_id` says it.
        agent: the agent's name, if known.
        tool: the tool that is about to be called; None where it is asked whether the run may go on
            at all.
        pattern: the deadlock that made the guard ask, if one did.
        evidence: one sentence on why.
    """

    run_id: str
    agent: str | None
    tool: str | None
    pattern: Pattern | None
    evidence: str


class Verdict(str, Enum):
    """How an escalation ended. Only `APPROVED` lets the call, or the run, go on."""

    APPROVED = "approved"
    REFUSED = "refused"
    TIMEOUT = "escalation_timeout"
    ERROR = "error"


class Escalate(Protocol):
    """Tells somebody, and waits for what they say: True for yes, all else for no."""

    async def __call__(self, request: Request, /) -> object:
        """Ask; it may take as long as it likes, since whoever calls it waits only so long."""
        ...


class Asker(NamedTuple):
    """Who is asked, and for how many seconds at most."""

    ask: Escalate
    timeout_s: float = TIMEOUT_S
