"""The line itself: a sighting goes to the guard, and its answer to the reporter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from opentelemetry import metrics, trace
from opentelemetry._logs import get_logger_provider

from otel_loopguard.breaking.questions import Asker
from otel_loopguard.core.model import Severity, Sighting
from otel_loopguard.core.tuples import make
from otel_loopguard.runtime import Lazy
from otel_loopguard.sdk import attributes as names
from otel_loopguard.sdk.daemon import daemon
from otel_loopguard.sdk.report import Reporter
from otel_loopguard.sdk.scope import with_outer
from otel_loopguard.settings import Signal

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from otel_loopguard.breaking.questions import Verdict
    from otel_loopguard.core.decision import Decision
    from otel_loopguard.core.guard import Guard
    from otel_loopguard.core.model import Observation, Utterance
    from otel_loopguard.runtime import Runtime
    from otel_loopguard.sdk.providers import Providers
    from otel_loopguard.sdk.scope import Run


class Listener(Protocol):
    """Hears what is seen of one run, and of the runs nested in it.

    Attributes:
        asker: who is asked about irreversible calls in it, and whether it may go on; None for whom
            the settings name.
    """

    asker: Asker | None

    def hear(self, seen: Observation, *, own: bool) -> None:
        """A step was seen; `own` if it is of the run itself."""
        ...


class Pipeline:
    """The process's guard together with the providers that hear of its findings.

    Args:
        runtime: settings and guard.
        providers: where spans, metrics and logs go.

    Attributes:
        listeners: who listens to a run, by its id, while it goes on.
    """

    def __init__(self, runtime: Runtime, providers: Providers) -> None:
        self.settings = settings = runtime.settings
        self.captures = settings.capture_content
        self._runtime = runtime
        self.listeners: dict[str, Listener] = {}
        ask = settings.escalate
        self._asker = None if ask is None else Asker(ask, settings.escalate_timeout_s)
        self.providers = providers
        self.reporter = Reporter(runtime.settings, providers)
        self.tracer = self.reporter.tracer
        daemon.every_tick(self.expire)

    @Lazy
    def guard(self) -> Guard:
        """The process's guard, made when something is first to be judged."""
        return self._runtime.guard

    @property
    def provider(self) -> object:
        """The tracer provider that spans go to as of now, of whatever make."""
        return self.providers.spans

    def see(
        self,
        run: Run,
        sighting: Sighting,
        span: trace.Span | None,
        context: Context | None = None,
        conversation_id: str | None = None,
    ) -> Observation:
        """Take one sighting of a run and report what the guard says of it.

        Args:
            run: the run.
            sighting: what was seen; it may be a plain tuple of the same fields.
            span: the span that shows it and ends now; None if it has ended already.
            context: where a marker span hangs if there is no open span.
            conversation_id: the provider's id of the conversation, if known.
        """
        if not daemon.runs:
            daemon.start()
        if run.parent is not None:
            sighting = make(Sighting, sighting)._replace(parent=run.parent.id)
        seen = self.guard.observe(run.id, sighting, run.agent)
        self.reporter.report(seen, run, span, context, conversation_id)
        if self.listeners:
            for around in with_outer(run):
                listener = self.listeners.get(around.id)
                if listener is not None:
                    listener.hear(seen, own=around is run)
        if seen.utterances and self.settings.flush and any(map(_is_critical, seen.utterances)):
            self._flush()
        return seen

    def asker(self, run: Run) -> Asker | None:
        """Who is asked about a run that is in trouble, if anybody is."""
        if self.listeners:
            for around in with_outer(run):
                listener = self.listeners.get(around.id)
                if listener is not None and listener.asker is not None:
                    return listener.asker
        return self._asker

    def decide(
        self, run: Run, action: str, args_key: str | None, call_id: str | None, at_ns: int
    ) -> Decision:
        """What is to become of a tool call before it is made. See `Guard.decide`."""
        asks = self.asker(run) is not None
        return self.guard.decide(run.id, action, args_key, call_id, at_ns, asks=asks)

    def intervene(
        self,
        run: Run,
        decision: Decision,
        action: str | None,
        span: trace.Span | None,
        *,
        context: Context | None = None,
        answer: Verdict | None = None,
    ) -> None:
        """Report what was decided about a call, or would have been in shadow mode.

        Args:
            run: the run.
            decision: what was decided.
            action: the tool, if it is about one.
            span: the span that shows the call; None if it has ended already.
            context: what the increment of the counter is an example of, without such a span.
            answer: how it ended if a human was asked.
        """
        self.reporter.intervene(decision, run, action, span, context=context, answer=answer)

    def _flush(self) -> None:
        """Have what tells exported in a moment, when the span has ended: the span first."""
        providers = [self.provider]
        if Signal.METRIC in self.settings.emit:
            providers.append(self.providers.meter or metrics.get_meter_provider())
        if Signal.LOG in self.settings.emit:
            providers.append(self.providers.logger or get_logger_provider())
        for provider in providers:
            flush = getattr(provider, "force_flush", None)
            if flush is not None:
                daemon.flush(flush, self.settings.flush_timeout_ms)

    def end_run(self, run: Run, reason: str, *, keep: bool = False) -> None:
        """A run is over: `reason` is answer, closed, error, interrupted, expired or exit.

        With `keep` what was learned of it is kept for a while: it may be gone on with. The agent's
        span, if it is ours, is to be ended after this.
        """
        closing = self.guard.end(run.id, reason, keep=keep)
        for ended in closing.ended:
            if not run.foreign and run.span.is_recording():
                run.span.set_attribute(names.ITERATION, ended.iterations)
        self.reporter.close(closing)

    def expire(self, now_ns: int) -> None:
        """Let go of the runs that fell silent."""
        if self._runtime.made is not None:
            self.reporter.close(self.guard.expire(now_ns))

    def close(self) -> None:
        """Nothing more is to be seen."""
        daemon.forget(self.expire)


def _is_critical(spoken: Utterance) -> bool:
    return spoken.finding.severity is Severity.CRITICAL
