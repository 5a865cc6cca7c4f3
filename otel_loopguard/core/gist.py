"""What a call says of its work by its arguments: what part it reads, or what is still to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from otel_loopguard.core.plans import plan_of
from otel_loopguard.core.ranges import extent_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from otel_loopguard.core.fingerprint import Fingerprinter
    from otel_loopguard.core.plans import Plan
    from otel_loopguard.core.ranges import Extent


def gist_of(
    printer: Fingerprinter, action: str, args: object, result: object
) -> Extent | Plan | None:
    """What part a call reads, or the plan that it writes down."""
    given: Any = args
    if type(args) is dict:
        numbers = 0
        values: Iterable[object] = given.values()
        for value in values:
            kind = type(value)
            if kind is int:
                numbers += 1
            elif kind is list:
                break
        else:
            if numbers != 2:
                return None  # as most often: it takes two numbers or a list
    return extent_of(printer, action, given, result) or plan_of(given)
