"""What a text says by its words, where words may count: short texts, and texts of failures."""

from __future__ import annotations

import re
from typing import Final

from otel_loopguard.core.model import Outcome
from otel_loopguard.core.patterns import Pattern
from otel_loopguard.core.sizes import SHORT
from otel_loopguard.core.words import ACKS, FAILURES, NUMBERS, SAYINGS, THINGS, TIMES

_DIGITS: Final = re.compile(r"\d+")
_MOST: Final = 12  # things that somebody may want one by one
_FAILURE_CHARS: Final = 2_000  # of a failure's text, from its start
_CLASSES: Final = (
    (Outcome.UNKNOWN_TOOL, Pattern(r"(?:Unknown|NoSuch|Missing)Tool|Tool(?:NotFound|Missing)")),
    (
        Outcome.INVALID_ARGS,
        Pattern(r"Validation|JSONDecode|(?:Invalid|Bad)(?:Arg|Param|Input|J)|SchemaError"),
    ),
    (
        Outcome.REFUSED,
        Pattern(r"Permission|Forbidden|Unauthori[sz]ed|Denied|Tripwire|Refus|ContentFilter"),
    ),
    (Outcome.TRUNCATED, Pattern(r"LengthFinish|IncompleteOutput|MaxTokens|Truncat")),
)
_CUT: Final = Pattern(
    r"[\[<(](?=[^\]>)\n]{0,80}(?:truncated|clipped|cut off|omitted))[^\]>)\n]{0,120}[\]>)]"
    r"|(?:output|response|result) (?:was )?truncated\b",
    re.IGNORECASE,
)


def failure_kind(error: str, text: str) -> Outcome:
    """Tells what kind of failure it was from the name of its class, then from its text."""
    name = error.rpartition(".")[2]
    for outcome, pattern in _CLASSES:
        if pattern.search(name):
            return outcome
    return failure_text_kind(text)


def failure_text_kind(text: str) -> Outcome:
    """Tells what kind of failure a text speaks of that is known to be about one."""
    head = text[:_FAILURE_CHARS].lower()
    return next((o for o, pattern in FAILURES if pattern.search(head)), Outcome.ERROR)


def short_text_kind(text: str) -> Outcome:
    """Tells what a short text says as a whole."""
    said = text.strip().lower()
    if is_cut_off(text):
        return Outcome.TRUNCATED
    return next((o for o, pattern in SAYINGS if pattern.search(said)), Outcome.OK)


def times_asked(text: object) -> int:
    """How often a user asks for something, by a number and a word for times.

    Less than 0 is the greatest small number of things that he names: he may want so many, one by
    one. 0 for no number.
    """
    said = text[:_FAILURE_CHARS].lower() if type(text) is str else ""
    if found := TIMES.search(said):
        return _number(found.group())
    return -max((n for n in map(_number, THINGS.findall(said)) if n <= _MOST), default=0)


def _number(text: str) -> int:
    digits = _DIGITS.search(text)
    if digits is not None:
        return int(digits.group())
    return next(number for word, number in NUMBERS.items() if text.startswith(word))


def is_acknowledgement(text: str) -> bool:
    """Whether a short text says nothing but that it is done."""
    return text.strip(" \t\r\n.!").lower() in ACKS or short_text_kind(text) is Outcome.ACK


def is_cut_off(text: str) -> bool:
    """Whether a text says at its end that more was left out."""
    return _CUT.search(text[-SHORT:]) is not None
