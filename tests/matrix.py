"""Run the framework tests in one environment per row of `matrix.toml` (`make matrix`)."""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
LOGS = ROOT / "build" / "matrix"
PASSED = re.compile(r"\d+ passed.*")


@dataclass(frozen=True)
class Row:
    """One framework at one version, as in `matrix.toml`."""

    framework: str
    version: str
    python: str
    requirements: list[str]
    tests: list[str]

    @property
    def name(self) -> str:
        return f"{self.framework}-{self.version}"


def load() -> list[Row]:
    """The rows, in their order."""
    table = tomllib.loads((ROOT / "tests" / "matrix.toml").read_text())
    rows = [Row(**row) for row in table["row"]]
    for row in rows:
        if row.version == "oldest":
            row.requirements.extend(table["oldest"])
    return rows


def environment(row: Row, log: Path) -> Path | None:
    """The Python of the row's environment, made anew when what it holds has changed.

    Returns:
        None when it cannot be made; the log says why.
    """
    folder = ROOT / ".envs" / row.name
    python = folder / "bin" / "python"
    held = "\n".join([row.python, *row.requirements, (ROOT / "pyproject.toml").read_text()])
    digest = hashlib.sha256(held.encode()).hexdigest()
    ready = folder / ".ready"
    if ready.exists() and ready.read_text() == digest:
        return python
    shutil.rmtree(folder, ignore_errors=True)
    uv = str(Path(sys.executable).with_name("uv"))
    install = [uv, "pip", "install", "--python", str(python), "--group", "tests"]
    steps = [
        [uv, "venv", "--python", _interpreter(row.python), str(folder)],
        [*install, "--editable", ".[auto]", *row.requirements],
    ]
    if not all(_run(step, log) for step in steps):
        return None
    ready.write_text(digest)
    return python


def _interpreter(version: str) -> str:
    """A path or, where uv has to find one itself, the bare version."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    installed = sorted(pyenv.glob(f"{version}.*/bin/python"))
    return str(installed[-1]) if installed else version


def _run(command: list[str], log: Path) -> bool:
    with log.open("a") as out:
        out.write(f"$ {' '.join(command)}\n")
        out.flush()
        done = subprocess.run(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, check=False)
    return done.returncode == 0


def run(row: Row) -> bool:
    """Run the row's tests and print its line; tests that are all skipped do not pass."""
    log = LOGS / f"{row.name}.log"
    log.write_text("")
    python = environment(row, log)
    command = [str(python), "-m", "pytest", "-q", "-m", "not e2e", *row.tests]
    done = python is not None and _run(command, log)
    said = log.read_text().strip().splitlines()
    passed = done and PASSED.search(said[-1]) is not None
    print(f"{row.name:32} {'passed' if passed else 'FAILED'}  python {row.python}  {said[-1]}")
    if not passed:
        print("\n".join(["", *said[-40:], f"The whole of it: {log.relative_to(ROOT)}", ""]))
    sys.stdout.flush()
    return passed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--framework", help="only rows of this framework")
    parser.add_argument("--version", help="only rows of this version: oldest, newest, ...")
    chosen = parser.parse_args()
    rows = [
        row
        for row in load()
        if chosen.framework in (None, row.framework) and chosen.version in (None, row.version)
    ]
    if not rows:
        parser.error("no such row in tests/matrix.toml")
    LOGS.mkdir(parents=True, exist_ok=True)
    passed = sum(run(row) for row in rows)
    print(f"{passed} passed, {len(rows) - passed} failed")
    return int(passed < len(rows))


if __name__ == "__main__":
    sys.exit(main())
