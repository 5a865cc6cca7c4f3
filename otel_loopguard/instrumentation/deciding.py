"""Whether a tool call is made, as the guard decides: if not, what stands in for it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from otel_loopguard.core.decision import DeadlockError, Verdict, Why
from otel_loopguard.core.notes import held_note
from otel_loopguard.core.whys import why_note
from otel_loopguard.instrumentation.asking import AskedCall
from otel_loopguard.instrumentation.held import Held
from otel_loopguard.runtime import guarded

if TYPE_CHECKING:
    from collections.abc import Callable

    from otel_loopguard.core.decision import Decision
    from otel_loopguard.core.model import Finding
    from otel_loopguard.instrumentation.tools import ToolCall
    from otel_loopguard.instrumentation.wiring import Wiring
    from otel_loopguard.sdk.pipeline import Pipeline
    from otel_loopguard.sdk.scope import Run

_BY_HUMAN: Final = frozenset({Why.UNASKED, Why.REFUSED})


def decided(wired: Wiring, call: ToolCall, instead: Callable[[str], object]) -> ToolCall | Held:
    """The call, or what stands in for it.

    Args:
        wired: where it is told.
        call: the call, which is under way as far as its span is concerned.
        instead: makes what the call gives in place of a result, out of a note to the model.
    """
    pipeline, run = call.pipeline, call.run
    decision = pipeline.decide(run, call.name, call.args_key, call.call_id, call.start_ns)
    finding = decision.finding
    if finding is None:
        return call
    if decision.shadow:
        call.shadow = decision
        return call
    asker = pipeline.asker(run) if decision.verdict is Verdict.ASK else None
    if asker is not None:
        refuse = partial(_refused, pipeline, run, finding, instead)
        return AskedCall(wired, call, decision, finding, asker, refuse)
    held = held_by(pipeline, run, decision, finding, instead)
    if held is None:
        return call
    call.hold(decision)
    if held.error is not None:
        wired.stop(run, held.error)
    return held


def held_by(
    pipeline: Pipeline,
    run: Run,
    decision: Decision,
    finding: Finding,
    instead: Callable[[str], object],
) -> Held | None:
    """What stands in for a call by a decision.

    `instead` is the application's, and may raise. Then it is None: the call is made, unless it
    needs a human's yes.
    """
    if decision.verdict is Verdict.HALT:
        return Held(None, DeadlockError(finding, decision.finding_id, run.id))
    if decision.why in _BY_HUMAN:
        return _refused(pipeline, run, finding, instead, decision)
    return _with_note(pipeline, finding, instead, decision)


def _refused(
    pipeline: Pipeline,
    run: Run,
    finding: Finding,
    instead: Callable[[str], object],
    decision: Decision,
) -> Held:
    held = _with_note(pipeline, finding, instead, decision)
    return held or Held(None, DeadlockError(finding, decision.finding_id, run.id))


@guarded("result of a tool that is not called")
def _with_note(
    pipeline: Pipeline, finding: Finding, instead: Callable[[str], object], decision: Decision
) -> Held:
    settings = pipeline.settings
    language = settings.note_language
    text = why_note(finding, decision.why, language=language)
    text = text or held_note(finding, language=language, templates=settings.notes)
    return Held(instead(text), None)
