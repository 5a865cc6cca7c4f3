"""Which tool calls one model response asked for: together they are one round."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_CALLS: Final = 4_096

_rounds: Final[OrderedDict[tuple[str, str], str]] = OrderedDict()


def note(run_id: str, call_ids: Iterable[str | None], round_id: str) -> None:
    """A response of a run asks for these calls."""
    for call_id in call_ids:
        if call_id is not None:
            _rounds.pop((run_id, call_id), None)
            _rounds[run_id, call_id] = round_id
    while len(_rounds) > MAX_CALLS:
        _rounds.popitem(last=False)


def of(run_id: str, call_id: str | None) -> str | None:
    """The round of a call, if its asking was seen."""
    return None if call_id is None else _rounds.get((run_id, call_id))
