"""An example agent as a process of its own, sending to a real Jaeger; and what Jaeger has of it."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from examples.offline import command, environment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from examples.scripted_model import ScriptedModel
    from tests.e2e.backends.jaeger import Jaeger

SAMPLE_S = 0.05


class Agent:
    """A running example agent. Its service name is its own, so that Jaeger tells it apart.

    Args:
        name: the folder of the example.
        scenario: what the scripted model does.
        jaeger: where its spans go.
        model: the scripted model.
        pause_s: how long it waits between two steps.
        delay_ms: the batch delay of its exporter.
        more: more of its environment.
    """

    def __init__(
        self,
        name: str,
        scenario: str,
        jaeger: Jaeger,
        model: ScriptedModel,
        *,
        pause_s: float = 0.0,
        delay_ms: int = 5000,
        **more: str,
    ) -> None:
        self.service = f"{name}-{scenario}".replace("+", "-").replace("=", "-")
        self.service = more.get("OTEL_SERVICE_NAME", self.service)
        self._jaeger = jaeger
        self.process = subprocess.Popen(
            command(name),
            env={
                **environment(model, scenario),
                "PAUSE": str(pause_s),
                "OTEL_SERVICE_NAME": self.service,
                "OTEL_TRACES_EXPORTER": "otlp",
                "OTEL_EXPORTER_OTLP_ENDPOINT": jaeger.otlp_http,
                "OTEL_BSP_SCHEDULE_DELAY": str(delay_ms),
                **more,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def is_alive(self) -> bool:
        """Whether the process still runs."""
        return self.process.poll() is None

    def finish(self, timeout_s: float = 60) -> tuple[int, str, str]:
        """Wait for its end: exit code, output, errors."""
        out, err = self.process.communicate(timeout=timeout_s)
        return self.process.returncode, out, err

    def stop(self) -> None:
        """End it, whatever it does."""
        self.process.kill()
        self.process.communicate()

    def spans(self) -> list[Span]:
        """All spans that Jaeger has of it."""
        return spans_of(self._jaeger, self.service)

    def find_event(self, severity: str) -> Seen | None:
        """The deadlock event of a severity, if Jaeger has it by now."""
        for trace in self._jaeger.traces(self.service, {"loopguard.severity": severity}):
            spans = [Span.of(span) for span in trace["spans"]]
            for span in spans:
                for event in span.events:
                    if event.get("loopguard.severity") == severity:
                        return Seen(span, event, spans, time.time(), self.is_alive)
        return None


def spans_of(jaeger: Jaeger, service: str) -> list[Span]:
    """All spans that Jaeger has of a service."""
    traces = jaeger.traces(service, limit=1000)
    return [Span.of(span) for trace in traces for span in trace["spans"]]


def watch(agents: Mapping[str, Agent], timeout_s: float) -> dict[tuple[str, str], Seen]:
    """Ask for the warning and the critical event of every agent until all of them are there."""
    wanted = {(name, severity) for name in agents for severity in ("warning", "critical")}
    seen: dict[tuple[str, str], Seen] = {}
    until = time.monotonic() + timeout_s
    while wanted and time.monotonic() < until:
        for name, severity in sorted(wanted):
            found = agents[name].find_event(severity)
            if found is not None:
                seen[name, severity] = found
        wanted -= set(seen)
        time.sleep(SAMPLE_S)
    return seen


@dataclass(frozen=True)
class Span:
    """A span as Jaeger gives it."""

    name: str
    span_id: str
    trace_id: str
    start_s: float
    end_s: float
    tags: dict[str, Any]
    events: list[dict[str, Any]]

    @classmethod
    def of(cls, span: dict[str, Any]) -> Span:
        """Read Jaeger's own JSON; times there are microseconds."""
        return cls(
            name=span["operationName"],
            span_id=span["spanID"],
            trace_id=span["traceID"],
            start_s=span["startTime"] / 1e6,
            end_s=(span["startTime"] + span["duration"]) / 1e6,
            tags=_fields(span["tags"]),
            events=[e for log in span["logs"] if (e := _fields(log["fields"])).get("event")],
        )


@dataclass(frozen=True)
class Seen:
    """A deadlock event at the moment that Jaeger first had it."""

    span: Span
    event: dict[str, Any]
    trace: list[Span]
    at_s: float
    agent_was_alive: bool

    @property
    def after_s(self) -> float:
        """How long after the step ended it was found."""
        return self.at_s - self.span.end_s


def _fields(fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {field["key"]: field["value"] for field in fields}


SAID: list[str] = []


def say(text: str) -> None:
    """Print a figure, at once where nothing is captured, and again below the last test."""
    print(text, flush=True)
    SAID.append(text)
