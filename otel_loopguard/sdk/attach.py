"""Put our processor on the application's provider, as soon as there is one that takes it."""

from __future__ import annotations

import inspect
import logging
import threading
from typing import TYPE_CHECKING

from opentelemetry import trace
from opentelemetry.sdk.resources import SERVICE_NAME, Resource

from otel_loopguard.sdk.processor import LoopGuardSpanProcessor

if TYPE_CHECKING:
    from collections.abc import Callable

    from otel_loopguard.sdk.pipeline import Pipeline

logger = logging.getLogger("otel_loopguard")


class Attachment:
    """The one processor of a pipeline, and whether it is on a provider yet."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._processor: LoopGuardSpanProcessor | None = None
        self._lock = threading.Lock()
        self._settled = False

    def ensure(self) -> None:
        """Attach if that is possible by now; costs one comparison once it is settled."""
        if self._settled:
            return
        with self._lock:
            if not self._settled:
                self._attach(self._provider())

    def service_name(self) -> str | None:
        """The provider's `service.name`, if somebody chose one."""
        resource = getattr(self._provider(), "resource", None)
        if not isinstance(resource, Resource):
            return None
        name = resource.attributes.get(SERVICE_NAME)
        return name if isinstance(name, str) and not name.startswith("unknown_service") else None

    def detach(self) -> None:
        """Make the processor inert: an SDK has no way to take one off."""
        if self._processor is not None:
            self._processor.shutdown()

    def _provider(self) -> object:
        return self._pipeline.tracer_provider or trace.get_tracer_provider()

    def _attach(self, provider: object) -> None:
        if isinstance(provider, trace.ProxyTracerProvider):
            return  # the application has not set its provider yet
        self._settled = True
        add: Callable[..., None] | None = getattr(provider, "add_span_processor", None)
        if add is None:
            logger.warning(
                "otel_loopguard: no OpenTelemetry SDK is set up (the tracer provider is %s), so "
                'nothing can be exported. Install it with: pip install "otel-loopguard[auto]" and '
                "start the program with opentelemetry-instrument",
                type(provider).__name__,
            )
            return
        self._processor = LoopGuardSpanProcessor(pipeline=self._pipeline)
        if "replace_default_processor" in inspect.signature(add).parameters:
            add(self._processor, replace_default_processor=False)
        else:
            add(self._processor)
