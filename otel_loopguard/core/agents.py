"""What one agent of a run has done by itself: several may act in one run, in turn or at once."""

from __future__ import annotations

from typing import Final, NamedTuple

from otel_loopguard.core.cycles import MAX_PERIOD, Cycles
from otel_loopguard.core.evidence import Evidence

MAX_AGENTS: Final = 16
"""How many agents of a run are told apart; beyond it the one that was silent longest is new."""


class Record(NamedTuple):
    """What is counted of one agent's calls; the others' neither add to it nor interrupt it.

    Attributes:
        evidence, cycles: its calls, and how they repeat.
        last_action, consecutive: its newest tool, and how often in a row it came.
        round, round_end_ns, round_no: its newest round: name, end, and number within the run.
        rounds: how many rounds it has had.
        pending_round: the newest of them that was told to wait.
    """

    evidence: Evidence
    cycles: Cycles
    last_action: str | None = None
    consecutive: int = 0
    round: str | None = None
    round_end_ns: int = 0
    round_no: int = 0
    rounds: int = 0
    pending_round: int = -MAX_PERIOD


def blank() -> Record:
    """The record of an agent that has done nothing yet."""
    return Record(Evidence(), Cycles())
