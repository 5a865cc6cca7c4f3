"""What the real backends have in common: programs that are found or built once, and that run on
free ports of 127.0.0.1 inside a `with` block and always end with it."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from typing_extensions import Self

START_SECONDS = 120
STARTS = 3  # a free port may be taken before the program binds it

# The shell ends the program when our end of its input closes, so also when this process is killed.
# Asked to end, some take ten seconds over it, and there is nothing here that they need to save.
WATCH = """
exec 3<&0
"$@" </dev/null &
program=$!
(read -r line <&3; kill $program; sleep 1; kill -9 $program) &
wait $program
kill $!
"""


class ProgramMissing(Exception):  # noqa: N818
    """A program is not here or does not start; the message says what would help."""


def free_ports(count: int) -> tuple[int, ...]:
    """Ports that nobody listens on now."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return tuple(one.getsockname()[1] for one in sockets)


def check_free(ports: Sequence[int], who: str) -> None:
    """Refuse ports that somebody listens on.

    Raises:
        ProgramMissing: one of them is taken.
    """
    for port in ports:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                raise ProgramMissing(f"Port {port} is taken: is a {who} running?") from error


def get(port: int, path: str) -> tuple[int, Any]:
    """Ask a program of ours: the status, and the JSON (None where the answer is not JSON)."""
    with contextlib.closing(HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        with contextlib.suppress(ValueError):
            return answer.status, json.loads(body)
        return answer.status, None


def named(variable: str) -> Path | None:
    """The program that a variable of the environment names.

    Raises:
        ProgramMissing: what it names is no program.
    """
    path = os.environ.get(variable)
    if path and not os.access(path, os.X_OK):
        raise ProgramMissing(f"{variable}={path} is not a program")
    return Path(path) if path else None


def go_built(name: str, sources: bytes, build: Callable[[str, Path], list[list[str]]]) -> Path:
    """A program that Go builds once, kept in a cache outside the checkout.

    Args:
        name: the program with its version.
        sources: what the build depends on; other sources make another program.
        build: from the path of Go and an empty folder to the commands that leave the program as
            `program` in that folder; they run there.

    Raises:
        ProgramMissing: there is no Go and no earlier build, or the build failed.
    """
    beside = str(Path(sys.executable).with_name("go"))  # `make go`
    go = shutil.which(beside) or shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    sums = hashlib.sha256(sources).hexdigest()[:12]
    if go is None:
        builds = sorted(_cache().glob(f"{name}-*-{sums}"))
        if not builds:
            raise ProgramMissing("no Go was found")
        return builds[-1]
    version = subprocess.check_output([go, "env", "GOVERSION"], text=True).strip()
    program = _cache() / f"{name}-{version}-{sums}"
    if not program.exists():
        with _locked(program.with_name(program.name + ".lock")):
            if not program.exists():  # another process may have built it meanwhile
                sys.stderr.write(f"Building {name} with {version} (once, some minutes)\n")
                _build(go, program, build)
    return program


def _build(go: str, program: Path, build: Callable[[str, Path], list[list[str]]]) -> None:
    environment = {**os.environ, "CGO_ENABLED": "0"}
    environment["PATH"] = f"{Path(go).parent}{os.pathsep}{environment.get('PATH', '')}"
    with tempfile.TemporaryDirectory(dir=program.parent) as scratch:
        for command in build(go, Path(scratch)):
            log = Path(scratch, "log")
            with log.open("w") as out:
                done = subprocess.run(
                    command, cwd=scratch, env=environment, stdout=out, stderr=out, check=False
                )
            if done.returncode != 0:
                sys.stderr.write(log.read_text()[-2000:])
                raise ProgramMissing(f"the build of {program.name} failed, as said above")
        Path(scratch, "program").replace(program)


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


class Service:
    """A program that runs inside the `with` block.

    Args:
        name: its name, for people.
        ports: its ports on 127.0.0.1; free ones where it is a number of ports.

    Attributes:
        folder: inside the block, a folder of its own that outlives a restart.
    """

    folder: Path

    def __init__(self, name: str, ports: int | Sequence[int]) -> None:
        self._name = name
        self._wanted = ports
        self.ports: tuple[int, ...] = (0,) * ports if isinstance(ports, int) else tuple(ports)
        self._process: subprocess.Popen[bytes] | None = None
        self._held = contextlib.ExitStack()

    def command(self) -> tuple[list[str], Mapping[str, str]]:
        """What starts it on `self.ports`, and what to add to its environment."""
        raise NotImplementedError

    def is_up(self) -> bool:
        """Whether it answers; may raise OSError while it does not."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        if not isinstance(self._wanted, int):
            check_free(self._wanted, self._name)
        self.folder = Path(self._held.enter_context(tempfile.TemporaryDirectory()))
        for _ in range(STARTS if isinstance(self._wanted, int) else 1):
            if isinstance(self._wanted, int):
                self.ports = free_ports(self._wanted)
            if self.start():
                return self
        said = self.said()
        self._held.close()
        raise ProgramMissing(f"{self._name} did not start on {self.ports}:\n{said}")

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._held.close()

    def start(self) -> bool:
        """Start it on its ports; whether it came up."""
        command, settings = self.command()
        inherited = {name: text for name, text in os.environ.items() if name[:5] != "OTEL_"}
        with (self.folder / "log").open("wb") as log:
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
            with contextlib.suppress(OSError, HTTPException):
                if self.is_up():
                    return True
            time.sleep(0.05)
        self.stop()
        return False

    def stop(self) -> None:
        """End it, if it runs."""
        if self._process is None or self._process.stdin is None:
            return
        self._process.stdin.close()
        self._process.wait()

    def kill(self) -> None:
        """End it without a warning, as a machine that loses its power would."""
        os.kill(self._program(), 9)
        self.stop()

    def most_memory_mib(self) -> float:
        """The most resident memory that it has had."""
        status = Path(f"/proc/{self._program()}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    def _program(self) -> int:
        """The process id of the program, which is the first child of the shell that watches it."""
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        return int(children.read_text().split()[0])

    def said(self) -> str:
        """The end of what it printed."""
        return (self.folder / "log").read_text(errors="replace")[-3000:]

    def answers(self, port: int, path: str) -> bool:
        """Whether a path is answered with OK."""
        return get(port, path)[0] == HTTPStatus.OK
