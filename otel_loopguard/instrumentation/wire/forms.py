"""How a request is changed, whatever its wire format: always in a copy, never in place."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from otel_loopguard.breaking.counsel import KEEP, Scene
from otel_loopguard.breaking.reminders import SummariseTrigger
from otel_loopguard.breaking.results import ChunkedResult
from otel_loopguard.core.notes import phrase
from otel_loopguard.instrumentation.wire.fields import get, items, name_of, string, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from otel_loopguard.breaking.brief import Brief
    from otel_loopguard.breaking.counsel import Change
    from otel_loopguard.core.exchange import ModelRequest
    from otel_loopguard.instrumentation.wire.history import Part, PartReader

MAX_MESSAGES: Final = 20_000
"""Longer histories are left as they are."""
MAX_TEXT: Final = 4_000
"""Characters of an objective, of constraints and of a summary that are said again."""
MAX_KINDS: Final = 10
LONG: Final = 8_000
"""Results of more characters are given in their first part only, where the model is cut off."""
_SYSTEM: Final = frozenset({"system", "developer"})


class Form(NamedTuple):
    """How one wire writes what is changed.

    Attributes:
        messages: the field with the history.
        read: reads a message of it.
        none: the tool choice that forbids calls.
        result: the field of a message with a tool's result.
        system: a field beside the history that says what a system message does.
    """

    messages: str
    read: PartReader
    none: object
    result: str
    system: str | None = None

    def touched(self) -> frozenset[str]:
        """The fields of a body that may be changed."""
        return frozenset({self.messages, "tool_choice", "function_call", "temperature"})


class Body:
    """A request as the client of a model SDK is given it, and copies of it with changes.

    Args:
        body: what is sent.
        form: how it is written.
        request: what was read in it.
        brief: what the application says of the run.
        language: of what is put in.
        fixed: whether nothing may be changed.
    """

    def __init__(
        self,
        body: Mapping[str, Any],
        form: Form,
        request: ModelRequest,
        brief: Brief | None,
        language: str,
        *,
        fixed: bool = False,
    ) -> None:
        self._body, self._form, self._brief, self._language = body, form, brief, language
        sent: object = body.get(form.messages)
        messages = [user_message(sent)] if isinstance(sent, str) else sent
        listed = cast("list[object]", messages) if type(messages) is list else []
        known = 0 < len(listed) <= MAX_MESSAGES and not fixed
        self._messages = listed if known else []
        self._parts = [form.read(each) for each in self._messages]
        remote = bool(request.previous_id or request.conversation_id)
        self.goes_on = remote or any(part.role == "assistant" for part in self._parts)
        local = not remote and not isinstance(body.get("thread"), dict)
        self.scene = Scene(
            objective=objective(self._parts, brief, language),
            constraints=constraints(self._system(), brief),
            tools=tools_of(body),
            asked=last_asked(self._parts),
            takes_words=known,
            takes_final=bool(items(body.get("tools")) or items(body.get("functions"))),
            is_warm=is_warm(body.get("temperature")),
            is_whole=local and left_out(self._parts, KEEP) > 1,
        )

    def _system(self) -> str:
        beside = "" if self._form.system is None else text_of(self._body.get(self._form.system))
        said = (text_of(get(m, "content")) for m in self._messages if get(m, "role") in _SYSTEM)
        return beside or next(said, "")

    def changed(self, change: Change) -> dict[str, Any]:
        """A copy of the body with a change."""
        form, body = self._form, dict(self._body)
        messages = shortened(
            self._messages, self._parts, change.keep, self._brief, self._language, user_message
        )
        if change.shortens:
            messages = [self._in_part(each) for each in messages]
        body[form.messages] = [*messages, user_message(change.text)]
        if change.final:
            legacy = not items(body.get("tools"))
            body["function_call" if legacy else "tool_choice"] = "none" if legacy else form.none
        if change.cools:
            body["temperature"] = body["temperature"] / 2
        return body

    def _in_part(self, message: object) -> object:
        """A message whose long results are given in their first parts."""
        name = self._form.result
        if type(message) is not dict or not self._form.read(cast("object", message)).answers:
            return cast("object", message)
        known = cast("dict[str, object]", message)
        blocks = known.get(name)
        if type(blocks) is not list:
            return {**known, name: in_part(blocks)}
        listed = cast("list[object]", blocks)
        return {**known, name: [_block_in_part(each) for each in listed]}


def in_part(result: object) -> object:
    """A result; of a text that is too long, the first part."""
    if not isinstance(result, str) or len(result) <= LONG:
        return result
    return ChunkedResult(result, size=LONG).part(1).labelled()


def _block_in_part(block: object) -> object:
    if type(block) is not dict or "content" not in block:
        return cast("object", block)
    known = cast("dict[str, object]", block)
    return {**known, "content": in_part(known["content"])}


def user_message(text: str) -> dict[str, str]:
    """A message of the user, as all wires take it."""
    return {"role": "user", "content": text}


def is_warm(temperature: object) -> bool:
    """Whether a temperature can be lowered."""
    return type(temperature) in (int, float) and cast("float", temperature) > 0


def objective(parts: Sequence[Part], brief: Brief | None, language: str) -> str:
    """What a run is for: as the application says, else what the user said first."""
    if brief is not None and brief.anchor is not None:
        return brief.anchor.told(language)
    return next((part.text for part in parts if _speaks(part)), "")[:MAX_TEXT]


def constraints(system: str, brief: Brief | None) -> str:
    """What has to be kept to: as the application says, else the system message."""
    given = None if brief is None else brief.constraints
    return system[:MAX_TEXT] if given is None else given.told()


def last_asked(parts: Sequence[Part]) -> tuple[str, ...]:
    """The tools that the model asked for last."""
    last = next((part for part in reversed(parts) if part.asks), None)
    return () if last is None else tuple(ask.name for ask in last.asks)


def left_out(parts: Sequence[Part], keep: int) -> int:
    """How many messages would be left out if only so many of the newest stay."""
    head, start = _kept(parts, keep)
    return start - len(head)


def shortened(
    messages: Sequence[object],
    parts: Sequence[Part],
    keep: int | None,
    brief: Brief | None,
    language: str,
    said: Callable[[str], object],
) -> Sequence[object]:
    """A history without its middle, which a few lines stand for; as it is with `keep` None.

    What stays: what stands before the conversation, what the user said first and last, and the
    newest messages, from a place on where no call is parted from its results.
    """
    if keep is None:
        return messages
    head, start = _kept(parts, keep)
    gone = [index for index in range(start) if index not in head]
    if not gone:
        return messages
    text = phrase("left_out", language, count=str(len(gone)))
    calls = Counter(ask.name for index in gone for ask in parts[index].asks)
    own = None
    if brief is not None and brief.summarise is not None:
        own = brief.summarise([messages[index] for index in gone])
    if isinstance(own, str) and own:
        text = f"{text}\n{own[:MAX_TEXT]}"
    else:
        if calls:
            listed = ", ".join(f"{name} ({count})" for name, count in calls.most_common(MAX_KINDS))
            text = f"{text} {phrase('calls', language, calls=listed)}"
        said_there = SummariseTrigger().summary([_said(parts[index]) for index in gone])
        text = f"{text}\n{said_there}" if keep and said_there else text
    return [*(messages[index] for index in sorted(head)), said(text), *messages[start:]]


def _said(part: Part) -> str:
    """What a message says, and who; empty if that is nothing."""
    results = (each.result for each in part.answers if isinstance(each.result, str))
    text = part.text or " ".join(results)
    return f"{part.role}: {text}" if text else ""


def _kept(parts: Sequence[Part], keep: int) -> tuple[set[int], int]:
    """Which messages stay: those of the head, and from which on all do."""
    start = max(0, len(parts) - keep)
    while 0 < start < len(parts) and not _begins(parts, start):
        start -= 1
    opening = next((i for i, part in enumerate(parts) if part.role != "skipped"), 0)
    spoken = [index for index in range(start) if _speaks(parts[index])]
    return {*range(min(opening, start)), *spoken[:1], *spoken[-1:]}, start


def _begins(parts: Sequence[Part], index: int) -> bool:
    """Whether a history can be cut before a message."""
    if parts[index].role == "assistant":
        return parts[index - 1].role not in ("assistant", "skipped")
    return _speaks(parts[index])


def _speaks(part: Part) -> bool:
    return part.role == "user" and not part.answers


def tools_of(body: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """The tools of a request that have a name, each with the names of its parameters."""
    listed = [*items(body.get("tools")), *items(body.get("functions"))]
    named = ((name_of(tool), tool) for tool in listed)
    return {name: parameters_of(tool) for name, tool in named if name}


def parameters_of(tool: object) -> tuple[str, ...]:
    """The names of a tool's parameters, as far as its definition says them."""
    inner = get(tool, "function") or tool
    schema = get(inner, "parameters") or get(tool, "input_schema")
    properties = get(schema, "properties")
    known = cast("dict[object, object]", properties) if isinstance(properties, dict) else {}
    return tuple(name for each in known if (name := string(each)))
