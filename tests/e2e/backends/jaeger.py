"""A real Jaeger for the tests and for `make jaeger`: find or build the program, run it, ask it.

Jaeger comes as a Go module, pinned in `jaeger/go.mod`, and is built once into a cache outside the
checkout. Whoever has the program already names it in `JAEGER_BIN`.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from typing_extensions import Self

VERSION = "v1.76.0"
PACKAGE = "github.com/jaegertracing/jaeger/cmd/jaeger"
IMAGE = "jaegertracing/jaeger:2.13.0"  # the same release, by its other name
SOURCE = Path(__file__).with_name("jaeger")
START_SECONDS = 120
STARTS = 3  # a free port may be taken before Jaeger binds it

# The shell ends Jaeger when our end of its input closes, so also when this process is killed. Asked
# to end, Jaeger takes ten seconds over it, and its memory holds nothing to save.
WATCH = """
exec 3<&0
"$@" </dev/null &
jaeger=$!
(read -r line <&3; kill $jaeger; sleep 1; kill -9 $jaeger) &
wait $jaeger
kill $!
"""


class JaegerMissing(Exception):  # noqa: N818
    """There is no Jaeger here; the message says what would bring one."""


class Ports(NamedTuple):
    """The ports of one Jaeger, all on 127.0.0.1; by default its usual ones."""

    ui: int = 16686
    query_grpc: int = 16685
    otlp_http: int = 4318
    otlp_grpc: int = 4317
    health: int = 13133


def free_ports() -> Ports:
    """Ports that nobody listens on now."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in Ports._fields]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return Ports(*(one.getsockname()[1] for one in sockets))


def _check_free(ports: Ports) -> None:
    for port in ports:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                raise JaegerMissing(f"Port {port} is taken: is a Jaeger running?") from error


def find_or_build() -> Path:
    """The Jaeger program: `JAEGER_BIN`, else the cached build, else a new build with Go.

    Raises:
        JaegerMissing: `JAEGER_BIN` names no program, there is no Go, or the build failed.
    """
    if named := os.environ.get("JAEGER_BIN"):
        if not os.access(named, os.X_OK):
            raise JaegerMissing(f"JAEGER_BIN={named} is not a program")
        return Path(named)
    beside = str(Path(sys.executable).with_name("go"))  # `make go`
    go = shutil.which(beside) or shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    sums = hashlib.sha256((SOURCE / "go.sum").read_bytes()).hexdigest()[:12]
    if go is None:
        builds = sorted(_cache().glob(f"jaeger-{VERSION}-*-{sums}"))
        if not builds:
            raise JaegerMissing("no Go was found")
        return builds[-1]
    version = subprocess.check_output([go, "env", "GOVERSION"], text=True).strip()
    program = _cache() / f"jaeger-{VERSION}-{version}-{sums}"
    if not program.exists():
        with _locked(program.with_name(program.name + ".lock")):
            if not program.exists():  # another process may have built it meanwhile
                _build(go, version, program)
    return program


def _build(go: str, version: str, program: Path) -> None:
    sys.stderr.write(f"Building Jaeger {VERSION} with {version} (once, about 4 minutes)\n")
    with tempfile.TemporaryDirectory(dir=program.parent) as scratch:
        built = Path(scratch) / "jaeger"
        command = [go, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", str(built)]
        environment = {**os.environ, "CGO_ENABLED": "0"}
        log = built.with_suffix(".log")
        with log.open("w") as out:
            done = subprocess.run(
                [*command, PACKAGE], cwd=SOURCE, env=environment, stderr=out, check=False
            )
        if done.returncode != 0:
            sys.stderr.write(log.read_text()[-2000:])
            raise JaegerMissing(f"the build with {version} failed, as said above")
        built.replace(program)


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    cache = Path(os.environ.get("LOOPGUARD_CACHE") or Path(base) / "otel-loopguard")
    cache.mkdir(parents=True, exist_ok=True)
    return cache


@contextlib.contextmanager
def _locked(path: Path) -> Generator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _command() -> list[str]:
    """What starts Jaeger, less its settings: the program, else its container image."""
    try:
        return [str(find_or_build())]
    except JaegerMissing as missing:
        docker = shutil.which("docker")
        if docker and subprocess.run([docker, "info"], capture_output=True).returncode == 0:  # noqa: PLW1510
            return [docker, "run", "--rm"]
        raise JaegerMissing(
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


class Jaeger:
    """A Jaeger that runs inside the `with` block, on free ports unless others are given.

    Raises:
        JaegerMissing: on entering, when there is no Jaeger or it does not become healthy.
    """

    def __init__(self, ports: Ports | None = None) -> None:
        self._wanted = ports
        self._use(ports or Ports())
        self._process: subprocess.Popen[bytes] | None = None

    def _use(self, ports: Ports) -> None:
        self._ports = ports
        self.otlp_http = f"http://127.0.0.1:{ports.otlp_http}"
        self.otlp_grpc = f"http://127.0.0.1:{ports.otlp_grpc}"
        self.ui = f"http://127.0.0.1:{ports.ui}"

    def __enter__(self) -> Self:
        if self._wanted:
            _check_free(self._wanted)
        said = ""
        for _ in range(1 if self._wanted else STARTS):
            self._use(self._wanted or free_ports())
            with tempfile.TemporaryFile() as log:
                if self._start(log):
                    return self
                log.seek(0)
                said = log.read().decode(errors="replace")[-2000:]
        raise JaegerMissing(f"Jaeger did not start on {self._ports}:\n{said}")

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End Jaeger, if it runs."""
        if self._process is None or self._process.stdin is None:
            return
        self._process.stdin.close()
        self._process.wait()

    def _start(self, log: IO[bytes]) -> bool:
        command, settings = _settings(_command(), self._ports)
        inherited = {name: text for name, text in os.environ.items() if name[:5] != "OTEL_"}
        self._process = subprocess.Popen(
            ["sh", "-c", WATCH, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**inherited, **settings},
            start_new_session=True,
        )
        deadline = time.monotonic() + START_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                if _get(self._ports.health, "/status")[0] == HTTPStatus.OK:
                    return True
            time.sleep(0.05)
        self.stop()
        return False

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
        _, answer = _get(self._ports.ui, f"/api/traces?{urlencode(query)}")
        return answer["data"] or []

    def trace(self, trace_id: str) -> dict[str, Any] | None:
        """One trace by its 32 hex digits; None while Jaeger has no span of it."""
        status, answer = _get(self._ports.ui, f"/api/traces/{trace_id}")
        return answer["data"][0] if status == HTTPStatus.OK else None


def _get(port: int, path: str) -> tuple[int, dict[str, Any]]:
    with contextlib.closing(HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, json.load(answer)


def main() -> int:
    """`make jaeger` and, with `--find`, the first half of `make e2e`."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--find", action="store_true", help="find or build Jaeger, start nothing")
    try:
        if parser.parse_args().find:
            print("Jaeger:", " ".join(_command()))
            return 0
        with Jaeger(Ports()) as jaeger:
            print("Jaeger:", jaeger.ui)
            print("OTLP:  ", jaeger.otlp_http, "(http),", jaeger.otlp_grpc, "(grpc)")
            print("Ctrl-C ends it.", flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                signal.pause()
    except JaegerMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
