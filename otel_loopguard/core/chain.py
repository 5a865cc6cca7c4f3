"""A conversation as it is remembered: a chain of responses with the calls they asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from otel_loopguard.core.exchange import Answer, Ask  # noqa: TC001 (a NamedTuple's fields)
from otel_loopguard.core.model import MISSING


@dataclass(slots=True, eq=False)
class Pending:
    """A call that a response asked for, and what has been seen of it since.

    Attributes:
        chain: the conversation it belongs to.
        call_id: the provider's id, which may repeat.
        uid: an id that is unique within the run: the provider's where that is.
        round: shared by the calls of one response.
        asked_ns: when the response ended; 0 if it was not seen.
        args: the arguments until it is answered, if short enough; else MISSING.
        shown: whether an execution of it was seen (see `Conversations.claim`).
        answered: whether its result was seen in a request.
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


@dataclass(slots=True, eq=False)
class Point:
    """A response: a place that a request can go on from."""

    chain: Chain
    seq: int
    parent: int
    calls: list[Pending] = field(default_factory=list["Pending"])
    keys: list[Hashable] = field(default_factory=list[Hashable])
    continued: bool = False  # a request went on from here
    left: bool = False  # and was responded to
    stale: bool = False  # a sibling was gone on from instead


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
    front: Point | None = None
    conversation_id: str | None = None
    points: deque[Point] = field(default_factory=deque["Point"])


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


@dataclass(frozen=True, slots=True)
class Link:
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
