"""The responses that a request can go on from, and how they are found again."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Protocol

from otel_loopguard.core.chain import MAX_CALLS, MAX_POINTS, Chain, Pending, Point
from otel_loopguard.core.model import MISSING

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from otel_loopguard.core.exchange import Ask

MAX_ARGS = 65_536
"""Characters of a call's arguments, as text, that are kept until it is answered."""


class Fingerprints(Protocol):
    """What is needed of the fingerprinter."""

    def of_args(self, value: object, /) -> str | None:
        """Return the digest of a call's arguments; None if they are unknown."""
        ...

    def of_text(self, text: str, /) -> str:
        """Return the digest of a text."""
        ...


class Points:
    """Points by what a request says of them: a response id, calls with their ids, a text."""

    def __init__(self, fingerprinter: Fingerprints, *, keep_args: bool) -> None:
        self._keep_args = keep_args
        self._fingerprinter = fingerprinter
        self._index: dict[Hashable, dict[Point, None]] = {}

    def add(
        self,
        chain: Chain,
        asks: Sequence[Ask],
        text: str | None,
        response_id: str | None,
        asked_ns: int = 0,
    ) -> Point:
        """Add a response to a conversation; its oldest one may fall off.

        Args:
            chain: the conversation.
            asks: the calls that the response contains.
            text: what else the response says; None if unknown, so that it equals nothing.
            response_id: the provider's id of it.
            asked_ns: when it ended; 0 if it was not seen but is told of by a request, which then
                holds the arguments too, so that they need not be kept.
        """
        chain.seq += 1
        parent = 0 if chain.front is None else chain.front.seq
        point = Point(chain, seq=chain.seq, parent=parent)
        keys = self._args_keys(asks)
        for ask, key in zip(asks, keys, strict=False):
            call = _pending(point, ask, key, asked_ns, repeated=self._has(chain, ask.call_id))
            if self._keep_args and asked_ns and not _is_long(ask.args):
                call.args = ask.args
            point.calls.append(call)
            if call.args_key is not None or call.call_id is not None:
                self._enter(point, ("call", call.call_id, call.name, call.args_key))
            if call.args_key is not None:
                self._enter(point, ("todo", call.name, call.args_key))
            if call.call_id is not None:
                self._enter(point, ("id", call.call_id))
        if (said := self._said(text, asks, keys)) is not None:
            self._enter(point, ("said", said))
        if response_id:
            self._enter(point, ("response", response_id))
        chain.points.append(point)
        if len(chain.points) > MAX_POINTS:
            self._forget(chain.points.popleft())
        return point

    def forget(self, chain: Chain) -> None:
        """Forget all points of a conversation."""
        while chain.points:
            self._forget(chain.points.popleft())

    def by_response(self, response_id: str | None) -> list[Point]:
        """Return the responses with this id."""
        return self._find(("response", response_id))

    def by_text(self, text: str, asks: Sequence[Ask]) -> list[Point]:
        """Return the responses that say this and ask for this, whatever the ids."""
        said = self._said(text, asks, self._args_keys(asks))
        return [] if said is None else self._find(("said", said))

    def by_calls(self, asks: Sequence[Ask]) -> list[Point]:
        """Return the responses that have the most of these calls: id, name and arguments.

        Arguments too large for a digest are passed over where there is an id.
        """
        hits: Counter[Point] = Counter()
        for ask, key in zip(asks, self._args_keys(asks), strict=False):
            hits.update(self._find(("call", ask.call_id or None, ask.name, key)))
        most = max(hits.values(), default=0)
        return [point for point, count in hits.items() if count == most]

    def any_unique(self, asks: Sequence[Ask]) -> bool:
        """Whether one of these call ids at least stands in a single response."""
        return any(ask.call_id and len(self._find(("id", ask.call_id))) == 1 for ask in asks)

    def waiting(self, name: str, args_key: str | None, call_id: str | None) -> list[Pending]:
        """Return unanswered calls with this id or, without one, arguments; newest response first.

        Where both are known, both have to fit.
        """
        points = self._find(("id", call_id) if call_id else ("todo", name, args_key))
        return [
            call
            for point in reversed(points)
            if not point.stale
            for call in point.calls
            if not call.answered
            and call.name == name
            and (call_id is None or call.call_id == call_id)
            and (args_key is None or call.args_key == args_key)
        ]

    def of_text(self, text: str) -> str:
        """Return the digest of a text."""
        return self._fingerprinter.of_text(text)

    def _args_keys(self, asks: Sequence[Ask]) -> list[str | None]:
        of_args = self._fingerprinter.of_args
        return [None if ask.args is MISSING else of_args(ask.args) for ask in asks[:MAX_CALLS]]

    def _said(
        self, text: str | None, asks: Sequence[Ask], keys: Sequence[str | None]
    ) -> str | None:
        """Return the digest of a response; None if its text or the arguments are unknown."""
        if text is None or None in keys:
            return None
        calls = [f"{ask.name} {key}" for ask, key in zip(asks, keys, strict=False)]
        return self.of_text("\n".join([*calls, "", text.strip()]))

    def _has(self, chain: Chain, call_id: str | None) -> bool:
        return bool(call_id) and any(p.chain is chain for p in self._find(("id", call_id)))

    def _find(self, key: Hashable) -> list[Point]:
        return list(self._index.get(key, ()))

    def _enter(self, point: Point, key: Hashable) -> None:
        self._index.setdefault(key, {})[point] = None
        point.keys.append(key)

    def _forget(self, point: Point) -> None:
        for key in point.keys:
            bucket = self._index.get(key, {})
            bucket.pop(point, None)
            if not bucket:
                self._index.pop(key, None)
        point.keys.clear()


def _pending(point: Point, ask: Ask, key: str | None, asked_ns: int, *, repeated: bool) -> Pending:
    call_id = ask.call_id or None
    return Pending(
        point.chain,
        call_id=call_id,
        name=ask.name,
        args_key=key,
        uid=point.chain.new_uid(call_id, ask.name, repeated=repeated),
        round=point.round,
        asked_ns=asked_ns,
    )


def _is_long(args: object) -> bool:
    return isinstance(args, str) and len(args) > MAX_ARGS
