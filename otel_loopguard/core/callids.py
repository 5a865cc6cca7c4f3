"""Which calls were seen already: one call can show up several times, and can run several times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from otel_loopguard.core.records import newest

if TYPE_CHECKING:
    from otel_loopguard.core.model import Source, Step

MAX_IDS: Final = 256


Claim = Literal["new", "again", "seen"]
"""What a step is to the call whose id it carries: a call of its own, another attempt at a call that
is known, or a call that somebody else has shown already."""


class _Known(NamedTuple):
    source: Source
    action: str
    args_key: str | None
    round: str | None


class CallIds:
    """The ids of the calls of the newest two model responses.

    Some providers give the same ids out again with each response, so an id stands for one call only
    until the model responds again. A second source may be late by one response.
    """

    __slots__ = ("_newer", "_older")

    def __init__(self) -> None:
        self._newer: dict[str, _Known] = {}
        self._older: dict[str, _Known] = {}

    def model_responded(self) -> None:
        """From here on ids may stand for other calls."""
        self._newer, self._older = {}, self._newer

    def condense(self, limit: int) -> None:
        """Forget all but the newest ids."""
        self._newer, self._older = newest(self._newer, limit), {}

    def claim(self, step: Step, call_id: str) -> Claim:
        """Say what the step with this id is to the calls before it, and remember it."""
        newer = self._newer
        known = newer.get(call_id)
        claim: Claim = "new"
        if known is not None:
            claim = _compare(known, step)
        elif self._older and _is_late(self._older.get(call_id), step):
            claim = "seen"
        if claim == "seen":
            return claim
        if known is not None:
            del newer[call_id]  # to the young end
        newer[call_id] = _Known(step.source, step.action, step.args_key, step.round)
        if len(newer) > MAX_IDS:
            del newer[next(iter(newer))]
        return claim


def _is_late(known: _Known | None, step: Step) -> bool:
    return known is not None and known.source is not step.source and known.action == step.action


def _compare(known: _Known, step: Step) -> Claim:
    if known.source is not step.source:
        return "seen"
    other_round = _differ(known.round, step.round)
    if other_round or _differ(known.args_key, step.args_key) or known.action != step.action:
        return "new"
    return "again"


def _differ(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and one != other
