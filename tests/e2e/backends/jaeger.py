"""A real Jaeger for the tests and for `make jaeger`: find or build the program, run it, ask it.

Jaeger comes as a Go module, pinned in `jaeger/go.mod`, and is built once into a cache outside the
checkout. Whoever has the program already names it in `JAEGER_BIN`.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import sys
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from tests.e2e.backends.programs import ProgramMissing, Service, get, go_built, named

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = "v1.76.0"
PACKAGE = "github.com/jaegertracing/jaeger/cmd/jaeger"
IMAGE = "jaegertracing/jaeger:2.13.0"  # the same release, by its other name
SOURCE = Path(__file__).with_name("jaeger")


class Ports(NamedTuple):
    """The ports of one Jaeger, all on 127.0.0.1; by default its usual ones."""

    ui: int = 16686
    query_grpc: int = 16685
    otlp_http: int = 4318
    otlp_grpc: int = 4317
    health: int = 13133


def find_or_build() -> Path:
    """The Jaeger program: `JAEGER_BIN`, else the cached build, else a new build with Go.

    Raises:
        ProgramMissing: `JAEGER_BIN` names no program, there is no Go, or the build failed.
    """
    sums = (SOURCE / "go.sum").read_bytes()
    return named("JAEGER_BIN") or go_built(f"jaeger-{VERSION}", sums, _build)


def _build(go: str, scratch: Path) -> list[list[str]]:
    build = [go, "build", "-C", str(SOURCE), "-trimpath", "-buildvcs=false", "-ldflags=-s -w"]
    return [[*build, "-o", str(scratch / "program"), PACKAGE]]


def start_command() -> list[str]:
    """What starts Jaeger, less its settings: the program, else its container image."""
    try:
        return [str(find_or_build())]
    except ProgramMissing as missing:
        docker = shutil.which("docker")
        if docker and subprocess.run([docker, "info"], capture_output=True).returncode == 0:  # noqa: PLW1510
            return [docker, "run", "--rm"]
        raise ProgramMissing(
            f"Jaeger is missing: {missing}. It needs one of: JAEGER_BIN=<program>; "
            "Go 1.24.6 or newer (`make go` brings one into .venv); a running Docker."
        ) from missing


def _settings(command: list[str], ports: Ports) -> tuple[list[str], dict[str, str]]:
    """The whole command, and the environment that fills the placeholders of `config.yaml`."""
    values = {f"JAEGER_{name.upper()}": str(port) for name, port in ports._asdict().items()}
    config = f"yaml:{(SOURCE / 'config.yaml').read_text()}"
    if len(command) == 1:
        return [*command, "--config", config], {**values, "JAEGER_HOST": "127.0.0.1"}
    published = [flag for port in ports for flag in ("-p", f"127.0.0.1:{port}:{port}")]
    passed = [flag for name in (*values, "JAEGER_HOST") for flag in ("-e", name)]
    command = [*command, *published, *passed, IMAGE, "--config", config]
    return command, {**values, "JAEGER_HOST": "0.0.0.0"}  # noqa: S104  # inside the container


class Jaeger(Service):
    """A Jaeger that runs inside the `with` block, on free ports unless others are given.

    Raises:
        ProgramMissing: on entering, when there is no Jaeger or it does not become healthy.
    """

    def __init__(self, ports: Ports | None = None) -> None:
        super().__init__("Jaeger", ports or len(Ports._fields))

    @property
    def otlp_http(self) -> str:
        """Where it takes OTLP over HTTP."""
        return f"http://127.0.0.1:{Ports(*self.ports).otlp_http}"

    @property
    def otlp_grpc(self) -> str:
        """Where it takes OTLP over gRPC."""
        return f"http://127.0.0.1:{Ports(*self.ports).otlp_grpc}"

    @property
    def ui(self) -> str:
        """Its page and its query API."""
        return f"http://127.0.0.1:{Ports(*self.ports).ui}"

    def command(self) -> tuple[list[str], Mapping[str, str]]:
        return _settings(start_command(), Ports(*self.ports))

    def is_up(self) -> bool:
        return self.answers(Ports(*self.ports).health, "/status")

    def traces(
        self, service: str, tags: Mapping[str, str] | None = None, *, limit: int = 100
    ) -> list[dict[str, Any]]:
        """The service's newest traces, in Jaeger's own JSON.

        Args:
            service: The `service.name`.
            tags: Attributes that one span, or one event of it, carries; a boolean is `"true"`.
            limit: How many traces at most.
        """
        query = {"service": service, "limit": str(limit)}
        if tags:
            query["tags"] = json.dumps(dict(tags))
        _, answer = get(Ports(*self.ports).ui, f"/api/traces?{urlencode(query)}")
        return answer["data"] or []

    def trace(self, trace_id: str) -> dict[str, Any] | None:
        """One trace by its 32 hex digits; None while Jaeger has no span of it."""
        status, answer = get(Ports(*self.ports).ui, f"/api/traces/{trace_id}")
        return answer["data"][0] if status == HTTPStatus.OK else None


def main() -> int:
    """`make jaeger`."""
    try:
        with Jaeger(Ports()) as jaeger:
            print("Jaeger:", jaeger.ui)
            print("OTLP:  ", jaeger.otlp_http, "(http),", jaeger.otlp_grpc, "(grpc)")
            print("Ctrl-C ends it.", flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                signal.pause()
    except ProgramMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
