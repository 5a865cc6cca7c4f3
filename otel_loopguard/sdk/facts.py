"""What `otel-loopguard doctor` learns in the user's environment: plain JSON between processes."""

from __future__ import annotations

import re
from typing import Final, TypedDict

BEGINS: Final = "otel_loopguard: looks around"
"""The line on standard error between what was said at the start and what is said by looking."""
_CREDENTIALS: Final = re.compile(r"//[^/\s@]*@")


def without_credentials(text: str) -> str:
    """A text whose addresses name neither user nor password."""
    return _CREDENTIALS.sub("//", text)


class Package(TypedDict):
    """Something installed that plugs into OpenTelemetry: its entry point and its package."""

    name: str
    package: str
    version: str


class Provider(TypedDict):
    """The tracer provider that spans of ours are made with: the global one, if no other was given.

    Attributes:
        kind: `sdk`, `none` (nobody has set one) or `other` (of a make that takes no processors).
        type: its class.
        service: the service's name, if somebody chose one.
        others: the classes of SDK providers that exist beside it.
    """

    kind: str
    type: str
    service: str | None
    others: list[str]


class Exporter(TypedDict):
    """An exporter and what became of our trial there.

    Attributes:
        signal: traces, metrics or logs.
        type: its class.
        endpoint: where it sends to, without credentials; None if it does not say.
        unreachable: why no connection came about; None if one did, or there is no endpoint.
        outcome: `success`, `failure`, `raised`, `no answer` (in time), or `not called`.
        milliseconds: how long it took.
    """

    signal: str
    type: str
    endpoint: str | None
    unreachable: str | None
    outcome: str
    milliseconds: int


class Trial(TypedDict):
    """The deadlock that was sent to see what becomes of it.

    Attributes:
        trace_id: its trace; None if no span was recorded.
        sampled: the share of new traces that the sampler keeps; None if there is no sampler.
        events: deadlock events on the spans as they were handed to the exporters.
        lost_attributes: attributes that a limit has dropped from the event and from its span.
        value_limit: the length at which the SDK cuts texts; None if it does not.
        metrics: names of our metrics that were handed to an exporter.
        logs: deadlock log records that were.
    """

    trace_id: str | None
    sampled: float | None
    events: int
    lost_attributes: int
    value_limit: int | None
    metrics: list[str]
    logs: int


class Framework(TypedDict):
    """A framework that is installed.

    Attributes:
        name: what it is called here.
        package, version: what is installed.
        supported: the versions that can be hooked, as a requirement.
        fits: whether the installed one is of these.
        hooked: how many of its functions are wrapped.
        error: why it cannot be imported, if it cannot.
    """

    name: str
    package: str
    version: str
    supported: str
    fits: bool
    hooked: int
    error: str | None


class Instrumentor(TypedDict):
    """Our own instrumentor.

    Attributes:
        loaded: whether it was started in this process.
        attached: whether its processor is on the tracer provider.
        off: which switch turns it off; None if none does.
    """

    loaded: bool
    attached: bool
    off: str | None


class Facts(TypedDict):
    """All of it.

    Attributes:
        python: version.
        versions: of the packages that matter.
        variables: those of OpenTelemetry's variables that decide, as they are set.
        configurators: what could set up an SDK under `opentelemetry-instrument`.
        instrumentations: the other ones that are installed.
        readers: how many metric readers there are.
        emit, muted: these settings of ours.
        settings_warnings: what is wrong with our settings.
        said: what OpenTelemetry logged while it was tried.
    """

    python: str
    versions: dict[str, str]
    variables: dict[str, str]
    configurators: list[Package]
    provider: Provider
    instrumentor: Instrumentor
    frameworks: list[Framework]
    instrumentations: list[Package]
    exporters: list[Exporter]
    readers: int
    trial: Trial
    emit: list[str]
    muted: list[str]
    settings_warnings: list[str]
    said: list[str]
