"""How to get out of each deadlock: a ladder of what to do, from the mildest on. Data, no code."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from otel_loopguard.core.model import Pattern, Word

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from collections.abc import Set as AbstractSet


class Level(IntEnum):
    """How far a recovery goes; the value is what `loopguard.recovery_level` says."""

    STEER = 1  # a word to the model in place of the call
    RESET = 2  # the model starts afresh
    STOP = 3  # a human decides, or the run ends with what there is


class Remedy(Word):
    """What is done; the value is what `loopguard.intervention` says."""

    INJECT_CORRECTION = "inject_correction"
    APPLY_STATE_LATCH = "apply_state_latch"
    INJECT_OBJECTIVE_ANCHOR = "inject_objective_anchor"
    FORCE_ACTION_PROMPT = "force_action_prompt"
    INJECT_TOOL_SCHEMA = "inject_tool_schema"
    ACTIVATE_CIRCUIT_BREAKER = "activate_circuit_breaker"
    CHUNK_RESULT = "chunk_result"
    REINJECT_CONSTRAINTS = "reinject_constraints"
    STOP_CHAIN = "stop_chain"
    FORCE_FINAL_ANSWER = "force_final_answer"
    SUMMARISE_CONTEXT = "summarise_context"
    RESET_CONTEXT = "reset_context"
    LOWER_TEMPERATURE = "lower_temperature"
    ESCALATE_TO_HUMAN = "escalate_to_human"
    END_RUN = "end_run"


class Rung(NamedTuple):
    """One step of a ladder."""

    level: Level
    remedy: Remedy


_STOPS: Final = (
    Rung(Level.STOP, Remedy.ESCALATE_TO_HUMAN),
    Rung(Level.STOP, Remedy.END_RUN),
)


def _ladder(first: Remedy, *resets: Remedy) -> tuple[Rung, ...]:
    """A word to the model, then the resets that may help, then a human or the end."""
    steer = Rung(Level.STEER, first)
    return (steer, *(Rung(Level.RESET, each) for each in resets), *_STOPS)


LADDERS: Final[Mapping[Pattern, tuple[Rung, ...]]] = {
    Pattern.HARD_LOOP: _ladder(Remedy.INJECT_CORRECTION, Remedy.FORCE_FINAL_ANSWER),
    Pattern.TOOL_OSCILLATION: _ladder(Remedy.APPLY_STATE_LATCH, Remedy.SUMMARISE_CONTEXT),
    Pattern.RESULT_STAGNATION: _ladder(Remedy.INJECT_CORRECTION, Remedy.FORCE_FINAL_ANSWER),
    Pattern.RETRY_STORM: _ladder(Remedy.ACTIVATE_CIRCUIT_BREAKER, Remedy.FORCE_FINAL_ANSWER),
    Pattern.TOOL_HALLUCINATION: _ladder(Remedy.INJECT_TOOL_SCHEMA, Remedy.LOWER_TEMPERATURE),
    Pattern.GUARDRAIL_LOOP: _STOPS,
    Pattern.REFLECTION_PARALYSIS: _ladder(Remedy.FORCE_ACTION_PROMPT, Remedy.LOWER_TEMPERATURE),
    Pattern.CONTEXT_ROT: _ladder(Remedy.INJECT_OBJECTIVE_ANCHOR, Remedy.SUMMARISE_CONTEXT),
    Pattern.TRUNCATION_LOOP: _ladder(Remedy.CHUNK_RESULT, Remedy.SUMMARISE_CONTEXT),
    Pattern.CONSTRAINT_DRIFT: _ladder(Remedy.REINJECT_CONSTRAINTS, Remedy.RESET_CONTEXT),
    Pattern.DELEGATION_LOOP: _ladder(Remedy.STOP_CHAIN, Remedy.SUMMARISE_CONTEXT),
    Pattern.ITERATION_BUDGET: _ladder(Remedy.FORCE_FINAL_ANSWER),
}
"""For each pattern what to try, in order."""


_WAIT: Final = "wait_longer"
_SUGGESTED: Final[Mapping[Pattern, str]] = {
    **{pattern: ladder[0].remedy.value for pattern, ladder in LADDERS.items()},
    Pattern.CONSTRAINT_DRIFT: Remedy.INJECT_OBJECTIVE_ANCHOR.value,
    Pattern.DELEGATION_LOOP: "stop_delegation",
}
"""What `loopguard.suggested_action` says: the first rung, save where it always said otherwise."""


def suggested(pattern: Pattern, *, waits: bool = False) -> str:
    """What helps first, as a finding says it; `waits` if what goes round only waits."""
    return _WAIT if waits else _SUGGESTED[pattern]


BY_NOTE: Final = frozenset(
    {
        Remedy.INJECT_CORRECTION,
        Remedy.APPLY_STATE_LATCH,
        Remedy.ACTIVATE_CIRCUIT_BREAKER,
        Remedy.STOP_CHAIN,
    }
)
"""What it amounts to when a call is not made and the model is told why."""
HUMAN: Final = Rung(Level.STOP, Remedy.ESCALATE_TO_HUMAN)
END: Final = Rung(Level.STOP, Remedy.END_RUN)
CORRECTION: Final = Rung(Level.STEER, Remedy.INJECT_CORRECTION)
"""What a mere word to the model is, on a ladder that begins with something else."""


class Climb(NamedTuple):
    """What is done now.

    Attributes:
        rung: the rung that is taken.
        skipped: what stands below it on the ladder and was never done, since it cannot be here.
        passed: how many rungs of the ladder are left behind with it, itself included.
    """

    rung: Rung
    skipped: tuple[Remedy, ...] = ()
    passed: int = 0


def climb(
    pattern: Pattern,
    passed: int,
    can: AbstractSet[Remedy],
    *,
    tried: Collection[Remedy] = (),
    asks: bool = False,
) -> Climb:
    """The rung to take next.

    Args:
        pattern: the deadlock.
        passed: how many rungs are left behind.
        can: what can be done here; the end of the run always can.
        tried: what was done already.
        asks: whether a human is to be asked before the run is ended: where what the loop does
            cannot be undone.
    """
    ladder = LADDERS[pattern]
    for number, rung in enumerate(ladder[passed:-1], passed + 1):
        if rung.remedy in can and (asks or rung.remedy is not Remedy.ESCALATE_TO_HUMAN):
            return Climb(rung, missed(pattern, number - 1, tried, asks=asks), number)
    return Climb(END, missed(pattern, None, tried, asks=asks), len(ladder))


def missed(
    pattern: Pattern, below: int | None, tried: Collection[Remedy], *, asks: bool = False
) -> tuple[Remedy, ...]:
    """What was never done of the rungs below one (by its place; None for the last)."""
    rungs = LADDERS[pattern][: -1 if below is None else below]
    return tuple(
        rung.remedy
        for rung in rungs
        if rung.remedy not in tried and (asks or rung.remedy is not Remedy.ESCALATE_TO_HUMAN)
    )


def taken(pattern: Pattern, *, halts: bool) -> Climb:
    """What it is on the ladder to hold a call back, where nothing else was done."""
    return Climb(END, missed(pattern, None, ())) if halts else by_note(pattern)


def by_note(pattern: Pattern, tried: Collection[Remedy] = ()) -> Climb:
    """What it is on the ladder when a call is not made and the model is told why."""
    first = LADDERS[pattern][0]
    if first.remedy in BY_NOTE:
        return Climb(first, (), 1)
    steers = first.level is Level.STEER
    return Climb(CORRECTION, missed(pattern, 1, tried) if steers else ())


def to_human(pattern: Pattern, tried: Collection[Remedy]) -> Climb:
    """Asking a human about a call; what could have been done before that and was not is skipped."""
    place = LADDERS[pattern].index(HUMAN)
    skipped = missed(pattern, place, {*tried, *BY_NOTE})
    return Climb(HUMAN, skipped, place + 1)
