"""Messages of a conversation in any provider's shape: the calls that they ask for, the answers.

Four shapes are known: parts (GenAI conventions), OpenAI (chat and responses), Anthropic, Bedrock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from otel_loopguard.core.model import MISSING
from otel_loopguard.core.tuples import make
from otel_loopguard.dialects.reading import Asked
from otel_loopguard.dialects.values import content, load, mapping, name, plain, sequence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_CALLS: Final = frozenset({"tool_call", "function_call", "tool_use", "function"})
_ANSWERS: Final = frozenset({"tool_call_response", "function_call_output", "tool_result"})
_THOUGHTS: Final = frozenset({"reasoning", "thinking"})
_MODEL: Final = ("assistant", "model")
_ARGUMENTS: Final = ("arguments", "args", "input")
_CALL_ID: Final = ("call_id", "toolUseId", "id")
_ANSWERED_ID: Final = ("tool_call_id", "tool_use_id", "toolUseId", "call_id", "id")


class Answer(NamedTuple):
    """A tool's result that a request carries, with the call that it answers."""

    call: Asked
    result: object


def answers(messages: object) -> tuple[Answer, ...]:
    """The newest tool results: those after the last message of the model, in their order.

    Only those that carry a call id and whose tool is known, from the result or from its call.
    """
    results: list[tuple[str, str | None, object]] = []
    asked: dict[str, Asked] = {}
    for message in reversed(_items(messages)):
        found = {call.call_id: call for call in _calls(message) if call.call_id}
        if asked and not found:
            break
        asked = found | asked
        if not asked:
            if message.get("role") in _MODEL:
                break
            results[:0] = _answers(message)
    _pair_in_order([call_id for call_id, *_ in results], asked)
    return tuple(
        Answer(call, result)
        for call_id, tool, result in results
        if (call := asked.get(call_id) or (Asked(call_id, tool) if tool else None))
    )


def _pair_in_order(answered: list[str], asked: dict[str, Asked]) -> None:
    """Give results and calls without a partner to each other, where there are as many of both.

    OpenLLMetry names a call of OpenAI's responses by its item id, its result by the call id.
    """
    unasked = [call_id for call_id in answered if call_id not in asked]
    spare = [call for call_id, call in asked.items() if call_id not in answered]
    if len(unasked) == len(spare):
        pairs = zip(unasked, spare, strict=True)
        asked |= {call_id: call._replace(call_id=call_id) for call_id, call in pairs}


def text(messages: object, role: str) -> object:
    """The text that one role says in these messages, `MISSING` if it says none."""
    said = [
        part.get("content", part.get("text"))
        for message in _items(messages)
        if message.get("role") == role
        for part in _parts(message)
        if part.get("type", "text") == "text"
    ]
    return _joined(said)


class Response(NamedTuple):
    """What a model says in its response: text and reasoning, `MISSING` if none, and its calls."""

    text: object
    thought: object
    calls: tuple[Asked, ...]


def response(messages: object) -> Response:
    """All that the model says in these messages."""
    texts: list[object] = []
    thoughts: list[object] = []
    asked: list[Asked] = []
    for message in _items(messages):
        said = message.get("role") == "assistant"
        for part in _parts(message):
            kind = part.get("type", "text")
            if kind in _THOUGHTS:
                thoughts.append(part.get("content") or part.get("thinking") or part.get("text"))
            elif kind == "text" and said:
                texts.append(part.get("content", part.get("text")))
            if (call := _call(part, kind)) is not None:
                asked.append(call)
    return make(Response, (_joined(texts), _joined(thoughts), tuple(asked)))


def _joined(said: list[object]) -> object:
    if not said:
        return MISSING
    texts = [part for part in said if isinstance(part, str) and part]
    return "\n".join(texts) if texts else MISSING


def _items(messages: object) -> list[Mapping[str, object]]:
    listed = sequence(messages) or sequence(load(messages))
    return [item for entry in listed if (item := mapping(entry)) is not None]


def _parts(message: Mapping[str, object]) -> list[Mapping[str, object]]:
    """The message itself, which may be a call, an answer or a text, and all that it holds."""
    parts = [message]
    for key in ("parts", "content", "tool_calls"):
        if held := message.get(key):
            parts += _items(held)
    return parts


def _calls(message: Mapping[str, object]) -> Iterator[Asked]:
    for part in _parts(message):
        if (call := _call(part, part.get("type"))) is not None:
            yield call


def _call(part: Mapping[str, object], kind: object) -> Asked | None:
    """The tool call that a part asks for, if any."""
    inner = mapping(part["toolUse"]) if "toolUse" in part else None
    if inner is None and kind not in _CALLS:
        return None
    call = inner or part
    function = (mapping(call["function"]) if "function" in call else None) or call
    tool = name(function, "name")
    if tool is None:
        return None
    args = content(function, _ARGUMENTS)
    return make(Asked, (name(call, *_CALL_ID), tool, args))


def _answers(message: Mapping[str, object]) -> Iterator[tuple[str, str | None, object]]:
    for part in _parts(message):
        inner = mapping(part.get("toolResult"))
        if inner is None and name(part, "type") not in _ANSWERS and part.get("role") != "tool":
            continue
        answer = inner or part
        if call_id := name(answer, *_ANSWERED_ID):
            result = content(answer, ("response", "result", "output", "content"))
            yield call_id, name(answer, "name"), plain(result)
