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
GOOD = {
    "address": ["http://127.0.0.1:4318", "https://host.example.com", "https://h:443/api/v2/otlp/"],
    "host and port": ["tempo:4317", "10.0.0.1:4317", "[::1]:4317", "http://tempo:4317"],
    "key": ["abc", "12345", "1e10", "null", "hcaik_01hq+/abc==", "glc_eyJvIjoi", "dt0c01.A-B.C_D"],
    "header": ["", "Basic dXNlcjpwYXNz", "Bearer abc.def-ghi"],
}
"""The forms that a variable may have, and a value of each."""
BAD = {
    "address": [
        "", "  ", "jaeger", "jaeger:4318", "10.0.0.1:4318", "http//x", "://x", "//x", "http://",
        "http:///path", "ftp://x", "http://x:port", "http://a b", " http://x", "http://x\n",
    ],
    "host and port": ["", "  ", "tempo", "tempo:", "a:port", "http://", "http//x", "://x", "a:1\n"],
    "key": ["", "  ", "\t", "\n", "secret\n", "secret\r\n", "secret\nsecret", "\nsecret"],
    "header": ["Bearer secret\n", "Bearer secret\nsecret", "Bearer secret\r\n"],
}  # fmt: skip
FORMS = {"TEMPO_ENDPOINT": "host and port", "LOOPGUARD_GATEWAY": "host and port"}
FORMS |= {"OTLP_AUTHORIZATION": "header", "DD_AGENT_OTLP": "address"}
FREE = {"HONEYCOMB_DATASET", "TEMPO_INSECURE"}


def form(name: str) -> str:
    """What a variable of a backend has to look like."""
    return FORMS.get(name) or ("address" if name.endswith("_ENDPOINT") else "key")


def variables(file: Path) -> set[str]:
    """What a file reads and checks."""
    names = set(re.findall(r"\$\{env:(\w+)", file.read_text())) - FREE
    return {name for name in names if name in FORMS or not name.startswith("LOOPGUARD_")}


def needed(file: Path) -> dict[str, str]:
    """The variables that a file reads without a default, with values."""
    names = re.findall(r"\$\{env:(\w+)\}", file.read_text())
    return {name: GOOD[form(name)][0] for name in names}


def together(file: Path) -> list[Path]:
    return [file] if file == AGENT else [COLLECTOR, file]


def refused(said: str) -> set[str]:
    """The variables that a refusal names."""
    return set(re.findall(r"(?:prometheus|otlp_grpc|bearertokenauth)/([A-Z_]+)\b", said))


@pytest.mark.parametrize("file", EXPORTERS, ids=lambda file: file.stem)
def test_an_exporter_is_valid_once_its_variables_are_set(file: Path) -> None:
    done = otelcol("validate", COLLECTOR, file, settings=needed(file))
    assert done.returncode == 0, done.stderr
    assert "deprecated" not in done.stderr


@pytest.mark.parametrize("file", [*EXPORTERS, AGENT], ids=lambda file: file.stem)
def test_a_variable_that_is_missing_or_malformed_is_named(file: Path) -> None:
    settings = needed(file)
    assert settings
    for name in variables(file):
        for given in GOOD[form(name)]:
            done = otelcol("validate", *together(file), settings={**settings, name: given})
            assert done.returncode == 0, (name, given, done.stderr)
        wrong = [{**settings, name: given} for given in BAD[form(name)]]
        if name in settings:
            wrong.append({other: given for other, given in settings.items() if other != name})
        for environment in wrong:
            done = otelcol("validate", *together(file), settings=environment)
            assert done.returncode != 0, (name, environment)
            assert refused(done.stderr) == {name}, (environment, done.stderr)
            assert "secret" not in done.stderr


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
    assert unknown(together(file)) == []


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
