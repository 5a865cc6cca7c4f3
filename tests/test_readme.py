"""What the README shows works as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from otel_loopguard.core.detectors import BUILTIN
from otel_loopguard.instrumentation import FRAMEWORKS

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_start_runs_and_shows_what_it_promises(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    (line,) = re.findall(r"```\n(hard_loop .*?)\n```", README)
    assert len(code.strip().splitlines()) <= 20
    script = tmp_path / "start.py"
    script.write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert line in done.stderr
    assert done.stdout.count('"name": "loopguard.deadlock"') == 2
    assert '"description": "deadlock: hard_loop"' in done.stdout


def test_the_tables_are_complete() -> None:
    for name in FRAMEWORKS:
        assert re.search(rf"^\| .*\b{name}\b.* \|", README, flags=re.MULTILINE), name
    for pattern in BUILTIN:
        assert f"| `{pattern.value}` |" in README


def test_links_lead_somewhere() -> None:
    root = Path(__file__).resolve().parents[1]
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (root / target).exists(), target
    headings = {
        re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-")
        for heading in re.findall(r"^#+ (.*)$", README, flags=re.MULTILINE)
    }
    assert set(re.findall(r"\]\(#([^)]+)\)", README)) <= headings
