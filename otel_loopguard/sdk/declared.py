"""Whether OpenTelemetry's own configuration switches us off."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from otel_loopguard.runtime import guarded
from otel_loopguard.settings.opentelemetry import config_file, is_left_out


def is_enabled() -> bool:
    """Whether neither a variable nor the declarative configuration file switches us off.

    OpenTelemetry passes our options on from the file by itself. It leaves out an instrumentor that
    has `enabled: false` there, but `opentelemetry-instrument` then loads it all the same. And it
    does not know of decorators.
    """
    return not is_left_out() and _is_enabled_by_file() is not False


@guarded("reading the configuration file")
def _is_enabled_by_file() -> bool:
    path = config_file()
    if path is None or importlib.util.find_spec("opentelemetry.configuration") is None:
        return True
    package: Any = importlib.import_module("opentelemetry.configuration")
    instrumentation: Any = package.load_config_file(path).instrumentation_development
    listed: dict[str, Any] = getattr(instrumentation, "python", None) or {}
    options: dict[str, Any] = listed.get("loopguard") or {}
    return options.get("enabled") is not False
