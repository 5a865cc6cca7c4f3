"""The instrumentor that `opentelemetry-instrument` loads, and `instrument()` for everybody else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from opentelemetry.instrumentation.instrumentor import BaseInstrumentor

from otel_loopguard.instrumentation import wiring
from otel_loopguard.instrumentation.table import Tables
from otel_loopguard.runtime import guarded
from otel_loopguard.sdk.declared import is_enabled
from otel_loopguard.sdk.providers import Providers
from otel_loopguard.settings import from_env

if TYPE_CHECKING:
    from collections.abc import Collection

FRAMEWORKS: Final = {
    "openai": ("openai",),
    "anthropic": ("anthropic",),
    "langchain": ("langchain_core",),
    "langgraph": ("langgraph.pregel", "langgraph.prebuilt"),
}
"""Each framework that is hooked, by the module here that has its table, and its packages."""


class LoopGuardInstrumentor(BaseInstrumentor):
    """Watches every supported framework that the application imports. Idempotent; never raises."""

    _tables = Tables({f"{__name__}.{name}": packages for name, packages in FRAMEWORKS.items()})

    def instrumentation_dependencies(self) -> Collection[str]:
        """None: a framework that is not installed is never imported and never hooked."""
        return ()

    def hooked(self, framework: str) -> int:
        """How many functions of a framework (a key of `FRAMEWORKS`) are wrapped by now."""
        return self._tables.count(f"{__name__}.{framework}")

    def _instrument(self, **kwargs: Any) -> None:
        _start(self._tables, kwargs)

    def _uninstrument(self, **kwargs: Any) -> None:
        self._tables.undo()
        wiring.disconnect()


@guarded("instrument")
def _start(tables: Tables, options: dict[str, Any]) -> None:
    given = [options.pop(f"{signal}_provider", None) for signal in ("tracer", "meter", "logger")]
    settings = from_env(**options)
    if settings.disabled or not is_enabled():
        wiring.disconnect()
        return
    tables.apply(wiring.connect(settings, Providers(*given)))


def instrument(**options: Any) -> None:
    """Watch every supported framework, for programs that set up their own SDK.

    Args:
        **options: `tracer_provider`, `meter_provider` and `logger_provider` (the global ones by
            default), and any setting by its lower-case name, as `hard_loop_warning=4`; these win
            over the environment. What is not valid is logged and left at its default.
    """
    LoopGuardInstrumentor().instrument(**options)


def uninstrument() -> None:
    """Take every hook off again and end the spans that are open."""
    LoopGuardInstrumentor().uninstrument()
