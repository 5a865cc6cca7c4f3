"""`python -m tests.e2e.backends.find`: find or build every real program that the e2e tests run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tests.e2e.backends import collector, jaeger, prometheus
from tests.e2e.backends.programs import ProgramMissing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PROGRAMS: Mapping[str, Callable[[], object]] = {
    "Jaeger": lambda: " ".join(jaeger.start_command()),
    "OpenTelemetry Collector": collector.find_or_build,
    "Prometheus": lambda: prometheus.find("prometheus"),
    "promtool": lambda: prometheus.find("promtool"),
    "Alertmanager": lambda: prometheus.find("alertmanager", "prometheus-alertmanager"),
    "amtool": lambda: prometheus.find("amtool"),
}


def is_here(name: str) -> bool:
    """Say where a program is, or what would bring it."""
    try:
        print(f"{name}: {PROGRAMS[name]()}", flush=True)
    except ProgramMissing as missing:
        print(missing, file=sys.stderr)
        return False
    return True


if __name__ == "__main__":
    found = [is_here(name) for name in PROGRAMS]
    sys.exit(not all(found))
