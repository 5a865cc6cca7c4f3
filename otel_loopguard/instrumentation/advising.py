"""A request to a model before it is sent: as it is, changed, or not sent at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from otel_loopguard.core.action import Action
from otel_loopguard.core.decision import DeadlockError, Verdict
from otel_loopguard.core.model import Pattern
from otel_loopguard.instrumentation.asking import Asked
from otel_loopguard.instrumentation.held import Held
from otel_loopguard.runtime import guarded
from otel_loopguard.sdk.scope import brief_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from otel_loopguard.breaking.brief import Brief
    from otel_loopguard.breaking.counsel import Change, Scene
    from otel_loopguard.core.decision import Decision
    from otel_loopguard.core.recovery import Remedy
    from otel_loopguard.instrumentation.models import ModelCall
    from otel_loopguard.instrumentation.wiring import Wiring
    from otel_loopguard.settings import Settings

_ACTS = (Action.NUDGE, Action.BREAK)


class Draft(Protocol):
    """A request that may be changed.

    Attributes:
        scene: what there is in it.
        goes_on: whether it goes on with a conversation; one that begins is no part of a loop.
    """

    scene: Scene
    goes_on: bool

    def changed(self, change: Change, /) -> Any:
        """A copy of it with a change."""
        ...


@guarded("advice on a request")
def advised(wired: Wiring, call: ModelCall, make: Callable[[Brief | None, str], Draft]) -> Any:
    """What is sent instead of a request; None to send it as it is.

    Args:
        wired: where it is told.
        call: the model call that begins.
        make: makes the draft of the request; only asked where the run is in a loop.

    Returns:
        What `Draft.changed` gives; `Held` where the run is stopped and nothing is sent, or a human
        is to say whether it is.
    """
    pipeline, run = wired.pipeline, call.run
    if not run.id or not pipeline.guard.decides:
        return None
    settings, brief, drafts = pipeline.settings, brief_of(run), list["Draft"]()

    asker = pipeline.asker(run)

    def can() -> frozenset[Remedy] | None:
        from otel_loopguard.breaking.counsel import possible  # noqa: PLC0415 - seldom needed

        drafts.append(make(brief, settings.note_language))
        scene = drafts[0].scene
        return possible(scene, asks=asker is not None) if drafts[0].goes_on else None

    decision = pipeline.guard.advise(run.id, can, asks=asker is not None)
    if decision.verdict is Verdict.GO:
        return _reminded(call, make, brief, settings)
    if decision.shadow:
        call.advise(decision)
        return None
    if decision.verdict is Verdict.HALT:
        return _stopped(wired, call, decision)
    if asker is not None and decision.verdict is Verdict.ASK and decision.finding is not None:
        return Asked(wired, call, decision, decision.finding, asker)
    changed = drafts[0].changed(_change(decision, drafts[0], settings))
    call.advise(decision)
    return changed


def _change(decision: Decision, draft: Draft, settings: Settings) -> Change:
    from otel_loopguard.breaking.counsel import change_for  # noqa: PLC0415 - seldom needed

    finding, climb = decision.finding, decision.climb
    if finding is None or climb is None:
        raise TypeError("a decision to act has a finding and a rung")
    return change_for(
        climb.rung.remedy,
        finding,
        draft.scene,
        language=settings.note_language,
        templates=settings.notes,
    )


def _stopped(wired: Wiring, call: ModelCall, decision: Decision) -> Held | None:
    if decision.finding is None:
        return None
    error = DeadlockError(decision.finding, decision.finding_id, call.run.id)
    call.hold(decision)
    wired.stop(call.run, error)
    return Held(None, error)


def _reminded(
    call: ModelCall,
    make: Callable[[Brief | None, str], Draft],
    brief: Brief | None,
    settings: Settings,
) -> Any:
    """The request with the constraints said again, where that is due."""
    mode = (settings.actions or {}).get(Pattern.CONSTRAINT_DRIFT, settings.action)
    if brief is None or brief.constraints is None or mode not in _ACTS:
        return None
    episode = call.pipeline.guard.peek(call.run.id)
    language = settings.note_language
    due = episode and brief.constraints.due(episode.iteration, language)
    draft = make(brief, language) if due else None
    if not due or draft is None or not draft.scene.takes_words:
        return None
    from otel_loopguard.breaking.counsel import Change  # noqa: PLC0415 - seldom needed

    changed = draft.changed(Change(due))
    call.remind()
    return changed
