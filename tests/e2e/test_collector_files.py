"""Each file of collector-config/ is taken by the program that it is for, in the pinned version."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.e2e.backends.collector import COLLECTOR, CONFIG, otelcol
from tests.e2e.backends.prometheus import FILES, ask

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.e2e

EXPORTERS = sorted((CONFIG / "exporters").glob("*.yaml"))
AGENT = CONFIG / "agent.yaml"
SHOWN_OTHERWISE = re.compile(r"tail_sampling::policies|::headers::|otlp_grpc::tls$")
"""Headers may have any name; the other two are refused by `validate` where they are wrong."""
VALUES = {"TEMPO_ENDPOINT": "tempo:4317", "LOOPGUARD_GATEWAY": "gateway:4317"}


def needed(file: Path) -> dict[str, str]:
    """The variables that a file reads without a default, with values."""
    names = re.findall(r"\$\{env:(\w+)\}", file.read_text())
    return {name: VALUES.get(name, "http://127.0.0.1:4318") for name in names}


def named(said: str) -> set[str]:
    return set(re.findall(r"bearertokenauth/(\w+): no bearer token provided", said))


@pytest.mark.parametrize("file", EXPORTERS, ids=lambda file: file.stem)
def test_an_exporter_is_valid_once_its_variables_are_set(file: Path) -> None:
    done = otelcol("validate", COLLECTOR, file, settings=needed(file))
    assert done.returncode == 0, done.stderr
    assert "deprecated" not in done.stderr


@pytest.mark.parametrize("file", [*EXPORTERS, AGENT], ids=lambda file: file.stem)
def test_a_variable_that_is_not_set_or_empty_is_named(file: Path) -> None:
    files = [file] if file == AGENT else [COLLECTOR, file]
    settings = needed(file)
    assert settings
    for missing in settings:
        less = {name: text for name, text in settings.items() if name != missing}
        for given in (less, {**less, missing: ""}):
            done = otelcol("validate", *files, settings=given)
            assert done.returncode != 0
            assert named(done.stderr) == {missing}


def test_all_exporters_go_together() -> None:
    settings = {name: text for file in EXPORTERS for name, text in needed(file).items()}
    done = otelcol("validate", COLLECTOR, *EXPORTERS, settings=settings)
    assert done.returncode == 0, done.stderr


def test_the_sidecar_is_valid() -> None:
    done = otelcol("validate", AGENT, settings=needed(AGENT))
    assert done.returncode == 0, done.stderr


def test_the_chart_s_variables_make_a_valid_collector() -> None:
    values = yaml.safe_load((CONFIG / "kubernetes" / "values.yaml").read_text())
    given = {each["name"]: each["value"] for each in values["extraEnvs"]}
    done = otelcol("validate", COLLECTOR, CONFIG / "exporters" / "jaeger.yaml", settings=given)
    assert done.returncode == 0, done.stderr


def test_without_any_backend_it_refuses_to_start() -> None:
    done = otelcol("validate", COLLECTOR)
    assert done.returncode != 0
    assert "forward/traces" in done.stderr


def unknown(files: list[Path]) -> list[str]:
    """The keys of files that are used together that the collector's own view of them lacks.

    Some components pass over keys that they do not know, and `validate` says nothing of it.
    """
    settings = {name: text for file in files for name, text in needed(file).items()}
    done = otelcol("print-config", *files, settings=settings)
    assert done.returncode == 0, done.stderr
    known = yaml.safe_load(done.stdout)
    return [key for file in files for key in lost(yaml.safe_load(file.read_text()), known)]


def lost(given: Any, known: Any, path: str = "") -> Iterator[str]:
    if isinstance(given, dict):
        for key, value in given.items():
            if SHOWN_OTHERWISE.search(f"{path}{key}"):
                continue
            if not isinstance(known, dict) or key not in known:
                yield f"{path}{key}"
            else:
                yield from lost(value, known[key], f"{path}{key}::")
    elif isinstance(given, list) and isinstance(known, list):
        for one, other in zip(given, known, strict=False):
            yield from lost(one, other, path)


@pytest.mark.parametrize("file", [*EXPORTERS, AGENT], ids=lambda file: file.stem)
def test_the_collector_knows_each_key(file: Path) -> None:
    assert unknown([file] if file == AGENT else [COLLECTOR, file]) == []


def test_a_key_that_the_collector_does_not_know_is_found(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("exporters: {otlp_http/jaeger: {sending_queues: {storage: file_storage}}}")
    found = unknown([COLLECTOR, CONFIG / "exporters" / "jaeger.yaml", wrong])
    assert found == ["exporters::otlp_http/jaeger::sending_queues"]


@pytest.mark.parametrize(
    "command",
    [
        ("promtool", "check", "rules", FILES / "rules.yml"),
        ("promtool", "check", "config", FILES / "prometheus.yml"),
        ("promtool", "test", "rules", FILES / "rules_test.yml"),
        ("amtool", "check-config", FILES / "alertmanager.yml"),
    ],
    ids=lambda command: command[-1].stem,
)
def test_prometheus_and_alertmanager_take_their_files(command: tuple[str | Path, ...]) -> None:
    program, *arguments = command
    done = ask(str(program), *arguments)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("alert", "receiver"),
    [
        ({"alertname": "AgentStuck", "severity": "critical"}, "pager"),
        ({"alertname": "AgentMayBeStuck", "severity": "warning"}, "daytime"),
        ({"alertname": "LoopguardCollectorDown", "severity": "critical"}, "pager"),
    ],
)
def test_only_what_is_critical_goes_to_the_pager(alert: dict[str, str], receiver: str) -> None:
    labels = [f"{name}={text}" for name, text in alert.items()]
    file = f"--config.file={FILES / 'alertmanager.yml'}"
    done = ask(
        "amtool", "config", "routes", "test", file, f"--verify.receivers={receiver}", *labels
    )
    assert done.returncode == 0, done.stdout + done.stderr
