"""What OpenTelemetry's own variables say that concerns us."""

from __future__ import annotations

import os


def config_file() -> str | None:
    """The declarative configuration file, if one is in use."""
    return os.environ.get("OTEL_CONFIG_FILE") or None


def is_left_out() -> bool:
    """Whether the list of instrumentations that are not to be loaded names us."""
    names = os.environ.get("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "").split(",")
    return not {"loopguard", "*"}.isdisjoint(map(str.strip, names))
