"""The metrics: what the guard found, counted under names of which there are never too many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from opentelemetry import metrics

from otel_loopguard.runtime import unforked
from otel_loopguard.sdk import attributes as names
from otel_loopguard.settings import Signal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opentelemetry.context import Context

    from otel_loopguard.core.model import RunEnd, Stuck, StuckChange, Utterance
    from otel_loopguard.settings import Settings

OTHER: Final = "other"
"""The agents whose names came when there were enough."""
MAX_FINDINGS: Final = 1_000
"""Of how many findings it is known what has been counted as wasted."""


class Meters:
    """Counts what is found.

    Args:
        settings: whether to, and how many agents to tell apart.
        provider: where it goes; the global provider if None.
    """

    def __init__(self, settings: Settings, provider: metrics.MeterProvider | None) -> None:
        if Signal.METRIC in settings.emit:
            meter = metrics.get_meter(names.SCOPE, names.VERSION, provider)
        else:
            meter = metrics.NoOpMeter(names.SCOPE)
        self._deadlocks = meter.create_counter(
            "loopguard.deadlocks", "{event}", "Deadlock events: one for each time a finding speaks"
        )
        self._stuck = meter.create_up_down_counter(
            "loopguard.stuck_runs", "{run}", "Runs that are stuck right now, each at its worst"
        )
        self._wasted = meter.create_counter(
            "loopguard.wasted_tokens", "{token}", "Tokens that loops had cost when last reported"
        )
        self._iterations = meter.create_histogram(
            "loopguard.iterations", "{iteration}", "Tool rounds that a run took"
        )
        self._interventions = meter.create_counter(
            "loopguard.interventions", "{intervention}", "Times that a loop was acted on"
        )
        self._max_agents = settings.max_agent_names
        self._agents: set[str] = set()
        self._told: dict[str, int] = {}
        self.began = False

    def begin(self) -> None:
        """Make the series that alerts need before their first increment; once."""
        if not self.began:
            self.began = True
            with unforked():
                self._interventions.add(0)

    def count(self, spoken: Utterance, agent: str | None, context: Context | None) -> None:
        """Count an utterance. Its exemplar leads to the span that the context holds."""
        finding = spoken.finding
        with unforked():
            agent = self._known(agent)
            labels = names.metric_attributes(finding.pattern.value, finding.severity, agent)
            self._deadlocks.add(1, labels, context)
            before = self._told.pop(spoken.finding_id, 0)
            if finding.wasted_tokens > before:
                agent_only = {names.AGENT_NAME: agent}
                self._wasted.add(finding.wasted_tokens - before, agent_only, context)
            self._told[spoken.finding_id] = max(before, finding.wasted_tokens)
            if len(self._told) > MAX_FINDINGS:
                del self._told[next(iter(self._told))]

    def intervened(
        self, told: names.Attributes, agent: str | None, context: Context | None
    ) -> None:
        """Count a call that was held back, or would have been, by what its event says."""
        labels = {name: told[name] for name in (names.PATTERN, names.INTERVENTION, names.MODE)}
        with unforked():
            labels[names.AGENT_NAME] = self._known(agent)
            self._interventions.add(1, labels, context)

    def move(self, changes: Iterable[StuckChange]) -> None:
        """Keep the gauge of stuck runs."""
        with unforked():
            for change in changes:
                if change.before is not None:
                    self._stuck.add(-1, self._stuck_labels(change.before))
                if change.after is not None:
                    self._stuck.add(1, self._stuck_labels(change.after))

    def end(self, ended: Iterable[RunEnd]) -> None:
        """Tell how long runs took that are over."""
        with unforked():
            for run in ended:
                outcome = "deadlock" if run.stuck else run.reason
                labels = {names.AGENT_NAME: self._known(run.agent), "loopguard.outcome": outcome}
                self._iterations.record(run.iterations, labels)

    def _stuck_labels(self, stuck: Stuck) -> names.Attributes:
        agent = self._known(stuck.agent)
        return names.metric_attributes(stuck.pattern.value, stuck.severity, agent)

    def _known(self, agent: str | None) -> str:
        """The agent's name, while there is room for it; a name that has room keeps it."""
        name = agent or "unknown"
        if name in self._agents:
            return name
        if len(self._agents) >= self._max_agents:
            return OTHER
        self._agents.add(name)
        return name
