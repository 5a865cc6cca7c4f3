"""The line itself: a sighting goes to the guard, and its answer to the reporter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from otel_loopguard.sdk.daemon import daemon
from otel_loopguard.sdk.report import Reporter

if TYPE_CHECKING:
    from opentelemetry import metrics, trace
    from opentelemetry.context import Context

    from otel_loopguard.core.model import Observation, Sighting
    from otel_loopguard.runtime import Runtime
    from otel_loopguard.sdk.scope import Run


class Pipeline:
    """The process's guard together with the providers that hear of its findings.

    Args:
        runtime: settings and guard.
        tracer_provider: where our spans go; the global one if None.
        meter_provider: where metrics go; the global one if None.
    """

    def __init__(
        self,
        runtime: Runtime,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
    ) -> None:
        self.settings = runtime.settings
        self.guard = runtime.guard
        self.tracer_provider = tracer_provider
        self.reporter = Reporter(runtime.settings, tracer_provider, meter_provider)
        self.tracer = self.reporter.tracer

    def see(
        self,
        run: Run,
        sighting: Sighting,
        span: trace.Span | None,
        *,
        context: Context | None = None,
        conversation_id: str | None = None,
    ) -> Observation:
        """Take one sighting of a run and report what the guard says of it.

        Args:
            run: the run.
            sighting: what was seen.
            span: the span that shows it and ends now; None if it has ended already.
            context: where a marker span hangs if there is no open span.
            conversation_id: the provider's id of the conversation, if known.
        """
        daemon.start()
        seen = self.guard.observe(run.id, sighting, run.agent)
        self.reporter.report(seen, run, span, context=context, conversation_id=conversation_id)
        return seen

    def end_run(self, run: Run, reason: str, *, keep: bool = False) -> None:
        """A run is over: `reason` is answer, closed, error, expired or exit.

        With `keep` what was learned of it is kept for a while: it may be gone on with.
        """
        self.reporter.close(self.guard.end(run.id, reason, keep=keep))

    def expire(self, now_ns: int) -> None:
        """Let go of the runs that fell silent."""
        self.reporter.close(self.guard.expire(now_ns))
