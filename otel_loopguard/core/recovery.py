"""How to get out of each deadlock: a ladder of what to do, from the mildest on. Data, no code."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from otel_loopguard.core.model import Pattern, Word

if TYPE_CHECKING:
    from collections.abc import Mapping
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


BY_NOTE: Final = frozenset(
    {
        Remedy.INJECT_CORRECTION,
        Remedy.APPLY_STATE_LATCH,
        Remedy.ACTIVATE_CIRCUIT_BREAKER,
        Remedy.STOP_CHAIN,
    }
)
"""What it amounts to when a call is not made and the model is told why."""


class Climb(NamedTuple):
    """What is done now, and what came before it on the ladder but cannot be done here."""

    rung: Rung
    skipped: tuple[Remedy, ...] = ()


def climb(pattern: Pattern, tried: int, can: AbstractSet[Remedy], *, asks: bool = False) -> Climb:
    """The rung to take when `tried` rungs have not helped.

    Args:
        pattern: the deadlock.
        tried: how many rungs were taken already.
        can: what can be done here; the end of the run always can.
        asks: whether a human is to be asked before the run is ended: where what the loop does
            cannot be undone.
    """
    skipped: list[Remedy] = []
    for rung in LADDERS[pattern][:-1]:
        if rung.remedy is Remedy.ESCALATE_TO_HUMAN and not asks:
            continue
        if rung.remedy not in can:
            skipped.append(rung.remedy)
        elif tried == 0:
            return Climb(rung, tuple(skipped))
        else:
            tried -= 1
    return Climb(LADDERS[pattern][-1], tuple(skipped))


def taken(pattern: Pattern, *, halts: bool, asks: bool = False) -> Climb:
    """What holding a call back is on the ladder: a note to the model, or the end of the run.

    Args:
        pattern: the deadlock.
        halts: whether the run is ended.
        asks: as for `climb`.
    """
    if halts:
        return climb(pattern, len(LADDERS[pattern]), BY_NOTE, asks=asks)
    first = climb(pattern, 0, BY_NOTE, asks=asks)
    if first.rung.level is Level.STEER:
        return first
    return Climb(Rung(Level.STEER, Remedy.INJECT_CORRECTION), first.skipped)
