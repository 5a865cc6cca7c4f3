"""The progress bar of `otel-loopguard scan`, on a real terminal."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest

from otel_loopguard.cli.progress import LONG
from tests.test_scan import PAGE, case, write

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("pty", reason="there are no such terminals here")

CASES = 30
AT = re.compile(rb"([\d.]+)/([\d.]+) MB")
ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


class Shown(NamedTuple):
    """What a command has written to its terminal, and what into a pipe."""

    terminal: bytes
    pipe: bytes
    code: int

    @property
    def positions(self) -> list[float]:
        """Which share of the input the bar said was read, each time that it was drawn."""
        return [float(done) / float(whole) for done, whole in AT.findall(self.terminal)]


def scan_at_a_terminal(file: str, *, piped: bool) -> Shown:
    """Scan a file where somebody looks; its results go to the terminal too, or into a pipe."""
    command = [sys.executable, "-m", "otel_loopguard.cli", "scan", "--json", file]
    ours, its = os.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
    with subprocess.Popen(
        command, stdin=its, stdout=subprocess.PIPE if piped else its, stderr=its, env=env
    ) as process:
        os.close(its)
        terminal = bytearray()
        while True:
            try:
                read = os.read(ours, 65_536)
            except OSError:  # how Linux says that nobody has the terminal open any more
                break
            if not read:
                break
            terminal += read
        pipe = process.stdout.read() if process.stdout else b""
        code = process.wait()
    os.close(ours)
    return Shown(bytes(terminal), pipe, code)


def archive(path: Path, size: int) -> str:
    """So many bytes of cases, all of them loops with long results."""
    text = PAGE * (size // CASES // 5 // len(PAGE) + 1)
    return write(path, *[case(str(n), result=text) for n in range(CASES)])


def test_long_input_shows_how_far_it_is_and_leaves_nothing_behind(tmp_path: Path) -> None:
    shown = scan_at_a_terminal(archive(tmp_path, LONG), piped=True)
    assert shown.positions[0] == 0
    assert shown.positions == sorted(shown.positions), "the bar never goes back"
    assert shown.positions[-1] > 0.9
    assert shown.terminal.count(b"\x1b[?25l") == shown.terminal.count(b"\x1b[?25h"), "cursor"
    after = shown.terminal.rpartition(b"\n")[2]
    assert b"\x1b[2K" in after, "its line is erased"
    assert not ESCAPES.sub(b"", after).strip()
    assert [json.loads(line)["id"] for line in shown.pipe.splitlines()] == [*map(str, range(CASES))]
    assert shown.code == 1


def test_results_on_the_same_terminal_are_not_torn(tmp_path: Path) -> None:
    shown = scan_at_a_terminal(archive(tmp_path, LONG), piped=False)
    assert shown.positions
    plain = ESCAPES.sub(b"", shown.terminal).replace(b"\r", b"\n").splitlines()
    told = [json.loads(line)["id"] for line in plain if line.startswith(b"{")]
    assert told == [*map(str, range(CASES))]


def test_short_input_shows_no_bar(tmp_path: Path) -> None:
    shown = scan_at_a_terminal(write(tmp_path, case()), piped=True)
    assert shown.terminal == b""
    assert len(shown.pipe.splitlines()) == 1
