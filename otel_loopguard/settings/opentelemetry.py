"""What OpenTelemetry's own variables say that concerns us."""

from __future__ import annotations

import os
from typing import Final

DECISIVE: Final = (
    "OTEL_SDK_DISABLED",
    "OTEL_CONFIG_FILE",
    "OTEL_SERVICE_NAME",
    "OTEL_TRACES_EXPORTER",
    "OTEL_METRICS_EXPORTER",
    "OTEL_LOGS_EXPORTER",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    "OTEL_TRACES_SAMPLER",
    "OTEL_TRACES_SAMPLER_ARG",
    "OTEL_SPAN_EVENT_COUNT_LIMIT",
    "OTEL_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT",
    "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT",
    "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS",
    "OTEL_PYTHON_DISTRO",
    "OTEL_PYTHON_CONFIGURATOR",
    "OTEL_PYTHON_TRACER_PROVIDER",
    "OTEL_LOOPGUARD_DISABLED",
)
"""The variables that decide whether a deadlock gets out. None of them holds a secret."""


def config_file() -> str | None:
    """The declarative configuration file, if one is in use."""
    return os.environ.get("OTEL_CONFIG_FILE") or None


def is_left_out() -> bool:
    """Whether the list of instrumentations that are not to be loaded names us."""
    names = os.environ.get("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "").split(",")
    return not {"loopguard", "*"}.isdisjoint(map(str.strip, names))


def decisive() -> dict[str, str]:
    """Those of the variables that are set, as they are set."""
    return {name: os.environ[name] for name in DECISIVE if os.environ.get(name)}
