"""Put our processor on the application's provider, as soon as there is one that takes it."""

from __future__ import annotations

import atexit
import inspect
import logging
import threading
from typing import TYPE_CHECKING

from opentelemetry import trace
from opentelemetry.sdk.resources import SERVICE_NAME, Resource

from otel_loopguard.sdk.doorman import Doorman

if TYPE_CHECKING:
    from collections.abc import Callable

    from otel_loopguard.sdk.doorman import Make
    from otel_loopguard.sdk.providers import Providers

logger = logging.getLogger("otel_loopguard")


def service_name(provider: object) -> str | None:
    """A tracer provider's `service.name`, if it has one that somebody chose."""
    resource = getattr(provider, "resource", None)
    if not isinstance(resource, Resource):
        return None
    name = resource.attributes.get(SERVICE_NAME)
    return name if isinstance(name, str) and not name.startswith("unknown_service") else None


class Attachment:
    """The one processor of the wiring, and whether it is on a provider yet.

    Attributes:
        settled: whether it is, or never will be.

    Args:
        providers: the provider that counts.
        make: makes the processor, when the first span starts.
        at_exit: ends what is open when the process ends. It is registered after the provider has
            registered its own shutdown, and therefore called before that.
    """

    def __init__(self, providers: Providers, make: Make, at_exit: Callable[[], object]) -> None:
        self._providers = providers
        self._make = make
        self._at_exit = at_exit
        self._processor: Doorman | None = None
        self._lock = threading.RLock()
        self.settled = False
        self._warned = False

    def ensure(self, *, in_use: bool = True) -> None:
        """Attach if that is possible by now.

        Args:
            in_use: False as long as the application may not have come to set its provider.
        """
        with self._lock:
            if not self.settled:
                self._attach(self._providers.spans, in_use=in_use)

    def detach(self) -> None:
        """Make the processor inert: an SDK has no way to take one off."""
        atexit.unregister(self._at_exit)
        if self._processor is not None:
            self._processor.shutdown()

    def after_fork(self) -> None:
        """In a forked child: a lock that another thread held would never be released."""
        self._lock = threading.RLock()

    def _attach(self, provider: object, *, in_use: bool) -> None:
        if isinstance(provider, trace.ProxyTracerProvider):  # no provider is set yet
            if in_use:
                self._warn(provider)
            return
        self.settled = True
        add: Callable[..., None] | None = getattr(provider, "add_span_processor", None)
        if add is None:
            self._warn(provider)
            return
        self._processor = Doorman(self._make)
        if "replace_default_processor" in inspect.signature(add).parameters:
            add(self._processor, replace_default_processor=False)
        else:
            add(self._processor)
        atexit.register(self._at_exit)

    def _warn(self, provider: object) -> None:
        if self._warned:
            return
        self._warned = True
        logger.warning(
            "otel_loopguard: no OpenTelemetry SDK is set up (the tracer provider is %s), so "
            'nothing can be exported. Install it with: pip install "otel-loopguard[auto]" and '
            "start the program with opentelemetry-instrument",
            type(provider).__name__,
        )
