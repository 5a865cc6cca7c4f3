"""What a declarative configuration file says of us beyond our options."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from otel_loopguard.runtime import guarded
from otel_loopguard.settings import config_file


def is_enabled() -> bool:
    """Whether the file, if there is one, does not say `enabled: false`.

    OpenTelemetry passes our options on from the file by itself. It leaves out an instrumentor that
    is not enabled there, but `opentelemetry-instrument` then loads it all the same.
    """
    return _is_enabled() is not False


@guarded("reading the configuration file")
def _is_enabled() -> bool:
    path = config_file()
    if path is None or importlib.util.find_spec("opentelemetry.configuration") is None:
        return True
    package: Any = importlib.import_module("opentelemetry.configuration")
    instrumentation: Any = package.load_config_file(path).instrumentation_development
    listed: dict[str, Any] = getattr(instrumentation, "python", None) or {}
    options: dict[str, Any] = listed.get("loopguard") or {}
    return options.get("enabled") is not False
