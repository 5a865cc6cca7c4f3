"""OpenTelemetry's own switches."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest

from otel_loopguard.runtime import boundary
from otel_loopguard.sdk.declared import is_enabled

if TYPE_CHECKING:
    from pathlib import Path

HEAD = 'file_format: "1.0-rc.1"\n'
LISTED = f"{HEAD}instrumentation/development:\n  python:\n    loopguard:"


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_CONFIG_FILE", raising=False)
    monkeypatch.delenv("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", raising=False)


def test_enabled_unless_somebody_says_otherwise() -> None:
    assert is_enabled()


@pytest.mark.parametrize(
    ("names", "enabled"),
    [("loopguard", False), ("redis , loopguard", False), ("*", False), ("redis", True), ("", True)],
)
def test_the_variable(names: str, enabled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", names)
    assert is_enabled() is enabled


@pytest.mark.skipif(
    not importlib.util.find_spec("opentelemetry.configuration"),
    reason="needs opentelemetry-configuration",
)
@pytest.mark.parametrize(
    ("text", "enabled"),
    [
        (HEAD, True),
        (LISTED + " {}\n", True),
        (LISTED + " {enabled: true}\n", True),
        (LISTED + " {enabled: false}\n", False),
        (LISTED.replace("loopguard", "redis") + " {enabled: false}\n", True),
    ],
)
def test_the_file(
    text: str, enabled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "otel.yaml"
    file.write_text(text)
    monkeypatch.setenv("OTEL_CONFIG_FILE", str(file))
    assert is_enabled() is enabled


def test_a_file_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OTEL_CONFIG_FILE", str(tmp_path / "absent.yaml"))
    boundary.reraise = False
    assert is_enabled()
    boundary.faults.clear()


def test_without_the_package_that_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_CONFIG_FILE", "otel.yaml")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    assert is_enabled()
