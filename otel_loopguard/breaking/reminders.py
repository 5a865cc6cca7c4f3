"""Texts that bring a model back to its task: the objective, its constraints, the tools it has."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

NEAREST: Final = 3
"""How many existing names are offered in place of an invented one."""


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

    def text(self) -> str:
        """The reminder to put into the conversation."""
        lines = [f"Your objective: {self.objective}"]
        if self.success_criteria:
            lines += ["It is done when:", *(f"- {each}" for each in self.success_criteria)]
        if self.allowed_tools:
            lines.append(f"Tools you may use: {', '.join(self.allowed_tools)}")
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

    def due(self, iteration: int) -> str | None:
        """The reminder, if it is due in this iteration (from 1 on); else None."""
        if not self.constraints or iteration < 1 or iteration % self.every:
            return None
        return "\n".join(("Keep to these:", *(f"- {each}" for each in self.constraints)))


@dataclass(frozen=True, slots=True)
class SummariseTrigger:
    """Says when a conversation is to be summarised, and how much of it stays as it is.

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


def tool_schema_reminder(name: str, tools: Mapping[str, Collection[str]]) -> str:
    """What to answer to a call of a tool that does not exist, or that does not fit.

    Args:
        name: the name that was called.
        tools: the tools that exist, each with the names of its parameters.
    """
    if name in tools:
        return f"{name} takes these arguments: {_listed(tools[name])}. Call it with exactly these."
    nearest = get_close_matches(name, tools, n=NEAREST, cutoff=0.5)
    offers = [f"{each}({_listed(tools[each])})" for each in nearest or sorted(tools)]
    if not offers:
        return "There is no such tool, and no other. Answer without tools."
    which = "The nearest ones are" if nearest else "These exist"
    return f"There is no such tool. {which}: {'; '.join(offers)}."


def _listed(parameters: Collection[str]) -> str:
    return ", ".join(parameters) if parameters else "none"
