"""Our own part of a span: what was said of a step when it was seen, taken back from a recording.

Digests, outcome and round say again what the guard knew, whether or not content was captured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from otel_loopguard.core.model import FAILED, MISSING, Kind, Outcome, Recorded, Source
from otel_loopguard.dialects.values import error, name

if TYPE_CHECKING:
    from otel_loopguard.core.model import Sighting
    from otel_loopguard.dialects.view import SpanView

SCOPE: Final = "otel_loopguard"
RUN_ID: Final = "loopguard.run_id"
ITERATION: Final = "loopguard.iteration"
ARGS_FINGERPRINT: Final = "loopguard.args_fingerprint"
RESULT_HASH: Final = "loopguard.result_hash"
RESULT_MASKED_HASH: Final = "loopguard.result_masked_hash"
RESULT_LENGTH: Final = "loopguard.result_length"
OUTCOME: Final = "loopguard.outcome"
DEADLOCK: Final = "loopguard.deadlock"
SPAN_ORIGIN: Final = "loopguard.span_origin"
USER_TURN: Final = "loopguard.user_turn"
MESSAGES: Final = "messages"
ERROR_TYPE: Final = "error.type"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"

_OUTCOMES: Final = {outcome.value: outcome for outcome in Outcome}


def told(view: SpanView, seen: Sighting) -> Sighting | None:
    """What a span shows, completed by what we have said on it; None if we have said nothing.

    Args:
        view: a span that names its run.
        seen: what its dialect reads in it.
    """
    held = view.attributes
    # Without a class of its own, the status may be our mark of a deadlock.
    failure = name(held, ERROR_TYPE) or (None if DEADLOCK in held else error(view))
    source = Source.MESSAGES if held.get(SPAN_ORIGIN) == MESSAGES else Source.HOOK
    if seen.kind is Kind.MODEL:
        silent = seen.result is MISSING and OUTPUT_MESSAGES in held
        return seen._replace(source=source, error=failure, result="" if silent else seen.result)
    outcome = _OUTCOMES.get(str(held.get(OUTCOME)))
    if outcome is None:
        return None
    size, iteration = held.get(RESULT_LENGTH), held.get(ITERATION)
    return seen._replace(
        source=source,
        args=MISSING,  # as for the hook, which knows only their digest when the call is over
        args_key=name(held, ARGS_FINGERPRINT),
        error=failure or ("error" if outcome in FAILED and view.is_error else None),
        outcome=outcome,
        round=str(iteration) if seen.kind is Kind.TOOL and iteration is not None else None,
        recorded=Recorded(
            name(held, RESULT_HASH),
            name(held, RESULT_MASKED_HASH),
            size if isinstance(size, int) else None,
        ),
    )
