"""Texts that bring a model back to its task: the objective, its constraints, the tools it has."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

NEAREST: Final = 3
"""How many existing names are offered in place of an invented one."""
BYTES_A_TOKEN: Final = 4
"""So many bytes of UTF-8 are about a token, in any script."""
_CUT: Final = "..."

_ENGLISH: Final[Mapping[str, str]] = {
    "objective": "Your objective: {}",
    "done": "It is done when:",
    "tools": "Tools you may use: {}",
    "keep": "Keep to these:",
    "takes": "{} takes these arguments: {}. Call it with exactly these.",
    "nothing": "There is no such tool, and no other. Answer without tools.",
    "nearest": "There is no such tool. The nearest ones are: {}.",
    "all": "There is no such tool. These exist: {}.",
    "none": "none",
}
_GERMAN: Final[Mapping[str, str]] = {
    "objective": "Dein Ziel: {}",
    "done": "Es ist erreicht, wenn:",
    "tools": "Werkzeuge, die du benutzen darfst: {}",
    "keep": "Halte dich daran:",
    "takes": "{} erwartet diese Argumente: {}. Rufe es mit genau diesen auf.",
    "nothing": "Es gibt kein solches Werkzeug, und kein anderes. Antworte ohne Werkzeuge.",
    "nearest": "Es gibt kein solches Werkzeug. Am nächsten kommen: {}.",
    "all": "Es gibt kein solches Werkzeug. Diese gibt es: {}.",
    "none": "keine",
}


def _words(language: str) -> Mapping[str, str]:
    """The sentences of a language; an unknown one is taken for English."""
    return _GERMAN if language == "de" else _ENGLISH


@dataclass(frozen=True, slots=True)
class ObjectiveAnchor:
    """What an agent is there for.

    Attributes:
        objective: the task, in one or two sentences.
        success_criteria: how one sees that it is done.
        allowed_tools: the tools that may be used for it; none are named if empty.
    """

    objective: str
    success_criteria: Sequence[str] = ()
    allowed_tools: Sequence[str] = ()

    def text(self, language: str = "en") -> str:
        """The reminder to put into the conversation."""
        words = _words(language)
        return words["objective"].format(self.told(language))

    def told(self, language: str = "en") -> str:
        """The same without the words before the objective."""
        words, lines = _words(language), [self.objective]
        if self.success_criteria:
            lines += [words["done"], *(f"- {each}" for each in self.success_criteria)]
        if self.allowed_tools:
            lines.append(words["tools"].format(", ".join(self.allowed_tools)))
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class ConstraintReminder:
    """Says the constraints again each `every` iterations, since they fade in a long context.

    Attributes:
        constraints: what has to be kept to.
        every: after how many iterations they are said again; at least 1.
    """

    constraints: Sequence[str]
    every: int = 5

    def __post_init__(self) -> None:
        if self.every < 1:
            raise ValueError(f"every has to be at least 1, not {self.every}")

    def due(self, iteration: int, language: str = "en") -> str | None:
        """The reminder, if it is due in this iteration (from 1 on); else None."""
        if not self.constraints or iteration < 1 or iteration % self.every:
            return None
        return f"{_words(language)['keep']}\n{self.told()}"

    def told(self) -> str:
        """The constraints, one a line."""
        return "\n".join(f"- {each}" for each in self.constraints)


@dataclass(frozen=True, slots=True)
class SummariseTrigger:
    """Says when a conversation is to be summarised, and makes a summary of its newest messages.

    Attributes:
        tokens: from how many context tokens on.
        keep: how many of the newest messages are summarised together.
        summary_tokens: how long the summary may be.
    """

    tokens: int = 6_000
    keep: int = 4
    summary_tokens: int = 200

    def due(self, context_tokens: int) -> bool:
        """Whether a context of so many tokens is to be summarised."""
        return context_tokens >= self.tokens

    def summary(self, texts: Sequence[str]) -> str:
        """A summary without a model: how the newest texts begin, a line each, the oldest first.

        It is as long as it may be at most, by four bytes a token. Texts that begin in the same way
        count once.
        """
        newest: list[str] = []
        for text in reversed(texts):
            line = " ".join(text[: self.summary_tokens * BYTES_A_TOKEN].split())
            if len(newest) < self.keep and line and line not in newest:
                newest.append(line)
        room = self.summary_tokens * BYTES_A_TOKEN // max(1, len(newest)) - 1
        return "\n".join(_beginning(line, max(0, room)) for line in reversed(newest))


def _beginning(text: str, room: int) -> str:
    """As much of a text as fits into so many bytes."""
    encoded = text.encode(errors="replace")
    if len(encoded) <= room:
        return text
    return encoded[: max(0, room - len(_CUT))].decode(errors="ignore") + _CUT[:room]


def tool_schema_reminder(
    name: str, tools: Mapping[str, Collection[str]], language: str = "en"
) -> str:
    """What to answer to a call of a tool that does not exist, or that does not fit.

    Args:
        name: the name that was called.
        tools: the tools that exist, each with the names of its parameters.
        language: en or de.
    """
    words = _words(language)

    def listed(parameters: Collection[str]) -> str:
        return ", ".join(parameters) if parameters else words["none"]

    if name in tools:
        return words["takes"].format(name, listed(tools[name]))
    nearest = get_close_matches(name, tools, n=NEAREST, cutoff=0.5)
    offers = [f"{each}({listed(tools[each])})" for each in nearest or sorted(tools)]
    if not offers:
        return words["nothing"]
    return words["nearest" if nearest else "all"].format("; ".join(offers))
