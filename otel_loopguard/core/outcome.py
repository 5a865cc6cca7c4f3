"""What came of a call, told from its result: structure first, words second."""

from __future__ import annotations

from typing import Final

from otel_loopguard.core.model import MISSING, Outcome

_BLANK: Final = frozenset({"", "[]", "{}", "()", "null", "None", '""', "''"})


def classify(value: object, *, error: str | None = None, deep: bool = False) -> Outcome:
    """Returns the kind of a result.

    Args:
        value: the result, or the text of the failure.
        error: the class of the failure; None if there was none.
        deep: also look inside of mappings, JSON text and short texts; else only constant work.
    """
    if error is not None:
        return Outcome.ERROR
    if value is MISSING:
        return Outcome.UNKNOWN
    if value is None or (isinstance(value, str) and value.strip() in _BLANK):
        return Outcome.EMPTY
    return Outcome.ACK if value is True else Outcome.OK
