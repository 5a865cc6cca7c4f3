"""What a model is told in place of a call that goes on with a loop: short and true.

A template may use `{tool}` and `{count}`: the tool's name, and how often the loop came round. All
else in it stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from otel_loopguard.core.model import Pattern

if TYPE_CHECKING:
    from collections.abc import Mapping

    from otel_loopguard.core.model import Finding

DEFAULT_LANGUAGE: Final = "en"

_ENGLISH: Final[Mapping[Pattern, str]] = {
    Pattern.HARD_LOOP: (
        "This call was not made: {tool} was called {count} times with these arguments and gave the "
        "same result each time. Answer with what you have, or make a different call."
    ),
    Pattern.TOOL_OSCILLATION: (
        "This call was not made: the same cycle of calls came {count} times with the same results. "
        "Keep the present state. Answer with what you have, or do something else."
    ),
    Pattern.RESULT_STAGNATION: (
        "This call was not made: {tool} gave the same result {count} times, whatever its arguments "
        "were. It cannot tell you more. Answer with what you have, or use another tool."
    ),
    Pattern.RETRY_STORM: (
        "This call was not made: {tool} failed {count} times in the same way. Do not call it again "
        "for now. Use another tool, or say what you could not do."
    ),
    Pattern.TRUNCATION_LOOP: (
        "This call was not made: the result of {tool} was cut {count} times. Ask for a smaller "
        "part, or answer with what you have."
    ),
    Pattern.GUARDRAIL_LOOP: (
        "This call was not made: it was turned down before, as were {count} calls in a row. Say "
        "what is not allowed, or do something else."
    ),
    Pattern.TOOL_HALLUCINATION: (
        "This call was not made: {count} calls of {tool} did not fit it. Call it as its schema "
        "says, or answer with what you have."
    ),
    Pattern.ITERATION_BUDGET: (
        "This call was not made: this task has used up its {count} rounds. Answer now with what "
        "you have, and say what is missing."
    ),
    Pattern.DELEGATION_LOOP: (
        "This was not done: the same task was handed on {count} times. Do the task yourself, or "
        "say why it cannot be done."
    ),
}
_GERMAN: Final[Mapping[Pattern, str]] = {
    Pattern.HARD_LOOP: (
        "Dieser Aufruf wurde nicht ausgeführt: {tool} wurde {count} Mal mit diesen Argumenten "
        "aufgerufen und gab jedes Mal dasselbe Ergebnis. Antworte mit dem, was vorliegt, oder rufe "
        "etwas anderes auf."
    ),
    Pattern.TOOL_OSCILLATION: (
        "Dieser Aufruf wurde nicht ausgeführt: Dieselbe Folge von Aufrufen kam {count} Mal mit "
        "denselben Ergebnissen. Lass den jetzigen Zustand bestehen. Antworte mit dem, was vorliegt."
    ),
    Pattern.RESULT_STAGNATION: (
        "Dieser Aufruf wurde nicht ausgeführt: {tool} gab {count} Mal dasselbe Ergebnis, bei "
        "welchen Argumenten auch immer. Antworte mit dem, was vorliegt, oder nimm ein anderes "
        "Werkzeug."
    ),
    Pattern.RETRY_STORM: (
        "Dieser Aufruf wurde nicht ausgeführt: {tool} schlug {count} Mal auf dieselbe Weise fehl. "
        "Nimm ein anderes Werkzeug, oder sage, was nicht möglich war."
    ),
}
_OTHER: Final = (
    "This call was not made: it goes on with a loop that came round {count} times. Answer with "
    "what you have, or do something else."
)
LANGUAGES: Final[Mapping[str, Mapping[Pattern, str]]] = {"en": _ENGLISH, "de": _GERMAN}
"""The templates of each language; what one lacks is said in English."""


def note(
    finding: Finding,
    *,
    language: str = DEFAULT_LANGUAGE,
    templates: Mapping[Pattern, str] | None = None,
) -> str:
    """What to tell the model about a loop.

    Args:
        finding: the loop.
        language: which of `LANGUAGES`; an unknown one is taken for English.
        templates: the application's own, by pattern; they come first.
    """
    ours = LANGUAGES.get(language, _ENGLISH).get(finding.pattern)
    theirs = None if templates is None else templates.get(finding.pattern)
    template = theirs or ours or _ENGLISH.get(finding.pattern, _OTHER)
    tool = finding.action or "a tool"
    return template.replace("{count}", str(finding.repeats)).replace("{tool}", tool)
