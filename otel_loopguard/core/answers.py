"""Results that a request carries, and the calls that they answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from otel_loopguard.core.chain import MAX_CALLS, Answered, Pending, Point
from otel_loopguard.core.exchange import Answer, Ask, ModelRequest
from otel_loopguard.core.model import MISSING

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Named(Protocol):
    @property
    def call_id(self) -> str | None: ...
    @property
    def name(self) -> str | None: ...


_Call = TypeVar("_Call", bound=_Named)


def accepts(point: Point, answers: Sequence[Answer]) -> bool:
    """Whether a request with these results goes on from here, and not on a branch of its own.

    It is another branch if a sibling was chosen before, or if the conversation has gone on from
    here with other results. Results that are no text are not compared.
    """
    if point.stale:
        return False
    if not point.left:
        return True  # not responded to: sent again, perhaps with a result cut shorter
    pairs = zip(_pair(point.calls, answers), answers, strict=True)
    return not any(
        call and None not in (seen := (call.result_hash, _hash(answer))) and seen[0] != seen[1]
        for call, answer in pairs
    )


def go_on(point: Point, request: ModelRequest) -> tuple[Answered, ...]:
    """Go on from a point: its siblings go stale, and what the request answers is answered.

    Returns:
        The results that the request carries, in the order of their calls.
    """
    chain = point.chain
    for other in chain.points:
        if other is not point and other.parent == point.parent and not other.continued:
            other.stale = True
    point.continued = True
    chain.front = point
    asks = _pair(request.asked, request.answers)
    calls = _pair(point.calls, request.answers)
    last = [
        _see(call or _elsewhere(point, answer), ask, answer)
        for call, ask, answer in zip(calls, asks, request.answers, strict=True)
    ]
    return (*_before(point, request), *last)


def _before(point: Point, request: ModelRequest) -> list[Answered]:
    """See the answers that stand before the last assistant message, if any call waits for one."""
    waiting = {call.call_id: call for call in point.calls if call.call_id and not call.answered}
    seen: list[Answered] = []
    for ask, answer in request.earlier if waiting else ():
        call_id = answer.call_id or ""
        call = waiting.get(call_id)
        if call is not None and call.name == ask.name:
            seen.append(_see(waiting.pop(call_id), ask, answer))
        if not waiting:
            break
    return seen[::-1]


def _elsewhere(point: Point, answer: Answer) -> Pending:
    """Return the call of another response that is answered here, or note an unknown one."""
    call_id = answer.call_id or None
    same = [c for p in reversed(point.chain.points) for c in p.calls if c.call_id == call_id]
    for call in sorted(same, key=lambda call: call.answered):
        if call_id and (not call.answered or call.result_hash == _hash(answer)):
            return call
    uid = point.chain.new_uid(call_id, answer.name, repeated=bool(same))
    call = Pending(point.chain, call_id, answer.name, None, uid, point.round, asked_ns=0)
    if len(point.calls) < MAX_CALLS:
        point.calls.append(call)
    return call


def _see(call: Pending, ask: Ask | None, answer: Answer) -> Answered:
    if ask is None and call.name is not None:
        ask = Ask(call.call_id, call.name, call.args)
    first_time = not (call.answered or call.shown)
    call.answered, call.args, call.result_hash = True, MISSING, _hash(answer)
    return Answered(ask, answer, first_time, call)


def _hash(answer: Answer) -> int | None:
    return hash(answer.result) if isinstance(answer.result, str) else None


def _pair(calls: Sequence[_Call], answers: Sequence[Answer]) -> list[_Call | None]:
    """Return for each result its call: by id, without one by name, without both by position."""
    free = list(calls)
    paired: list[_Call | None] = []
    for answer in answers:
        call_id, name = answer.call_id or None, answer.name
        for nth, call in enumerate(free):
            fits = call.call_id == call_id if call_id else name is None or call.name == name
            if fits:
                paired.append(free.pop(nth))
                break
        else:
            paired.append(None)
    return paired
