"""otel_loopguard: catches looping LLM agents and puts the deadlock on the OpenTelemetry trace."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from otel_loopguard.breaking.guarded import Done
    from otel_loopguard.core.decision import DeadlockError
    from otel_loopguard.instrumentation import LoopGuardInstrumentor, instrument, uninstrument
    from otel_loopguard.instrumentation.api import agent, run, tool
    from otel_loopguard.instrumentation.dispatch import call_tool, held
    from otel_loopguard.instrumentation.guarded_run import run_guarded, run_guarded_async
    from otel_loopguard.sdk.processor import LoopGuardSpanProcessor
    from otel_loopguard.settings import Settings

__all__ = [
    "DeadlockError",
    "Done",
    "LoopGuardInstrumentor",
    "LoopGuardSpanProcessor",
    "Settings",
    "agent",
    "call_tool",
    "held",
    "instrument",
    "run",
    "run_guarded",
    "run_guarded_async",
    "tool",
    "uninstrument",
]

_HOMES: Final = {
    "breaking.guarded": ("Done",),
    "core.decision": ("DeadlockError",),
    "instrumentation": ("LoopGuardInstrumentor", "instrument", "uninstrument"),
    "instrumentation.api": ("agent", "run", "tool"),
    "instrumentation.dispatch": ("call_tool", "held"),
    "instrumentation.guarded_run": ("run_guarded", "run_guarded_async"),
    "sdk.processor": ("LoopGuardSpanProcessor",),
    "settings": ("Settings",),
}
"""Where the public names live: what a program does not use is not loaded with the package."""


def __getattr__(name: str) -> object:
    if name == "__version__":
        home, name = "sdk.attributes", "VERSION"
    else:
        home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
