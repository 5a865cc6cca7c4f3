"""What a model is told about a loop that it is in: short and true.

A template may use `{tool}` and `{count}`: the tool's name, and how often the loop came round. Where
the note stands in a request to the model, some may use more: `{objective}`, `{constraints}` and
`{schema}`. All else in a template stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from otel_loopguard.core.model import Pattern

if TYPE_CHECKING:
    from collections.abc import Mapping

    from otel_loopguard.core.model import Finding

    Phrase = Literal[
        "held",
        "final",
        "left_out",
        "calls",
        "schema",
        "objective",
        "constraints",
    ]

DEFAULT_LANGUAGE: Final = "en"

_ENGLISH: Final[Mapping[Pattern, str]] = {
    Pattern.HARD_LOOP: (
        "{tool} was called {count} times with the same arguments and gave the same result each "
        "time. Answer with what you have, or make a different call."
    ),
    Pattern.TOOL_OSCILLATION: (
        "the same cycle of calls came {count} times with the same results. Keep the present state. "
        "Answer with what you have, or do something else."
    ),
    Pattern.RESULT_STAGNATION: (
        "{tool} gave the same result {count} times, whatever its arguments were. It cannot tell "
        "you more. Answer with what you have, or use another tool."
    ),
    Pattern.RETRY_STORM: (
        "{tool} failed {count} times in the same way. Do not call it again for now. Use another "
        "tool, or say what you could not do."
    ),
    Pattern.TOOL_HALLUCINATION: (
        "{count} calls did not fit the tools that there are. {schema} Else answer with what you "
        "have."
    ),
    Pattern.GUARDRAIL_LOOP: (
        "{count} calls in a row were turned down. Do not try it in another way: say what is not "
        "allowed, or do something else."
    ),
    Pattern.REFLECTION_PARALYSIS: (
        "nothing new has come of what you say, {count} times by now. Act: call a tool that brings "
        "something new, or give your final answer."
    ),
    Pattern.CONTEXT_ROT: (
        "the work has come back to where it was {count} times. Your objective: {objective}\n"
        "Answer with what you have, or take the next step that is missing."
    ),
    Pattern.TRUNCATION_LOOP: (
        "{count} answers came out cut off at their limit. Answer in smaller parts, one at a time, "
        "and ask tools for smaller parts."
    ),
    Pattern.CONSTRAINT_DRIFT: (
        "the same plan was written down {count} times and no item of it moved on. Keep to "
        "these:\n{constraints}\nDo the next item now."
    ),
    Pattern.DELEGATION_LOOP: (
        "the same task was handed on {count} times. Do the task yourself, or say why it cannot be "
        "done."
    ),
    Pattern.ITERATION_BUDGET: (
        "this task has used up its {count} rounds. Answer now with what you have, and say what is "
        "missing."
    ),
}
_GERMAN: Final[Mapping[Pattern, str]] = {
    Pattern.HARD_LOOP: (
        "{tool} wurde {count} Mal mit denselben Argumenten aufgerufen und gab jedes Mal dasselbe "
        "Ergebnis. Antworte mit dem, was vorliegt, oder rufe etwas anderes auf."
    ),
    Pattern.TOOL_OSCILLATION: (
        "Dieselbe Folge von Aufrufen kam {count} Mal mit denselben Ergebnissen. Lass den jetzigen "
        "Zustand bestehen. Antworte mit dem, was vorliegt."
    ),
    Pattern.RESULT_STAGNATION: (
        "{tool} gab {count} Mal dasselbe Ergebnis, bei welchen Argumenten auch immer. Antworte mit "
        "dem, was vorliegt, oder nimm ein anderes Werkzeug."
    ),
    Pattern.RETRY_STORM: (
        "{tool} schlug {count} Mal auf dieselbe Weise fehl. Nimm ein anderes Werkzeug, oder sage, "
        "was nicht möglich war."
    ),
    Pattern.TOOL_HALLUCINATION: (
        "{count} Aufrufe passten zu keinem Werkzeug. {schema} Sonst antworte mit dem, was vorliegt."
    ),
    Pattern.GUARDRAIL_LOOP: (
        "{count} Aufrufe in Folge wurden abgelehnt. Versuche es nicht auf andere Weise: Sage, was "
        "nicht erlaubt ist, oder tue etwas anderes."
    ),
    Pattern.REFLECTION_PARALYSIS: (
        "Aus dem Gesagten ergab sich {count} Mal nichts Neues. Handle: Rufe ein Werkzeug auf, das "
        "weiterhilft, oder gib deine endgültige Antwort."
    ),
    Pattern.CONTEXT_ROT: (
        "Die Arbeit kam {count} Mal dahin zurück, wo sie war. Dein Ziel: {objective}\n"
        "Antworte mit dem, was vorliegt, oder tue den nächsten Schritt, der fehlt."
    ),
    Pattern.TRUNCATION_LOOP: (
        "{count} Antworten wurden an ihrer Grenze abgeschnitten. Antworte in kleineren Teilen, "
        "einem nach dem anderen, und verlange von Werkzeugen kleinere Teile."
    ),
    Pattern.CONSTRAINT_DRIFT: (
        "Derselbe Plan wurde {count} Mal aufgeschrieben, und kein Punkt kam voran. Halte dich "
        "daran:\n{constraints}\nTue jetzt den nächsten Punkt."
    ),
    Pattern.DELEGATION_LOOP: (
        "Dieselbe Aufgabe wurde {count} Mal weitergereicht. Erledige sie selbst, oder sage, warum "
        "es nicht geht."
    ),
    Pattern.ITERATION_BUDGET: (
        "Diese Aufgabe hat ihre {count} Runden verbraucht. Antworte jetzt mit dem, was vorliegt, "
        "und sage, was fehlt."
    ),
}
LANGUAGES: Final[Mapping[str, Mapping[Pattern, str]]] = {"en": _ENGLISH, "de": _GERMAN}
"""The templates of each language."""

_PHRASES: Final[Mapping[str, Mapping[Phrase, str]]] = {
    "en": {
        "held": "This call was not made: ",
        "final": "Tools cannot be called any more. Answer now with what you have, and say what is "
        "missing.",
        "left_out": "{count} earlier messages are left out here.",
        "calls": "Calls made in them: {calls}.",
        "schema": "Call a tool as its schema says.",
        "objective": "the task as it was given.",
        "constraints": "what was said at the start.",
    },
    "de": {
        "held": "Dieser Aufruf wurde nicht ausgeführt: ",
        "final": "Werkzeuge können nicht mehr aufgerufen werden. Antworte jetzt mit dem, was "
        "vorliegt, und sage, was fehlt.",
        "left_out": "{count} frühere Nachrichten sind hier weggelassen.",
        "calls": "Darin wurde aufgerufen: {calls}.",
        "schema": "Rufe Werkzeuge so auf, wie ihr Schema es sagt.",
        "objective": "die Aufgabe, wie sie gestellt wurde.",
        "constraints": "was am Anfang gesagt wurde.",
    },
}


def phrase(name: Phrase, language: str = DEFAULT_LANGUAGE, **values: str) -> str:
    """A sentence that is the same for all patterns; an unknown language is taken for English."""
    return _filled(_PHRASES.get(language, _PHRASES[DEFAULT_LANGUAGE])[name], values)


def note(
    finding: Finding,
    *,
    language: str = DEFAULT_LANGUAGE,
    templates: Mapping[Pattern, str] | None = None,
    **values: str,
) -> str:
    """What to tell the model about a loop, in a request to it.

    Args:
        finding: the loop.
        language: which of `LANGUAGES`; an unknown one is taken for English.
        templates: the application's own, by pattern; they come first.
        values: what else a template may use.
    """
    theirs = None if templates is None else templates.get(finding.pattern)
    ours = LANGUAGES.get(language, _ENGLISH)[finding.pattern]
    return _note(finding, theirs or ours[:1].upper() + ours[1:], language, values)


def held_note(
    finding: Finding,
    *,
    language: str = DEFAULT_LANGUAGE,
    templates: Mapping[Pattern, str] | None = None,
) -> str:
    """What to tell the model as the result of a call that was not made; like `note`."""
    theirs = None if templates is None else templates.get(finding.pattern)
    ours = LANGUAGES.get(language, _ENGLISH)[finding.pattern]
    return _note(finding, theirs or phrase("held", language) + ours, language, {})


def _note(finding: Finding, template: str, language: str, values: Mapping[str, str]) -> str:
    vague: tuple[Phrase, ...] = ("schema", "objective", "constraints")
    known = {
        **{name: phrase(name, language) for name in vague},
        "count": str(finding.repeats),
        "tool": finding.action or "a tool",
    }
    return _filled(template, {**known, **values})


def _filled(template: str, values: Mapping[str, str]) -> str:
    """A template with what is known put in, once each: what is put in is no template."""
    text = template.replace("{", "\0{")
    for name, value in values.items():
        text = text.replace(f"\0{{{name}}}", value)
    return text.replace("\0{", "{")
