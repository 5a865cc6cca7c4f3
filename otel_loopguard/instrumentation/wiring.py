"""What every hook and decorator needs: the pipeline and the conversations of this process."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from otel_loopguard import runtime
from otel_loopguard.runtime import Lazy, guarded
from otel_loopguard.sdk.attach import Attachment, service_name
from otel_loopguard.sdk.daemon import daemon
from otel_loopguard.sdk.declared import is_enabled
from otel_loopguard.sdk.providers import GLOBAL, Providers

if TYPE_CHECKING:
    from otel_loopguard.core.decision import DeadlockError
    from otel_loopguard.instrumentation.handwritten import Claim, Handwritten
    from otel_loopguard.runtime import Runtime
    from otel_loopguard.sdk.pipeline import Pipeline
    from otel_loopguard.sdk.processor import LoopGuardSpanProcessor
    from otel_loopguard.sdk.scope import Run
    from otel_loopguard.settings import Settings


class Wiring:
    """The pipeline, the conversations, and what ties them to the application's provider.

    Args:
        runtime: settings and guard.
        providers: where everything is told.
    """

    def __init__(self, runtime: Runtime, providers: Providers) -> None:
        self._runtime = runtime
        self._providers = providers
        self.attachment = Attachment(providers, self._make_processor, self._end_open)
        self.conversations: Handwritten | None = None

    @Lazy
    def pipeline(self) -> Pipeline:
        """Where everything is told; loaded when there is something to tell."""
        from otel_loopguard.sdk.pipeline import Pipeline  # noqa: PLC0415

        return Pipeline(self._runtime, self._providers)

    def _make_processor(self) -> LoopGuardSpanProcessor:
        from otel_loopguard.sdk.processor import LoopGuardSpanProcessor  # noqa: PLC0415

        return LoopGuardSpanProcessor(pipeline=self.pipeline)

    @property
    def handwritten(self) -> Handwritten:
        """The conversations of loops that are written by hand; made when first asked for."""
        with runtime.unforked():
            if self.conversations is None:
                from otel_loopguard.instrumentation.handwritten import (  # noqa: PLC0415
                    Handwritten,
                )

                pipeline = self.pipeline
                agent = pipeline.settings.agent_name or service_name(pipeline.provider)
                self.conversations = Handwritten(pipeline, agent)
            return self.conversations

    def claim(
        self, name: str, args_key: str | None, call_id: str | None, *, shows: bool = True
    ) -> Claim | None:
        """The call of a conversation that an execution belongs to, if it belongs to any."""
        if self.conversations is None:
            return None
        return self.conversations.claim(name, args_key, call_id, shows=shows)

    def stop(self, run: Run, error: DeadlockError) -> None:
        """A run is stopped: if it is a conversation's, its span ends; another's span says so."""
        if run.foreign:
            from otel_loopguard.sdk import attributes as names  # noqa: PLC0415

            run.span.set_attribute(names.END_REASON, error.reason)
        if self.conversations is not None:
            self.conversations.stop(run, error.reason)

    def fits(self, settings: Settings | None, providers: Providers) -> bool:
        """Whether this is a wiring by these settings and providers."""
        ours, known = self._runtime.settings, self._providers
        return settings in (None, ours) and providers in (GLOBAL, known)

    def open(self) -> None:
        """Attach to the provider as soon as there is one, even if no hook is ever called."""
        self.attachment.ensure(in_use=False)
        daemon.every_tick(self._tick)
        daemon.start()

    def close(self) -> None:
        """End what is open and let go of the provider."""
        daemon.forget(self._tick)
        self._end_open()
        self.attachment.detach()
        if "pipeline" in self.__dict__:
            self.pipeline.close()

    def after_fork(self) -> None:
        """In a forked child: other threads are gone, what they held is not."""
        if self.conversations is not None:
            self.conversations.after_fork()
        self.attachment.after_fork()

    def _end_open(self) -> None:
        if self.conversations is not None:
            self.conversations.close()

    def _tick(self, now_ns: int) -> None:
        if self.conversations is not None:
            self.conversations.expire(now_ns)
        self.attachment.ensure(in_use=False)


_lock = threading.RLock()
_current: Wiring | None = None
ready: Wiring | None = None
"""The wiring of this process once it has all that a hook needs."""
_off = False


def connect(settings: Settings | None = None, providers: Providers = GLOBAL) -> Wiring:
    """Wire up the process, or give the wiring that there is if that is what is asked for.

    Args:
        settings: what to put in force; None for what is in force, or the environment.
        providers: where telemetry goes.
    """
    global _current, _off  # noqa: PLW0603 - the process is wired once
    with _lock:
        if _current is not None and not _current.fits(settings, providers):
            disconnect()
        _off = False
        if _current is None:
            _current = _build(settings, providers)
            _current.open()
        return _current


def _build(settings: Settings | None, providers: Providers) -> Wiring:
    return Wiring(runtime.configure(settings), providers)


def current() -> Wiring | None:
    """The wiring of this process, made from the environment if need be; None when switched off."""
    return ready or _ready(_current)


@guarded("wiring")
def _ready(wiring: Wiring | None) -> Wiring | None:
    global ready  # noqa: PLW0603
    if wiring is None:
        if _off:
            return None
        if runtime.get().settings.disabled or not is_enabled():
            disconnect()
            return None
        wiring = connect()
    wiring.attachment.ensure()
    _ = wiring.pipeline.guard  # what cannot be made fails here, behind this boundary
    with _lock:  # nobody disconnects it meanwhile
        if wiring.attachment.settled and wiring is _current:
            ready = wiring
    return wiring


def disconnect() -> None:
    """Undo `connect`: hooks and decorators do nothing until the next one."""
    global _current, _off, ready
    with _lock:
        wiring, _current, ready, _off = _current, None, None, True
    if wiring is not None:
        wiring.close()
        runtime.reset()


def _after_fork() -> None:
    global _lock  # noqa: PLW0603
    _lock = threading.RLock()
    if _current is not None:
        _current.after_fork()


if hasattr(os, "register_at_fork"):  # pragma: no branch - not on Windows
    os.register_at_fork(after_in_child=_after_fork)
