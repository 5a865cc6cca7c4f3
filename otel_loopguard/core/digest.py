"""From a sighting to a step: its digests, and what is read in its content before that is let go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from otel_loopguard.core.gist import gist_of
from otel_loopguard.core.handed import HANDS_OVER, handed_over
from otel_loopguard.core.model import MISSING, Kind, Outcome, Sighting, Step
from otel_loopguard.core.outcome import classify, of_text
from otel_loopguard.core.phrases import times_asked
from otel_loopguard.core.returned import compare
from otel_loopguard.core.said import CUT, echoed, said_by
from otel_loopguard.core.sizes import BARE, SHORT
from otel_loopguard.core.tuples import make

if TYPE_CHECKING:
    from otel_loopguard.core.episode import Episode
    from otel_loopguard.core.fingerprint import Fingerprinter
    from otel_loopguard.core.handoffs import Handoffs
    from otel_loopguard.core.said import Said
    from otel_loopguard.core.subject import Subject
    from otel_loopguard.core.traits import Traits

UNKNOWN_TOOL: Final = "unknown_tool"

# Before Python 3.12 it takes long to read a member from its enum.
_AGENT: Final = Kind.AGENT
_TOOL: Final = Kind.TOOL
_COMPACT: Final = Kind.COMPACT
_HANDOFF: Final = Kind.HANDOFF
_MODEL: Final = Kind.MODEL
_USER: Final = Kind.USER
_OK: Final = Outcome.OK
_TRUNCATED: Final = Outcome.TRUNCATED
_UNKNOWN_TOOL: Final = Outcome.UNKNOWN_TOOL
_SHALLOW: Final = False  # a call by keyword takes longer


def digest(  # noqa: C901, PLR0912 - each function less is time
    printer: Fingerprinter,
    episode: Episode | None,
    handoffs: Handoffs | None,
    traits: Traits | None,
    sighting: Sighting,
    agent: str | None,
) -> Step:
    """Reduce a sighting to its digests; the dear parts only where the call comes back.

    Args:
        printer: makes the digests.
        episode: what is known of its run; None before its first step.
        handoffs: what is handed over in that run, or around it.
        traits: what is declared of its tool.
        sighting: what was seen; it may be a plain tuple of the same fields.
        agent: whose run it is, where the sighting names no agent.
    """
    (kind, action, source, args, args_key, result, error, outcome, call_id, round_, its_agent,
     start_ns, end_ns, tokens, span, _, _, _, recorded, _, _,
    ) = sighting  # fmt: skip
    if kind is _AGENT:
        action = f"agent:{action}"
    if args_key is None and args is not MISSING:
        args_key = printer.of_args(args)
    masked_key = None
    if recorded is None:
        result_key, size = printer.of_result(result)
    else:
        result_key, masked_key, size = recorded
    agent = its_agent or agent
    known = kind is not _MODEL and (
        episode is None or episode.knows(action, args_key, result_key, agent)
    )
    length = size or 0
    fresh = not known and length > BARE and args_key is not None and masked_key is None
    if fresh and length > SHORT and kind is _TOOL and handoffs is outcome is error is None:
        # As most often; what follows comes to the same, in more steps.
        outcome = of_text(result, _SHALLOW) if type(result) is str else classify(result)
        if outcome is _OK:
            return Step(
                kind, action, source, args_key, result_key, None, outcome, error, call_id, round_,
                agent, start_ns, end_ns, tokens, size, span, None, None, None,
                None, None, gist_of(printer, action, args, result), traits, None, fresh,
            )  # fmt: skip
    sighting = make(Sighting, sighting)
    words = loose_key = said = target = task = gist = subject = None
    returns = False
    if known:
        at = (action, args_key, result_key, agent)
        returns, masked, words, loose_key = compare(printer, episode, sighting, *at)
        masked_key = masked_key or masked
    is_short = size is None or size <= SHORT
    if outcome is None:
        if type(result) is str and error is None:  # as most often
            outcome = of_text(result, returns or is_short)
        else:
            outcome = classify(result, error, deep=returns or is_short)
    if outcome is _UNKNOWN_TOOL:
        action = UNKNOWN_TOOL  # a name that was not offered is model output: content
    if kind is _TOOL:
        gist = gist_of(printer, action, args, result)
        subject = None if outcome is _OK and not known else _subject_of(printer, args, size)
        if is_short and size is not None:
            said = echoed(sighting)
    else:
        outcome, size, said = _of_other(sighting, outcome, size)
    if handoffs is not None or kind in HANDS_OVER:
        target, task = handed_over(sighting, agent, size, handoffs)
        if kind is _HANDOFF:
            subject = printer.of_subject(args)
    # By position: a name for each takes three times as long.
    return Step(
        kind, action, source, args_key, result_key, masked_key, outcome, error, call_id, round_,
        agent, start_ns, end_ns, tokens, size, span, said, target, task,
        loose_key, words, gist, traits, subject, fresh and outcome is _OK,
    )  # fmt: skip


def _subject_of(printer: Fingerprinter, args: object, size: int | None) -> Subject | None:
    """What a call names, if that is known and so is what it gave back."""
    return None if size is None or args is MISSING else printer.of_subject(args)


def _of_other(
    sighting: Sighting, outcome: Outcome, size: int | None
) -> tuple[Outcome, int | None, Said | None]:
    """Outcome and size of what is no tool's call, and what a model says."""
    if sighting.kind is _COMPACT:
        return outcome, sighting.output_tokens, None
    if sighting.kind is not _MODEL:
        return outcome, times_asked(sighting.args) if sighting.kind is _USER else size, None
    return _TRUNCATED if sighting.finish in CUT else outcome, size, said_by(sighting)
