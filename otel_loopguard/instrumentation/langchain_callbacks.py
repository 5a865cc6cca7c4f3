"""Which other instrumentations of LangChain are at work: they are callback handlers."""

from __future__ import annotations

from typing import Final

VENDORS: Final = ("opentelemetry.", "openinference.", "traceloop.")
"""Where the handlers come from that open spans of their own for tools, models and agents."""


def shown_by_another() -> bool:
    """Whether another instrumentation will open a span for the call that begins now.

    Those put their handler into each callback manager that is made, so one is made and looked at:
    this is right at once when one of them comes or goes, and costs some microseconds.
    """
    from langchain_core.callbacks import CallbackManager  # noqa: PLC0415 - only where it is used

    manager = CallbackManager([])
    return any(type(handler).__module__.startswith(VENDORS) for handler in manager.handlers)
