"""Settings: the table of them, and what is made from it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import otel_loopguard.core
from otel_loopguard import variables
from otel_loopguard.core.detectors import BUILTIN
from otel_loopguard.settings import Settings, rows
from tests.settings_reading import CAPTURE, ENV_NAMES, PREFIX, read


def test_each_field_says_its_variable_and_its_meaning() -> None:
    for each in fields(Settings):
        assert each.metadata["doc"]
        if each.name not in ("thresholds", "capture_content"):
            assert each.metadata["env"] == PREFIX + each.name.upper()


def test_each_setting_of_a_detector_is_a_number_with_a_meaning_and_a_pair() -> None:
    for detector in BUILTIN.values():
        names = {each.name for each in fields(detector)}
        for each in fields(detector):
            assert type(each.default) is int
            assert each.metadata["doc"]
            assert each.name.replace("warning", "critical") in names
            assert each.name.replace("critical", "warning") in names


def test_the_table_has_each_setting_once() -> None:
    own = {each.metadata["env"] for each in fields(Settings) if each.name != "thresholds"}
    thresholds = {
        f"{PREFIX}{pattern.name}_{each.name.upper()}"
        for pattern, detector in BUILTIN.items()
        for each in fields(detector)
    }
    assert sorted(ENV_NAMES) == sorted(own | thresholds)
    assert all(row.allowed and row.default and row.meaning for row in rows())
    assert not any("|" in cell for row in rows() for cell in row)


def test_the_defaults_in_the_table_are_what_the_environment_may_say() -> None:
    environ = {row.variable: row.default for row in rows() if row.default != "unset"}
    assert read(environ) == Settings()


def test_the_module_prints_its_table() -> None:
    command = [sys.executable, "-W", "error", "-m", "otel_loopguard.settings"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert printed.stderr == ""
    head, rule, *lines = printed.stdout.splitlines()
    assert head == "| variable | value | default | meaning |"
    assert rule == "|---|---|---|---|"
    assert [tuple(line[2:-2].split(" | ")) for line in lines] == [
        (f"`{row.variable}`", *row[1:]) for row in rows()
    ]


def test_opentelemetry_instrument_offers_our_variables_as_options() -> None:
    ours = [name for name in ENV_NAMES if name != CAPTURE]
    assert [name for name in dir(variables) if name.startswith("OTEL_")] == sorted(ours)
    command = Path(sys.executable).with_name("opentelemetry-instrument")
    printed = subprocess.run([command, "--help"], capture_output=True, text=True, check=True)
    for name in ours:
        assert f"--{name.removeprefix('OTEL_').lower()} " in printed.stdout
    options = ["--loopguard_hard_loop_warning", "4"]
    environ = subprocess.run([command, *options, "env"], capture_output=True, text=True, check=True)
    assert "OTEL_LOOPGUARD_HARD_LOOP_WARNING=4" in environ.stdout.splitlines()


def test_nobody_else_reads_the_environment() -> None:
    package = Path(otel_loopguard.core.__file__).parents[1]
    readers = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if "environ" in (text := path.read_text("utf-8")).replace("environment", "")
        or "getenv" in text
    }
    assert readers == {"settings/__init__.py", "settings/opentelemetry.py"}
