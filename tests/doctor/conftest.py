"""`otel-loopguard doctor` in environments of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.doctor.environments import ROOT, bare
from tests.receiver import Receiver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Doctor = Callable[..., "Visit"]


class Visit(NamedTuple):
    """What a run of the doctor gave."""

    code: int
    report: dict[str, Any]
    out: str
    err: str

    @property
    def problems(self) -> dict[str, str]:
        """What each problem says, by its name."""
        return self._by_id(is_problem=True)

    @property
    def notes(self) -> dict[str, str]:
        """The same for what is only worth knowing."""
        return self._by_id(is_problem=False)

    def _by_id(self, *, is_problem: bool) -> dict[str, str]:
        return {
            each["id"]: f"{each['what']} | {each['why']} | {each['fix']}"
            for each in self.report["findings"]
            if each["is_problem"] is is_problem
        }


@pytest.fixture(scope="session")
def thin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with our package, the extra `auto`, and no framework: each of those costs time."""
    folder = tmp_path_factory.mktemp("thin") / "env"
    return bare(folder, "opentelemetry-distro", "opentelemetry-configuration")


@pytest.fixture(scope="session")
def without_distro(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with our package alone."""
    return bare(tmp_path_factory.mktemp("base") / "env")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
def doctor(tmp_path: Path, thin: Path, receiver: Receiver) -> Doctor:
    """Runs the doctor as a user would, with a receiver to send to unless told otherwise."""

    def visit(
        *options: str,
        python: Path = thin,
        before: Sequence[str] = (),
        json_too: bool = True,
        **environ: str,
    ) -> Visit:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "PYTHONPATH"))}
        usual = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_SERVICE_NAME": "shop",
        }
        asked = ["--json", *options] if json_too else options
        path = [environ.pop("PYTHONPATH", ""), str(ROOT)]
        done = subprocess.run(
            [*before, str(python), "-m", "otel_loopguard.cli", "doctor", *asked],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**kept, **usual, **environ, "PYTHONPATH": os.pathsep.join(filter(None, path))},
            timeout=110,
            check=False,
        )
        report = json.loads(done.stdout) if json_too and done.stdout else {}
        return Visit(done.returncode, report, done.stdout, done.stderr)

    return visit


@pytest.fixture
def full() -> Path:
    """The Python that runs the tests, which has the frameworks."""
    return Path(sys.executable)
