"""The detectors: one file per pattern. `BUILTIN` says which there are."""

from __future__ import annotations

from typing import Final

from otel_loopguard.core.detectors.base import Detector
from otel_loopguard.core.detectors.constraint_drift import ConstraintDrift
from otel_loopguard.core.detectors.context_rot import ContextRot
from otel_loopguard.core.detectors.delegation_loop import DelegationLoop
from otel_loopguard.core.detectors.guardrail_loop import GuardrailLoop
from otel_loopguard.core.detectors.hard_loop import HardLoop
from otel_loopguard.core.detectors.iteration_budget import IterationBudget
from otel_loopguard.core.detectors.reflection_paralysis import ReflectionParalysis
from otel_loopguard.core.detectors.result_stagnation import ResultStagnation
from otel_loopguard.core.detectors.retry_storm import RetryStorm
from otel_loopguard.core.detectors.tool_hallucination import ToolHallucination
from otel_loopguard.core.detectors.tool_oscillation import ToolOscillation
from otel_loopguard.core.detectors.truncation_loop import TruncationLoop
from otel_loopguard.core.model import Pattern

__all__ = [
    "BUILTIN",
    "ConstraintDrift",
    "ContextRot",
    "DelegationLoop",
    "Detector",
    "GuardrailLoop",
    "HardLoop",
    "IterationBudget",
    "ReflectionParalysis",
    "ResultStagnation",
    "RetryStorm",
    "ToolHallucination",
    "ToolOscillation",
    "TruncationLoop",
]

Builtin = (
    HardLoop
    | ToolOscillation
    | ResultStagnation
    | RetryStorm
    | ReflectionParalysis
    | TruncationLoop
    | ContextRot
    | ConstraintDrift
    | ToolHallucination
    | GuardrailLoop
    | DelegationLoop
    | IterationBudget
)

BUILTIN: Final[dict[Pattern, type[Builtin]]] = {
    Pattern.HARD_LOOP: HardLoop,
    Pattern.TOOL_OSCILLATION: ToolOscillation,
    Pattern.RESULT_STAGNATION: ResultStagnation,
    Pattern.RETRY_STORM: RetryStorm,
    Pattern.REFLECTION_PARALYSIS: ReflectionParalysis,
    Pattern.TRUNCATION_LOOP: TruncationLoop,
    Pattern.CONTEXT_ROT: ContextRot,
    Pattern.CONSTRAINT_DRIFT: ConstraintDrift,
    Pattern.TOOL_HALLUCINATION: ToolHallucination,
    Pattern.GUARDRAIL_LOOP: GuardrailLoop,
    Pattern.DELEGATION_LOOP: DelegationLoop,
    Pattern.ITERATION_BUDGET: IterationBudget,
}
"""Each pattern that is looked for, and its detector; the fields of a detector are its settings."""
