"""A conversation as it is remembered: a chain of responses with the calls they asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from otel_loopguard.core.exchange import Answer, Ask  # noqa: TC001 (a NamedTuple's fields)
from otel_loopguard.core.model import MISSING

if TYPE_CHECKING:
    from otel_loopguard.core.decision import Decision

MAX_POINTS = 8
"""Responses of one conversation that a request can still go on from."""
MAX_CALLS = 128
"""Calls of one response that are remembered."""


@dataclass(slots=True, eq=False)
class Pending:
    """A call that a response asked for, and what has been seen of it since.

    Attributes:
        chain: the conversation it belongs to.
        call_id: the provider's id, which may repeat.
        name: the tool's name; None if only a result without one was seen.
        args_key: the digest of the arguments; None if unknown.
        uid: an id that is unique within the run: the provider's where that is.
        round: shared by the calls of one response.
        asked_ns: when the response ended; 0 if it was not seen.
        args: the arguments until it is answered, if they are kept and short enough; else MISSING.
        shown: whether an execution of it was seen (see `Conversations.claim`).
        answered: whether its result was seen in a request.
        result_hash: Python's hash of that result, if it was text.
        decision: what was decided about it, where somebody asked before it was made.
    """

    chain: Chain
    call_id: str | None
    name: str | None
    args_key: str | None
    uid: str
    round: str
    asked_ns: int
    args: object = MISSING
    shown: bool = False
    answered: bool = False
    result_hash: int | None = None
    decision: Decision | None = None


@dataclass(slots=True, eq=False)
class Point:
    """A response: a place that a request can go on from.

    Attributes:
        chain: the conversation it belongs to.
        seq: its number in the conversation, from 1.
        parent: the number of the point that its request went on from; 0 for none.
        calls: what it asks for.
        keys: what it is found by.
        continued: whether a request went on from here.
        left: whether such a request was responded to.
        stale: whether a request went on from a sibling instead: the same request's other response.
    """

    chain: Chain
    seq: int
    parent: int
    calls: list[Pending] = field(default_factory=list["Pending"])
    keys: list[Hashable] = field(default_factory=list[Hashable])
    continued: bool = False
    left: bool = False
    stale: bool = False

    @property
    def round(self) -> str:
        """What the calls of this response share."""
        return f"{self.chain.run}/{self.seq}"


@dataclass(slots=True, eq=False)
class Chain:
    """One conversation: the run of a loop around a model SDK.

    Attributes:
        run: its run id.
        one_shot: opened by a call that offers no tools or forces one, and not gone on with: no
            agent run so far.
        agent: free for the caller: the agent's name.
        data: free for the caller: the span it holds open.
        last_ns: when a request or a response was last seen.
        awaiting: whether the last request has not been (completely) responded to.
        ended: whether the last response was an answer: it asked for nothing.
        head: the digest of the first message, as last sent.
        size: how many messages the last request sent.
        seq: how many responses it has had.
        calls: how many calls it has had.
        repeats_ids: whether a call id came twice.
        front: the point that the last request went on from.
        conversation_id: the id that the provider knows it by, if it was named.
        points: the last responses.
    """

    run: str
    one_shot: bool
    agent: str | None = None
    data: object = None
    last_ns: int = 0
    awaiting: bool = False
    ended: bool = False
    head: str | None = None
    size: int = 0
    seq: int = 0
    calls: int = 0
    repeats_ids: bool = False
    front: Point | None = None
    conversation_id: str | None = None
    points: deque[Point] = field(default_factory=deque["Point"])

    def new_uid(self, call_id: str | None, name: str | None, *, repeated: bool) -> str:
        """Return an id for a further call, unique within the run: the provider's if that is."""
        self.calls += 1
        self.repeats_ids = self.repeats_ids or repeated
        return call_id if call_id and not self.repeats_ids else f"{call_id or name}/{self.calls}"


class LinkKind(str, Enum):
    """How a request relates to what was seen before."""

    NEW = "new"
    CONTINUED = "continued"
    FOLLOW_UP = "follow_up"  # the same conversation after a user turn
    AMBIGUOUS = "ambiguous"  # several conversations match: a new one


class Answered(NamedTuple):
    """A result in a request with the call it answers, as far as known.

    `first_time` is False if the result, or an execution of the call, was seen before.
    """

    ask: Ask | None
    answer: Answer
    first_time: bool
    pending: Pending


class Link(NamedTuple):
    """Where a request belongs.

    Attributes:
        chain: its conversation.
        kind: how it relates to it.
        answered: the results that it carries.
        reopened: whether the conversation had ended with an answer before.
        source: the conversation that this new one forked off, if it did.
        evicted: conversations that had to make room.
    """

    chain: Chain
    kind: LinkKind
    answered: tuple[Answered, ...] = ()
    reopened: bool = False
    source: Chain | None = None
    evicted: tuple[Chain, ...] = ()
