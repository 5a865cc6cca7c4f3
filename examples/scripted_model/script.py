"""What a scenario sees (`Turn`) and what it answers (`Reply`), in no provider's format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Literal, TypeAlias

Json: TypeAlias = dict[str, Any]
"""A decoded JSON object, as it travels on the wire."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the request offers, with the JSON schema of its arguments."""

    name: str
    schema: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of the model.

    Attributes:
        name: The tool's name; nothing checks that it was offered.
        arguments: An object, or a string that is sent as it is (it need not be JSON).
        id: The call id; a fresh one when None.
    """

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of a reply; `cached` are part of `input`, `reasoning` part of `output`."""

    input: int = 100
    output: int = 20
    cached: int = 0
    reasoning: int = 0


Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
Finish: TypeAlias = Literal["stop", "calls", "length", "refusal"]


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the model.

    Attributes:
        text: What it says; may stand beside calls.
        calls: The tools it asks for, in order.
        thinking: Reasoning text, sent in the provider's own way.
        usage: The token counts to report.
        finish: Why it stopped; None means "calls" where there are any, else "stop".
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""
    usage: Usage = Usage()
    finish: Finish | None = None

    @property
    def reason(self) -> Finish:
        """Why it stopped, never None."""
        return self.finish or ("calls" if self.calls else "stop")


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of a history. A tool result is a message of the role "tool", one for each result.

    Text that stands beside tool results in one message is a "tool" entry with an empty `call_id`.
    """

    role: Role
    text: str = ""
    calls: tuple[Call, ...] = ()
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """What the model is asked: everything here comes from one request and what it refers to.

    Attributes:
        model: The model name as asked for.
        offered: The tools that the request offers.
        history: The whole conversation, oldest first.
        choice: The request's `tool_choice`, in the provider's form.
        answer_schema: The JSON schema that the text of an answer must satisfy, where one was given.
        request: The request body.
    """

    model: str
    offered: tuple[Tool, ...]
    history: tuple[Message, ...]
    choice: object = None
    answer_schema: Json | None = None
    request: Json = field(default_factory=dict)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that may be called: all offered ones, or the one or none that `choice` says."""
        choice: Json = self.choice if isinstance(self.choice, dict) else {"type": self.choice}
        if choice.get("type") == "none":
            return ()
        forced = choice.get("name") or (choice.get("function") or {}).get("name")
        return tuple(tool for tool in self.offered if forced in {None, tool.name})

    @property
    def task(self) -> tuple[Message, ...]:
        """What followed the last user message, oldest first."""
        return tuple(reversed(tuple(takewhile(lambda m: m.role != "user", reversed(self.history)))))

    @property
    def number(self) -> int:
        """How many replies with calls came since the last user message; 0 on the first turn."""
        return sum(1 for message in self.task if message.calls)

    @property
    def results(self) -> tuple[str, ...]:
        """The tool results since the last user message, oldest first."""
        return tuple(message.text for message in self.task if message.role == "tool")

    @property
    def last_results(self) -> tuple[str, ...]:
        """The results that answer the last calls; empty on the first turn."""
        trailing = takewhile(lambda m: m.role == "tool", reversed(self.history))
        return tuple(message.text for message in trailing)[::-1]


Scenario: TypeAlias = Callable[[Turn], Reply]
"""Decides one reply, or raises a `WireError` for an HTTP error.

It is called from several threads at once, so what it needs to know it should take from the turn.
"""


def text_of(content: object) -> str:
    """The text of a message content or a tool result: a string, a list of parts, or None."""
    if isinstance(content, list):
        return "".join(text_of(part) for part in content)
    if isinstance(content, dict):
        return str(content.get("text") or "")
    return "" if content is None else str(content)
