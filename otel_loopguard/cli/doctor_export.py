"""What is wrong on the way out: sampler, limits, exporters, endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from otel_loopguard.cli.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from otel_loopguard.sdk.facts import Exporter, Facts

_LABEL: Final = 32
"""No text that alerts and searches rely on (patterns, severities, ids) is longer."""
_ENOUGH: Final = 4096
"""Most arguments and results of tools are shorter, and all evidence."""
_SIGNALS: Final = {"span": "traces", "metric": "metrics", "log": "logs"}
"""Where OTEL_LOOPGUARD_EMIT sends what is told."""
_WORDS: Final = {"traces": ("trace", "span"), "metrics": ("metric",), "logs": ("logs", "log batch")}
"""How exporters call what they log about."""
_LOST: Final = {
    "traces": "deadlock events do not arrive",
    "metrics": "alerts on loopguard_deadlocks_total and loopguard_stuck_runs never fire",
    "logs": "deadlock log records do not arrive",
}
_COUNT_LIMITS: Final = (
    "OTEL_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT",
)
_LENGTH_LIMITS: Final = (
    "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT",
    "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT",
)
_NOT_TAKEN: Final = ("UNIMPLEMENTED", "404", "Not Found")
"""What an endpoint says that does not know the signal."""
_PORT_HINTS: Final = {
    ("4318", "grpc"): "4318 is the usual port of OTLP over HTTP: set "
    "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf, or use port 4317",
    ("4317", "http"): "4317 is the usual port of OTLP over gRPC: set "
    "OTEL_EXPORTER_OTLP_PROTOCOL=grpc, or use port 4318",
}


def judge_export(facts: Facts) -> Iterator[Finding]:
    """Whether what is told leaves the process. Only asked where there is an SDK."""
    yield from _judge_exporters(facts)
    yield from _judge_console(facts["exporters"])
    yield from _judge_sampler(facts)
    yield from _judge_event(facts)
    yield from _judge_connections(facts)
    for exporter in facts["exporters"]:
        yield from _judge_answer(exporter, facts["said"])


def _judge_exporters(facts: Facts) -> Iterator[Finding]:
    """Whether each signal that is to be told has an exporter."""
    signals = {exporter["signal"] for exporter in facts["exporters"]}
    if facts["readers"]:
        signals.add("metrics")
    for signal in [s for each in facts["emit"] if (s := _SIGNALS[each]) not in signals]:
        variable = f"OTEL_{signal.upper()}_EXPORTER"
        value = facts["variables"].get(variable)
        yield Finding(
            f"no-{signal}-exporter",
            f"there is no exporter for {signal}" + (f": {variable}={value}" if value else ""),
            _LOST[signal],
            f"{variable}=otlp",
            is_problem=signal != "metrics",  # a team may well rely on the traces alone
        )


def _judge_console(exporters: list[Exporter]) -> Iterator[Finding]:
    """Whether traces go to a terminal alone, as they do while somebody tries things out."""
    types = {exporter["type"] for exporter in exporters if exporter["signal"] == "traces"}
    if types and all(each.startswith("Console") for each in types):
        yield Finding(
            "console-only",
            "traces are written to the console and sent nowhere",
            _LOST["traces"],
            "OTEL_TRACES_EXPORTER=otlp, or otlp,console",
            is_problem=False,
        )


def _judge_sampler(facts: Facts) -> Iterator[Finding]:
    share = facts["trial"]["sampled"]
    if share is None or share == 1:
        return
    sampler = [
        f"{name}={facts['variables'][name]}"
        for name in ("OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG")
        if name in facts["variables"]
    ]
    pushed = [each["outcome"] for each in facts["exporters"] if each["signal"] == "metrics"]
    by_metric = "success" in pushed or facts["readers"] > len(pushed)
    yield Finding(
        "unsampled",
        f"the sampler keeps {share:.0%} of all traces ({' '.join(sampler) or 'set in code'})",
        "a deadlock in one that is not kept is on no trace"
        + ("; metrics still count it" if by_metric else ""),
        "OTEL_TRACES_SAMPLER=parentbased_always_on, and sample in the collector, where deadlocks "
        "can be led around the sampler",
        is_problem=share == 0 or not by_metric,
    )


def _judge_event(facts: Facts) -> Iterator[Finding]:
    """Whether limits cut the event. What was not handed to an exporter cannot be judged."""
    trial, variables = facts["trial"], facts["variables"]
    handed = any(
        each["signal"] == "traces" and each["outcome"] != "not called"
        for each in facts["exporters"]
    )
    if handed and "span" in facts["emit"] and not trial["events"]:
        limit = variables.get("OTEL_SPAN_EVENT_COUNT_LIMIT")
        yield Finding(
            "no-event",
            "the span went out without its deadlock event: "
            + (f"OTEL_SPAN_EVENT_COUNT_LIMIT={limit}" if limit else "a limit set in code"),
            "searches and alerts for the event loopguard.deadlock find nothing",
            "unset OTEL_SPAN_EVENT_COUNT_LIMIT (128 by default)",
        )
    if trial["lost_attributes"]:
        limits = [f"{name}={variables[name]}" for name in _COUNT_LIMITS if name in variables]
        yield Finding(
            "attributes-dropped",
            f"{trial['lost_attributes']} attributes of the deadlock were dropped: "
            + (" ".join(limits) or "a limit set in code"),
            "searches, alerts and dashboards that use them find nothing",
            "allow at least 64 attributes",
        )
    length = trial["value_limit"]
    if length is not None and length < _ENOUGH:
        limits = [f"{name}={variables[name]}" for name in _LENGTH_LIMITS if name in variables]
        yield Finding(
            "values-cut",
            f"texts are cut at {length} characters: {' '.join(limits)}",
            "what another instrumentation shows of a call counts as unknown from that length on, "
            "so its loops are not seen; evidence may arrive cut"
            + (", and patterns too" if length < _LABEL else ""),
            f"set it to {_ENOUGH} or more, or unset it",
            is_problem=length < _LABEL,
        )


def _judge_connections(facts: Facts) -> Iterator[Finding]:
    """Whether something listens where what is told is sent to; each endpoint once."""
    told = {_SIGNALS[each] for each in facts["emit"]}
    silent: dict[tuple[str, str], list[str]] = {}
    for exporter in facts["exporters"]:
        if exporter["outcome"] == "success":
            continue  # through a proxy, if at all
        if exporter["unreachable"] is not None and exporter["signal"] in told:
            where = (_address(exporter["endpoint"] or ""), exporter["unreachable"])
            silent.setdefault(where, []).append(exporter["signal"])
    for (address, reason), signals in silent.items():
        yield Finding(
            "unreachable",
            f"nothing answers at {address} ({', '.join(signals)}): {reason}",
            "; ".join(_LOST[signal] for signal in signals),
            "start the collector, or correct OTEL_EXPORTER_OTLP_ENDPOINT",
        )


def _address(endpoint: str) -> str:
    """An endpoint without the path, which differs by signal."""
    scheme, sign, rest = endpoint.rpartition("://")
    return scheme + sign + rest.split("/")[0]


def _judge_answer(exporter: Exporter, said: list[str]) -> Iterator[Finding]:
    """Whether what listens there has taken what was sent."""
    signal, outcome, endpoint = exporter["signal"], exporter["outcome"], exporter["endpoint"] or ""
    if exporter["unreachable"] is not None or outcome not in {"failure", "raised", "no answer"}:
        return
    about = [line for line in said if any(word in line for word in _WORDS[signal])]
    yield Finding(
        f"{signal}-refused",
        f"{endpoint or exporter['type']} did not take the {signal}: {outcome}"
        + "".join(f"; {line}" for line in about[-1:]),
        _LOST[signal],
        _what_helps(signal, endpoint, about),
    )


def _what_helps(signal: str, endpoint: str, about: list[str]) -> str:
    protocol = "http" if endpoint.startswith("http") else "grpc"
    for (port, used), hint in _PORT_HINTS.items():
        if f":{port}" in endpoint and used == protocol:
            return hint
    if signal != "traces" and any(word in line for line in about for word in _NOT_TAKEN):
        return (
            f"send {signal} to a collector, which passes on what this backend does not take; or do "
            f"without: OTEL_{signal.upper()}_EXPORTER=none"
        )
    return "check protocol, path, TLS and OTEL_EXPORTER_OTLP_HEADERS of the endpoint"
