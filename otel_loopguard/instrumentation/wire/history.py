"""What a request's messages and tools say, whatever its wire format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from otel_loopguard.core.model import MISSING
from otel_loopguard.instrumentation.wire.fields import get, items, name_of, string

if TYPE_CHECKING:
    from collections.abc import Sequence

    from otel_loopguard.core.exchange import Answer, Ask, ModelRequest

MAX_WALK = 1_000
"""Messages that are read, from the end backwards, in search of the last assistant message."""
MAX_EARLIER = 16
"""Assistant messages before the last one that may be parts of the same response."""
MAX_HEAD = 2_000
"""Characters of a conversation's first message that tell it from others."""
MAX_NAMES = 1_000
"""Tool names of one request that are kept."""
MAX_CALLS = 128
"""Calls of one streamed response that are kept."""

_OPEN_ENDED = frozenset({"mcp", "mcp_toolset", "namespace", "tool_search"})
"""Tools that stand for more tools, whose names are not in the request."""


@dataclass(frozen=True, slots=True)
class Part:
    """One message, or item, of a history; `skipped` is one that says nothing here."""

    role: Literal["user", "assistant", "tool", "skipped"] = "skipped"
    text: str = ""
    asks: tuple[Ask, ...] = ()
    answers: tuple[Answer, ...] = ()


PartReader: TypeAlias = Callable[[object], Part]


def with_tools(request: ModelRequest, tools: object, choice: object) -> ModelRequest:
    """Add which tools a request offers, and whether it forces one."""
    listed = items(tools)
    given = bool(listed) or isinstance(tools, Iterator)
    if not given or choice == "none" or get(choice, "type") == "none":
        return request
    kinds = [string(get(tool, "type")) for tool in listed[:MAX_NAMES]]
    names = [name_of(tool) or kind for tool, kind in zip(listed, kinds, strict=False)]
    known = 0 < len(listed) <= MAX_NAMES and None not in names and not _OPEN_ENDED & {*kinds}
    return request._replace(
        offers_tools=True,
        offered=frozenset(filter(None, names)) if known else None,
        forced=name_of(choice) is not None,
    )


def with_history(
    request: ModelRequest, messages: object, read: PartReader, *, joined: bool = False
) -> ModelRequest:
    """Add what the messages of a request say, read from their end.

    Args:
        request: what is known of the request so far.
        messages: the messages; an iterator is left alone.
        read: reads one message.
        joined: whether one response is several messages in a row.
    """
    history = items(messages)
    if not history:
        return request
    end, answers, user_turn, last = _turn(history, len(history), read, joined=joined)
    heads = (read(message) for message in history[:MAX_EARLIER])
    head = next((part.text for part in heads if part.role != "skipped"), "")
    return request._replace(
        answers=tuple(answers),
        earlier=_earlier(history, end, last, read, joined=joined) if last and answers else (),
        last_assistant=MISSING if last is None else (last.text, last.asks),
        user_turn=user_turn,
        head=f"{len(head)} {head[:MAX_HEAD]}" if head else None,
        size=len(history),
    )


def _earlier(
    history: Sequence[object], end: int, last: Part, read: PartReader, *, joined: bool
) -> Iterator[tuple[Ask, Answer]]:
    """Read on backwards while there is nothing but calls and their results."""
    for _ in range(MAX_EARLIER):
        if last.text or not last.asks:
            return
        end, answers, user_turn, before = _turn(history, end, read, joined=joined)
        if before is None or user_turn or not answers:
            return
        asks = {ask.call_id: ask for ask in before.asks if ask.call_id}
        yield from ((asks[a.call_id], a) for a in reversed(answers) if a.call_id in asks)
        last = before


def _turn(
    history: Sequence[object], end: int, read: PartReader, *, joined: bool
) -> tuple[int, list[Answer], bool, Part | None]:
    """Read backwards from `end`: results and user messages, then the response before them.

    Returns where that response begins, the results, whether the user spoke, and the response.
    """
    answers: list[Answer] = []
    user, last = False, None
    while end > max(0, len(history) - MAX_WALK):
        part = read(history[end - 1])
        if part.role == "assistant":
            last = part if last is None else _join(part, last)
        elif last is not None and part.role != "skipped":
            break
        answers[:0] = part.answers
        user = user or part.role == "user"
        end -= 1
        if last is not None and not joined:
            break
    return end, answers, user, last


def _join(first: Part, second: Part) -> Part:
    return Part("assistant", first.text + second.text, first.asks + second.asks)
