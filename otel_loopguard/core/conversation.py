"""Which model request continues which conversation.

A response names its tool calls and the next request carries their results: that chain is the run
of a hand-written loop, whatever thread or span surrounds it. Every response is a `Point` of its
`Chain`, and a request is matched to the point that it goes on from.

Evidence, strongest first: the response that the request names; the calls that it answers (id, name
and digest of the arguments); the conversation that it names; the last assistant message. A call id
that has been repeated, and a mere text, prove nothing alone: there the first message of the
conversation, or the caller's hint, has to agree.

Nothing here locks: the caller holds one lock around each call.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from otel_loopguard.core.answers import accepts, go_on
from otel_loopguard.core.chain import Answered, Chain, Link, LinkKind, Pending, Point
from otel_loopguard.core.exchange import Answer, Ask, ModelRequest, ModelResponse
from otel_loopguard.core.model import Missing
from otel_loopguard.core.points import Fingerprints, Points

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "Answer",
    "Answered",
    "Ask",
    "Chain",
    "Conversations",
    "Link",
    "LinkKind",
    "ModelRequest",
    "ModelResponse",
    "Pending",
]


class _Sent(NamedTuple):
    """A request with the digest of its first message."""

    request: ModelRequest
    hint: Chain | None
    head: str | None

    def begins(self, chain: Chain) -> bool:
        return self.head is not None and self.head == chain.head

    def supports(self, chain: Chain) -> bool:
        return chain is self.hint or self.begins(chain)


class _Match(NamedTuple):
    """What a request goes on from; `source` is the conversation that it forks off instead."""

    chain: Chain | None = None
    point: Point | None = None
    source: Chain | None = None
    ambiguous: bool = False


class Conversations:
    """The conversations that are going on: at most `max_chains`, idle for at most `ttl_ns`.

    Those opened by a call that offers no tools or forces one, and not gone on with, are kept apart
    (a quarter as many more), so that a thousand extractions push no agent out.

    Attributes:
        ambiguous: how many requests fitted several conversations and got a new one.

    Args:
        fingerprinter: makes the digests.
        max_chains: how many conversations are remembered.
        ttl_ns: after how long without a request or response one is over, in nanoseconds.
        keep_args: keep the arguments of calls until they are answered, since where the server keeps
            the history no later request shows them; only for who may export content.
        new_run: makes the id of a run.
    """

    def __init__(
        self,
        fingerprinter: Fingerprints,
        *,
        max_chains: int = 1000,
        ttl_ns: int = 900 * 10**9,
        keep_args: bool = False,
        new_run: Callable[[], str] = lambda: f"{random.getrandbits(64):016x}",
    ) -> None:
        self.ambiguous = 0
        self._points = Points(fingerprinter, keep_args=keep_args)
        self._ttl_ns = ttl_ns
        self._new_run = new_run
        self._runs: OrderedDict[str, Chain] = OrderedDict()
        self._one_shots: OrderedDict[str, Chain] = OrderedDict()
        self._limits = ((self._runs, max_chains), (self._one_shots, max(1, max_chains // 4)))
        self._named: dict[str, Chain] = {}

    def request(self, request: ModelRequest, now_ns: int, hint: Chain | None = None) -> Link:
        """Link a request to its conversation: a new one if it continues none.

        Args:
            request: what is sent.
            now_ns: the time, in nanoseconds since the epoch.
            hint: the conversation last seen in the caller's thread or task. It chooses among
                conversations that match, and is never a match by itself.
        """
        sent = self._digest(request, hint)
        match = self._match(sent)
        if match.chain is None:
            chain = Chain(run=self._new_run(), one_shot=True)
            kind = LinkKind.AMBIGUOUS if match.ambiguous else LinkKind.NEW
            self.ambiguous += match.ambiguous
        else:
            chain = match.chain
            kind = LinkKind.FOLLOW_UP if _is_user_turn(sent, match) else LinkKind.CONTINUED
        reopened, chain.ended, chain.awaiting = chain.ended, False, True
        point = match.point or self._restore(chain, sent)
        answered = () if point is None else go_on(point, request)
        self._note(chain, sent)
        return Link(chain, kind, answered, reopened, match.source, self._store(chain, now_ns))

    def response(self, chain: Chain, response: ModelResponse, now_ns: int) -> None:
        """Note a response: its calls are pending now, and a request can go on from it.

        One that comes after its conversation was evicted or has expired is ignored. Of a stream
        that was never completed nothing needs to be noted, or what there is, not `complete`.
        """
        if not self._holds(chain):
            return
        if chain.front is not None:
            chain.front.left = True
        text = response.text or ("" if response.complete else None)
        self._points.add(chain, response.asks, text, response.id, now_ns)
        chain.awaiting = not response.complete
        # A paused turn (server tools) is no answer: the client sends it back to go on.
        chain.ended = response.complete and not response.asks and response.finish != "pause_turn"
        self._store(chain, now_ns)

    def claim(
        self,
        name: str,
        args_key: str | None,
        hint: Chain | None,
        call_id: str | None = None,
        *,
        shows: bool = True,
    ) -> Pending | None:
        """Find the pending call that an execution belongs to, and mark it as shown.

        Its result in a later request is then not seen for the first time. A call that runs again
        before it is answered (a retry) is found again.

        Args:
            name: the tool's name.
            args_key: the digest of the arguments; None if unknown.
            hint: the conversation of the caller's thread or task; it chooses among several.
            call_id: the provider's id, where the hook knows it.
            shows: False only looks for it.

        Returns:
            The call; None if no conversation, or more than one, waits for such a call.
        """
        if args_key is None and not call_id:
            return None
        calls = self._points.waiting(name, args_key, call_id)
        calls = [call for call in calls if call.chain is hint] or calls
        if len({call.chain.run for call in calls}) != 1:
            return None
        call = next((call for call in calls if not call.shown), calls[0])
        call.shown = call.shown or shows
        return call

    def named(self, run: str) -> Chain | None:
        """The conversation with this run id, unless it offers no tools or is forgotten."""
        return self._runs.get(run)

    def expire(self, now_ns: int) -> list[Chain]:
        """Forget the conversations that have been idle for too long, and return them."""
        gone: list[Chain] = []
        for store, _ in self._limits:
            while store and next(iter(store.values())).last_ns + self._ttl_ns < now_ns:
                gone.append(self._drop(store))
        return gone

    def drain(self) -> list[Chain]:
        """Forget all conversations, and return them."""
        return [self._drop(store) for store, _ in self._limits for _ in range(len(store))]

    def _digest(self, request: ModelRequest, hint: Chain | None) -> _Sent:
        return _Sent(
            request=request,
            hint=hint if hint is not None and self._holds(hint) else None,
            head=None if request.head is None else self._points.of_text(request.head),
        )

    def _match(self, sent: _Sent) -> _Match:
        for is_proof, points in self._evidence(sent):
            fitting = [p for p in points if is_proof or sent.supports(p.chain)]
            usable = [point for point in fitting if accepts(point, sent.request.answers)]
            if usable:
                return _choose(usable, sent)
            if fitting:
                return _Match(source=fitting[-1].chain)
            if len({point.chain.run for point in points}) > 1:
                return _Match(ambiguous=True)
        return _Match(chain=self._unseen(sent))

    def _evidence(self, sent: _Sent) -> Iterator[tuple[bool, list[Point]]]:
        """Yield points that the request may go on from, and whether that is proof by itself."""
        last, asked = sent.request.last_assistant, sent.request.asked
        yield True, self._points.by_response(sent.request.previous_id)
        yield self._points.any_unique(asked), self._points.by_calls(asked)
        named = self._named.get(sent.request.conversation_id or "")
        yield True, [] if named is None else list(named.points)
        yield False, [] if isinstance(last, Missing) else self._points.by_text(*last)

    def _unseen(self, sent: _Sent) -> Chain | None:
        """Return the conversation of which only requests were seen, not their response."""
        named, hint = self._named.get(sent.request.conversation_id or ""), sent.hint
        if named is not None or hint is None:
            return named
        goes_on = hint.awaiting and sent.begins(hint) and sent.request.size >= hint.size
        return hint if goes_on else None

    def _restore(self, chain: Chain, sent: _Sent) -> Point | None:
        """Add the response that was not seen but that the request tells of."""
        request, last = sent.request, sent.request.last_assistant
        if isinstance(last, Missing) and not request.answers:
            return None
        text = None if isinstance(last, Missing) else last[0]
        return self._points.add(chain, request.asked, text, request.previous_id)

    def _note(self, chain: Chain, sent: _Sent) -> None:
        request = sent.request
        if not chain.size or not isinstance(request.last_assistant, Missing):
            chain.head = sent.head or chain.head
        chain.size = request.size
        if request.conversation_id:
            chain.conversation_id = request.conversation_id
            self._named[request.conversation_id] = chain
        if request.answers or (request.offers_tools and not request.forced):
            chain.one_shot = False

    def _holds(self, chain: Chain) -> bool:
        return any(store.get(chain.run) is chain for store, _ in self._limits)

    def _store(self, chain: Chain, now_ns: int) -> tuple[Chain, ...]:
        """Put a conversation last in its store, and return those that had to make room."""
        chain.last_ns = now_ns
        evicted: list[Chain] = []
        for store, limit in self._limits:
            store.pop(chain.run, None)
            if (store is self._one_shots) == chain.one_shot:
                store[chain.run] = chain
            while len(store) > limit:
                evicted.append(self._drop(store))
        return tuple(evicted)

    def _drop(self, store: OrderedDict[str, Chain]) -> Chain:
        _, chain = store.popitem(last=False)
        self._points.forget(chain)
        chain.front = None
        if chain.conversation_id and self._named.get(chain.conversation_id) is chain:
            del self._named[chain.conversation_id]
        return chain


def _choose(points: list[Point], sent: _Sent) -> _Match:
    """Choose the one conversation: by its first message, by what is open, by the hint."""
    open_ = {point.chain.run for point in points if not point.continued}
    chains = list({point.chain.run: point.chain for point in points}.values())
    tests: tuple[Callable[[Chain], bool], ...] = (
        sent.begins,
        lambda chain: chain.run in open_,
        lambda chain: chain is sent.hint,
    )
    for likely in tests:
        if len(chains) > 1:
            chains = [chain for chain in chains if likely(chain)] or chains
    if len(chains) > 1:
        return _Match(ambiguous=True)
    mine = [point for point in points if point.chain is chains[0]]
    return _Match(chains[0], max(mine, key=lambda point: (not point.continued, point.seq)))


def _is_user_turn(sent: _Sent, match: _Match) -> bool:
    """Whether the user speaks, and this is not what was already sent and never responded to."""
    request, point, chain = sent.request, match.point, match.chain
    if not request.user_turn or request.answers or chain is None:
        return False
    if point is not None:
        return point.left or not point.continued
    return request.size > chain.size
