"""otel_loopguard: catches looping LLM agents and puts the deadlock on the OpenTelemetry trace."""

from __future__ import annotations

from otel_loopguard.instrumentation import LoopGuardInstrumentor, instrument, uninstrument
from otel_loopguard.instrumentation.api import agent, run, tool
from otel_loopguard.sdk.attributes import VERSION
from otel_loopguard.sdk.processor import LoopGuardSpanProcessor
from otel_loopguard.settings import Settings

__version__ = VERSION

__all__ = [
    "LoopGuardInstrumentor",
    "LoopGuardSpanProcessor",
    "Settings",
    "agent",
    "instrument",
    "run",
    "tool",
    "uninstrument",
]
