"""Look around in a process that was started as the agent is: the facts for `otel-loopguard doctor`.

`python -m otel_loopguard.instrumentation.probe FILE SECONDS [MODULE]` writes them to a file as
JSON, since exporters may write to standard output. A module that is named is imported first: it
sets up the SDK of a program that does so itself.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import socket
import sys
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from opentelemetry import trace
from opentelemetry.instrumentation.dependencies import get_dependency_conflicts

from otel_loopguard.instrumentation import FRAMEWORKS, LoopGuardInstrumentor, wiring
from otel_loopguard.runtime import guarded
from otel_loopguard.sdk import trial
from otel_loopguard.sdk.declared import is_enabled
from otel_loopguard.sdk.facts import BEGINS, without_credentials
from otel_loopguard.sdk.providers import GLOBAL
from otel_loopguard.settings import from_env
from otel_loopguard.settings.opentelemetry import decisive, is_left_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from otel_loopguard.sdk.facts import Exporter, Facts, Framework, Instrumentor, Package
    from otel_loopguard.settings import Settings

CONNECT_S: Final = 3.0
"""How long an endpoint may take to accept a connection."""
_HOPELESS_S: Final = 2.0
"""How long to wait for exporters if no endpoint takes a connection: enough to see the batch, or to
get an answer through a proxy."""
_PORTS: Final = {"http": 80, "https": 443}
_PACKAGES: Final = (
    "otel-loopguard",
    "opentelemetry-api",
    "opentelemetry-sdk",
    "opentelemetry-distro",
    "opentelemetry-exporter-otlp",
    "opentelemetry-instrumentation",
    "opentelemetry-configuration",
)


class _Heard(logging.Handler):
    """Keeps what a logger says, each message once."""

    def __init__(self, logger: str) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []
        self._logger = logging.getLogger(logger)

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message not in self.messages:
            self.messages.append(message)

    def __enter__(self) -> list[str]:
        self._logger.addHandler(self)
        return self.messages

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)


def look(seconds: float) -> Facts:
    """Gather the facts.

    Args:
        seconds: how long the exporters may take.
    """
    with _Heard("otel_loopguard") as warnings:
        settings, providers = from_env(), GLOBAL
    instrumentor = _instrumentor(settings)
    if instrumentor["loaded"] and (wired := wiring.current()) is not None:
        settings, providers = wired.pipeline.settings, wired.pipeline.providers
    frameworks = [found for name in FRAMEWORKS if (found := _framework(name)) is not None]
    provider = trial.describe(providers.tracer or trace.get_tracer_provider())
    with trial.Watches() as watches, _Heard("opentelemetry") as said:
        reached = {watch: _unreachable(_endpoint(watch.exporter)) for watch in watches.all}
        wait_s = seconds if None in reached.values() else _HOPELESS_S
        tried = trial.send(settings, providers, watches, wait_s)
        exporters = [_exporter(watch, reached[watch]) for watch in watches.all]
    return {
        "python": platform.python_version(),
        "versions": {name: v for name in _PACKAGES if (v := _version(name)) is not None},
        "variables": {name: without_credentials(each) for name, each in decisive().items()},
        "configurators": _packages("opentelemetry_configurator"),
        "provider": provider,
        "instrumentor": instrumentor,
        "frameworks": frameworks,
        "instrumentations": [
            found
            for found in _packages("opentelemetry_instrumentor")
            if found["name"] != "loopguard"
        ],
        "exporters": exporters,
        "readers": trial.readers(),
        "trial": tried,
        "emit": sorted(signal.value for signal in settings.emit),
        "muted": sorted(pattern.value for pattern in settings.muted_patterns),
        "settings_warnings": [each.removeprefix("otel_loopguard: ") for each in warnings],
        "said": [without_credentials(each) for each in said],
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _packages(group: str) -> list[Package]:
    return [
        {"name": point.name, "package": point.dist.name, "version": point.dist.version}
        for point in entry_points(group=group)
        if point.dist is not None
    ]


def _instrumentor(settings: Settings) -> Instrumentor:
    if settings.disabled:
        off = "OTEL_LOOPGUARD_DISABLED"
    elif is_left_out():
        off = "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS"
    else:
        off = None if is_enabled() else "enabled: false"
    ours: Any = LoopGuardInstrumentor()
    return {
        "loaded": ours.is_instrumented_by_opentelemetry,
        "attached": trial.is_attached(),
        "off": off,
    }


def _framework(name: str) -> Framework | None:
    """A framework as it is installed here, imported as an agent would; None if it is not."""
    table: Any = import_module(f"otel_loopguard.instrumentation.{name}")
    package = table.SUPPORTED.split()[0]
    installed = _version(package)
    if installed is None:
        return None
    error = None
    for module in FRAMEWORKS[name]:
        if _import(module) is None:
            error = f"{module} cannot be imported"
    for row in table.ROWS:
        with suppress(ImportError):  # a module of other versions
            import_module(row.module)
    return {
        "name": name,
        "package": package,
        "version": installed,
        "supported": table.SUPPORTED.removeprefix(package).strip(),
        "fits": get_dependency_conflicts([table.SUPPORTED]) is None,
        "hooked": LoopGuardInstrumentor().hooked(name),
        "error": error,
    }


_import = guarded("import of a framework")(import_module)


def _endpoint(exporter: object) -> str | None:
    """Where an exporter sends to, as far as it says, without credentials."""
    endpoint = getattr(exporter, "_endpoint", None)
    if not isinstance(endpoint, str) or not endpoint:
        return None
    return without_credentials(endpoint)


def _unreachable(endpoint: str | None) -> str | None:
    """Why nothing takes a connection there; None if something does, or nobody knows."""
    if endpoint is None:
        return None
    parts = urlsplit(endpoint if "://" in endpoint else f"//{endpoint}")
    try:
        port = parts.port or _PORTS.get(parts.scheme, 4317)
        socket.create_connection((parts.hostname or "", port), timeout=CONNECT_S).close()
    except (OSError, ValueError) as fault:
        return f"{type(fault).__name__}: {fault}"
    return None


def _exporter(watch: trial.Watch, unreachable: str | None) -> Exporter:
    return {
        "signal": watch.signal,
        "type": type(watch.exporter).__name__,
        "endpoint": _endpoint(watch.exporter),
        "unreachable": unreachable,
        "outcome": watch.outcome,
        "milliseconds": round(watch.seconds * 1000),
    }


def main(arguments: Sequence[str]) -> None:
    """See the module."""
    file, seconds, *modules = arguments
    for module in modules:
        import_module(module)
    print(BEGINS, file=sys.stderr, flush=True)
    Path(file).write_text(json.dumps(look(float(seconds))), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)  # what an exporter still holds would be tried again, for as long as it likes
