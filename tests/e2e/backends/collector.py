"""A real OpenTelemetry Collector: the one that `OTELCOL_BIN` names (contrib 0.161.0 or newer), or
one that its official builder makes of `collector/manifest.yaml`, once, into a cache."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.e2e.backends.programs import ProgramMissing, Service, go_built, named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

VERSION = "v0.161.0"
BUILDER = f"go.opentelemetry.io/collector/cmd/builder@{VERSION}"
MANIFEST = Path(__file__).with_name("collector") / "manifest.yaml"
CONFIG = Path(__file__).resolve().parents[3] / "collector-config"
COLLECTOR = CONFIG / "collector.yaml"


def find_or_build() -> Path:
    """The collector program: `OTELCOL_BIN`, else the cached build, else a new build with Go.

    Raises:
        ProgramMissing: there is none; the message says what would help.
    """
    try:
        return named("OTELCOL_BIN") or go_built(f"otelcol-{VERSION}", MANIFEST.read_bytes(), _build)
    except ProgramMissing as missing:
        raise ProgramMissing(
            f"The OpenTelemetry Collector is missing: {missing}. It needs one of: "
            "OTELCOL_BIN=<otelcol-contrib>; Go 1.26 or newer (`make go` brings one into .venv)."
        ) from missing


def _build(go: str, scratch: Path) -> list[list[str]]:
    builder = [go, "run", BUILDER, "--config", str(MANIFEST)]
    return [builder, ["mv", str(scratch / "otelcol-loopguard"), str(scratch / "program")]]


def otelcol(
    command: str, *files: Path, settings: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """What `otelcol validate` or `otelcol print-config` says of files that are used together.

    Args:
        command: validate or print-config.
        files: configuration files.
        settings: the whole environment.
    """
    flags = [flag for file in files for flag in ("--config", str(file))]
    return subprocess.run(
        [find_or_build(), command, *flags],
        env=dict(settings or {}),
        capture_output=True,
        text=True,
        check=False,
    )


class Ports(NamedTuple):
    """The ports of one collector, all on 127.0.0.1."""

    otlp_grpc: int
    otlp_http: int
    metrics: int
    counts: int
    own: int
    health: int


class Collector(Service):
    """A collector that runs inside the `with` block; its queues live as long as this object.

    Args:
        files: its configuration files.
        settings: more of the variables that they read.
    """

    def __init__(self, files: Sequence[Path], **settings: str) -> None:
        super().__init__("The collector", len(Ports._fields))
        self._files = files
        self._more = settings

    @property
    def at(self) -> Ports:
        """Its ports."""
        return Ports(*self.ports)

    @property
    def otlp_http(self) -> str:
        """Where it takes OTLP over HTTP."""
        return f"http://127.0.0.1:{self.at.otlp_http}"

    def command(self) -> tuple[list[str], Mapping[str, str]]:
        flags = [flag for file in self._files for flag in ("--config", str(file))]
        settings = {
            "LOOPGUARD_OTLP_GRPC": f"127.0.0.1:{self.at.otlp_grpc}",
            "LOOPGUARD_OTLP_HTTP": f"127.0.0.1:{self.at.otlp_http}",
            "LOOPGUARD_METRICS": f"127.0.0.1:{self.at.metrics}",
            "LOOPGUARD_COUNTS": f"127.0.0.1:{self.at.counts}",
            "LOOPGUARD_SELF_PORT": str(self.at.own),
            "LOOPGUARD_HEALTH": f"127.0.0.1:{self.at.health}",
            "LOOPGUARD_STORAGE": str(self.folder / "queues"),
        }
        return [str(find_or_build()), *flags], {**settings, **self._more}

    def is_up(self) -> bool:
        return self.answers(self.at.health, "/")
