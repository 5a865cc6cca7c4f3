"""What a model is told about a call that is not made for another reason than a loop of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from otel_loopguard.core.decision import Why
from otel_loopguard.core.notes import DEFAULT_LANGUAGE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from otel_loopguard.core.model import Finding

_TEXTS: Final[Mapping[str, Mapping[Why, str]]] = {
    "en": {
        Why.LIMIT: "This call was not made: {tool} was called {often} with these arguments, which "
        "is as often as it may be. Answer with what you have, or make a different call.",
        Why.UNASKED: "This call was not made: what it does cannot be undone, and a person would "
        "have to allow it, whom nobody can ask from here. Say so, or do something else.",
        Why.REFUSED: "This call was not made: a person was asked, and did not allow it. Do not try "
        "it again. Say what was not done, or do something else.",
    },
    "de": {
        Why.LIMIT: "Dieser Aufruf wurde nicht ausgeführt: {tool} wurde {often} mit diesen "
        "Argumenten aufgerufen, öfter darf es nicht sein. Antworte mit dem, was vorliegt, oder "
        "rufe etwas anderes auf.",
        Why.UNASKED: "Dieser Aufruf wurde nicht ausgeführt: Was er tut, ist nicht rückgängig zu "
        "machen, und ein Mensch müsste ihn erlauben, den von hier aus niemand fragen kann. Sage "
        "das, oder tue etwas anderes.",
        Why.REFUSED: "Dieser Aufruf wurde nicht ausgeführt: Ein Mensch wurde gefragt und hat ihn "
        "nicht erlaubt. Versuche es nicht noch einmal. Sage, was nicht getan wurde, oder tue "
        "etwas anderes.",
    },
}

_OFTEN: Final[Mapping[str, tuple[str, str]]] = {"en": ("once", "times"), "de": ("einmal", "Mal")}


def why_note(finding: Finding, why: Why, *, language: str = DEFAULT_LANGUAGE) -> str | None:
    """What to tell the model; None where the loop itself is the reason.

    Args:
        finding: the loop.
        why: why the call is not made.
        language: an unknown one is taken for English.
    """
    template = _TEXTS.get(language, _TEXTS[DEFAULT_LANGUAGE]).get(why)
    if template is None:
        return None
    once, times = _OFTEN.get(language, _OFTEN[DEFAULT_LANGUAGE])
    often = once if finding.repeats == 1 else f"{finding.repeats} {times}"
    return template.replace("{often}", often).replace("{tool}", finding.action or "a tool")
