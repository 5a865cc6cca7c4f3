"""How a request to a model is changed for a rung of the ladder. Pure: it sees texts, no wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from otel_loopguard.breaking.reminders import (
    ObjectiveAnchor,
    SummariseTrigger,
    tool_schema_reminder,
)
from otel_loopguard.core.notes import DEFAULT_LANGUAGE, note, phrase
from otel_loopguard.core.recovery import Remedy

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from otel_loopguard.core.model import Finding, Pattern

KEEP: Final = SummariseTrigger().keep
"""How many of the newest messages stay when the others are left out."""
_WORDS: Final = frozenset(
    {
        Remedy.INJECT_CORRECTION,
        Remedy.APPLY_STATE_LATCH,
        Remedy.FORCE_ACTION_PROMPT,
        Remedy.ACTIVATE_CIRCUIT_BREAKER,
        Remedy.CHUNK_RESULT,
        Remedy.STOP_CHAIN,
    }
)
"""What a word to the model is enough for, whatever else the request holds."""


class Scene(NamedTuple):
    """What there is in a request to a model. It holds content, and lives for one call.

    Attributes:
        objective: what the run is for; empty if unknown.
        constraints: what it has to keep to, one a line; empty if unknown.
        tools: the tools that are offered, each with the names of its parameters.
        asked: the tools that the model last asked for.
        takes_words: whether a text can be added.
        takes_final: whether calls can be forbidden.
        is_warm: whether it has a temperature that can be lowered.
        is_whole: whether it holds the whole history, so that a part can be left out.
    """

    objective: str = ""
    constraints: str = ""
    tools: Mapping[str, Collection[str]] = {}
    asked: tuple[str, ...] = ()
    takes_words: bool = False
    takes_final: bool = False
    is_warm: bool = False
    is_whole: bool = False


class Change(NamedTuple):
    """What is changed in a copy of a request.

    Attributes:
        text: what is added at its end.
        final: whether the model may call no tool.
        cools: whether its temperature is lowered.
        keep: how many of the newest messages stay beside what the user asked; None for all.
        shortens: whether long results are given in their first part only.
    """

    text: str
    final: bool = False
    cools: bool = False
    keep: int | None = None
    shortens: bool = False


def possible(scene: Scene, *, asks: bool = False) -> frozenset[Remedy]:
    """What can be done about a loop in a request; with `asks`, a human can be asked before it."""
    human = frozenset({Remedy.ESCALATE_TO_HUMAN} if asks else ())
    if not scene.takes_words:
        return human
    more = {
        Remedy.INJECT_OBJECTIVE_ANCHOR: scene.objective,
        Remedy.REINJECT_CONSTRAINTS: scene.constraints,
        Remedy.INJECT_TOOL_SCHEMA: scene.tools,
        Remedy.FORCE_FINAL_ANSWER: scene.takes_final,
        Remedy.LOWER_TEMPERATURE: scene.is_warm,
        Remedy.SUMMARISE_CONTEXT: scene.is_whole,
        Remedy.RESET_CONTEXT: scene.is_whole,
    }
    return human.union(_WORDS, (remedy for remedy, there in more.items() if there))


def change_for(
    remedy: Remedy,
    finding: Finding,
    scene: Scene,
    *,
    language: str = DEFAULT_LANGUAGE,
    templates: Mapping[Pattern, str] | None = None,
) -> Change:
    """What a rung changes in a request: always a word to the model, and what goes with it.

    Args:
        remedy: what is done.
        finding: the loop.
        scene: the request.
        language: of the texts: en or de.
        templates: the application's own texts, by pattern.
    """
    values = {
        "objective": scene.objective,
        "constraints": scene.constraints,
        "schema": _schema(finding, scene, language) if scene.tools else "",
    }
    known = {name: value for name, value in values.items() if value}
    text = note(finding, language=language, templates=templates, **known)
    final = remedy is Remedy.FORCE_FINAL_ANSWER
    keep = {Remedy.SUMMARISE_CONTEXT: KEEP, Remedy.RESET_CONTEXT: 0}.get(remedy)
    if keep is not None and scene.objective and scene.objective not in text:
        text = f"{text}\n{ObjectiveAnchor(scene.objective).text(language)}"
    return Change(
        f"{text} {phrase('final', language)}" if final else text,
        final,
        remedy is Remedy.LOWER_TEMPERATURE,
        keep,
        remedy is Remedy.CHUNK_RESULT,
    )


def _schema(finding: Finding, scene: Scene, language: str) -> str:
    """What the tool that was called takes, or what there is instead of it."""
    unknown = [name for name in scene.asked if name not in scene.tools]
    name = next(iter(unknown or scene.asked), finding.action or "")
    return tool_schema_reminder(name, scene.tools, language)
