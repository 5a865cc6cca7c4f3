"""What one model call says that matters here: the request's trailing results, the response's calls.

The readers of the SDKs' wire formats fill these in; `conversation` links them. They hold content
(arguments, results, texts) and live for one call; what is remembered of them are digests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from otel_loopguard.core.model import MISSING, Missing

if TYPE_CHECKING:
    from collections.abc import Iterable


class Ask(NamedTuple):
    """A tool call that a model response contains; `args` is JSON text or a mapping, or MISSING."""

    call_id: str | None
    name: str
    args: object = MISSING


class Answer(NamedTuple):
    """A tool result that a model request carries after the last assistant message."""

    call_id: str | None
    name: str | None
    result: object = MISSING
    is_error: bool = False


class ModelRequest(NamedTuple):
    """One request to a model, as far as it says which conversation it continues.

    Attributes:
        provider: openai, anthropic ...
        model: the model asked for, if named.
        offers_tools: whether the model may call a tool.
        offered: the names of the tools it may call; None if they are not (all) known.
        forced: whether the tool choice names one tool.
        answers: the results after the last assistant message, in order.
        earlier: calls with their results from just before the last assistant message, nearest
            first: some clients write one assistant message per parallel call. Read only when a
            call waits for its result, at most once.
        last_assistant: text and calls of the last assistant message; MISSING without one.
        previous_id: the id of the response that this one continues on the server's side.
        conversation_id: the id of the conversation that the server keeps.
        user_turn: whether a user message follows the last assistant message.
        head: the first message that is no system message, cut to a bound; None if unknown.
        size: the number of messages sent.
    """

    provider: str
    model: str | None = None
    offers_tools: bool = False
    offered: frozenset[str] | None = None
    forced: bool = False
    answers: tuple[Answer, ...] = ()
    earlier: Iterable[tuple[Ask, Answer]] = ()
    last_assistant: tuple[str, tuple[Ask, ...]] | Missing = MISSING
    previous_id: str | None = None
    conversation_id: str | None = None
    user_turn: bool = False
    head: str | None = None
    size: int = 0

    @property
    def asked(self) -> tuple[Ask, ...]:
        """The calls that `answers` belong to, where history is sent."""
        return () if isinstance(self.last_assistant, Missing) else self.last_assistant[1]


class ModelResponse(NamedTuple):
    """One response of a model.

    Attributes:
        id: the provider's id of the response.
        model: the model that answered.
        text: what it said, without its reasoning; None if nothing.
        thought: its reasoning, as far as shown.
        asks: the calls it asks for, in order.
        finish: why it stopped, in the provider's word.
        input_tokens: tokens read, cached ones included.
        output_tokens: tokens written, reasoning included.
        cache_read_tokens: input tokens that came from a cache.
        cache_write_tokens: input tokens that were put into a cache.
        complete: False for a stream that ended early or outgrew what is kept of it.
    """

    id: str | None = None
    model: str | None = None
    text: str | None = None
    thought: str | None = None
    asks: tuple[Ask, ...] = ()
    finish: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    complete: bool = True
