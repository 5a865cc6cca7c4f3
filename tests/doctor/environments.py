"""Environments that lack a package: the one that runs the tests, with only a part of it."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def bare(folder: Path, *packages: str) -> Path:
    """A virtual environment with our package, what it requires, and what these require.

    Its packages are links to the installed files, so it costs no time and no network.

    Returns:
        Its Python.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in required("otel-loopguard", *packages):
        for file in distribution(name).files or ():
            if file.suffix in {".pyc", ".pth"} or ".." in file.parts:
                continue
            link = site / file
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.exists():
                link.symlink_to(Path(str(file.locate())))
    (site / "here.pth").write_text(str(ROOT))
    return folder / "bin" / "python"


def required(*names: str) -> set[str]:
    """These packages and all that they require, without extras."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = re.split(r"[\s<>=!~;\[(]", waiting.pop(), maxsplit=1)[0].lower()
        try:
            needs = distribution(name).requires or []
        except PackageNotFoundError:  # for another version of Python
            continue
        if name not in found:
            found.add(name)
            waiting += [need for need in needs if "extra ==" not in need]
    return found
