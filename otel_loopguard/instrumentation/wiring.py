"""What every hook and decorator needs: the pipeline and the conversations of this process."""

from __future__ import annotations

import atexit
import logging
import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from otel_loopguard import runtime
from otel_loopguard.instrumentation.handwritten import Handwritten
from otel_loopguard.runtime import guarded
from otel_loopguard.sdk.attach import Attachment
from otel_loopguard.sdk.daemon import daemon
from otel_loopguard.sdk.pipeline import Pipeline

if TYPE_CHECKING:
    from opentelemetry import metrics, trace

    from otel_loopguard.settings import Settings

logger = logging.getLogger("otel_loopguard")


@dataclass(frozen=True, slots=True)
class Wiring:
    """The pipeline, the conversations, and what ties them to the application's provider."""

    pipeline: Pipeline
    handwritten: Handwritten
    attachment: Attachment

    def close(self) -> None:
        """End what is open and let go of the provider."""
        daemon.forget(self.handwritten.expire)
        self.handwritten.close()
        self.attachment.detach()


_lock = threading.Lock()
_current: Wiring | None = None
_off = False


def connect(
    settings: Settings | None = None,
    tracer_provider: trace.TracerProvider | None = None,
    meter_provider: metrics.MeterProvider | None = None,
) -> Wiring:
    """Wire up the process, or give the wiring that there is."""
    global _current, _off  # noqa: PLW0603 - the process is wired once
    with _lock:
        _off = False
        if _current is None:
            _current = _build(settings, tracer_provider, meter_provider)
        return _current


def _build(
    settings: Settings | None,
    tracer_provider: trace.TracerProvider | None,
    meter_provider: metrics.MeterProvider | None,
) -> Wiring:
    pipeline = Pipeline(runtime.configure(settings), tracer_provider, meter_provider)
    attachment = Attachment(pipeline)
    agent = pipeline.settings.agent_name or attachment.service_name()
    handwritten = Handwritten(pipeline, agent)
    daemon.every_tick(handwritten.expire)
    atexit.register(handwritten.close)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=handwritten.after_fork)
    return Wiring(pipeline, handwritten, attachment)


@guarded("wiring")
def current() -> Wiring | None:
    """The wiring of this process, made from the environment if need be; None when switched off."""
    wiring = _current
    if wiring is None:
        if _off:
            return None
        settings = runtime.get().settings
        if settings.disabled:
            return None
        wiring = connect(settings)
    wiring.attachment.ensure()
    return wiring


def disconnect() -> None:
    """Undo `connect`: hooks and decorators do nothing until the next one."""
    global _current, _off
    with _lock:
        wiring, _current, _off = _current, None, True
    if wiring is not None:
        atexit.unregister(wiring.handwritten.close)
        wiring.close()
        runtime.reset()
