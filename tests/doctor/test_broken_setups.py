"""Each broken set-up is a process of its own, and the doctor names what is wrong with it."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from otel_loopguard.cli import main
from otel_loopguard.cli.doctor_metrics import BORN_LATE
from otel_loopguard.instrumentation import FRAMEWORKS
from tests.doctor.environments import ROOT
from tests.receiver import Receiver
from tests.test_zero_code import COMMAND, needs_distro

if TYPE_CHECKING:
    from tests.doctor.conftest import Doctor

pytestmark = needs_distro


def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def package(folder: Path, name: str, group: str, point: str, code: str) -> str:
    """Install a package with one entry point into a folder; gives the folder for PYTHONPATH."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{point}\n")
    (folder / f"{name}.py").write_text(code)
    return str(folder)


class TestTheEight:
    def test_no_sdk(self, doctor: Doctor, without_distro: Path) -> None:
        visit = doctor(python=without_distro)
        assert visit.code == 1
        assert list(visit.problems) == ["no-sdk"]
        assert 'pip install "otel-loopguard[auto]"' in visit.problems["no-sdk"]

    @pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
    def test_wrong_endpoint(self, doctor: Doctor, protocol: str) -> None:
        port = closed_port()
        visit = doctor(
            OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{port}",
            OTEL_EXPORTER_OTLP_PROTOCOL=protocol,
        )
        assert visit.code == 1
        assert list(visit.problems) == ["unreachable"]
        assert f"127.0.0.1:{port}" in visit.problems["unreachable"]
        assert "traces, metrics" in visit.problems["unreachable"]

    def test_unsampled(self, doctor: Doctor, receiver: Receiver) -> None:
        visit = doctor(OTEL_TRACES_SAMPLER="always_off")
        assert visit.code == 1
        assert list(visit.problems) == ["unsampled"]
        assert "OTEL_TRACES_SAMPLER=always_off" in visit.problems["unsampled"]
        assert visit.report["trace_id"] is None
        assert receiver.spans == []

    def test_no_events_allowed(self, doctor: Doctor) -> None:
        visit = doctor(OTEL_SPAN_EVENT_COUNT_LIMIT="0")
        assert visit.code == 1
        assert list(visit.problems) == ["no-event"]
        assert "OTEL_SPAN_EVENT_COUNT_LIMIT=0" in visit.problems["no-event"]

    def test_another_provider(self, doctor: Doctor, tmp_path: Path) -> None:
        code = (
            "from opentelemetry import trace\n"
            "class Provider(trace.NoOpTracerProvider): pass\n"
            "class Configurator:\n"
            "    def configure(self, **_): trace.set_tracer_provider(Provider())\n"
        )
        group, point = "opentelemetry_configurator", "vendor = vendor:Configurator"
        path = package(tmp_path / "site", "vendor", group, point, code)
        visit = doctor(PYTHONPATH=path, OTEL_PYTHON_CONFIGURATOR="vendor")
        assert visit.code == 1
        assert "vendor.Provider" in visit.problems["other-provider"]
        assert next(iter(visit.problems)) == "other-provider"

    def test_sdk_disabled(self, doctor: Doctor) -> None:
        visit = doctor(OTEL_SDK_DISABLED="true")
        assert visit.code == 1
        assert list(visit.problems) == ["sdk-disabled"]

    def test_old_framework(self, doctor: Doctor, full: Path, tmp_path: Path) -> None:
        uv = Path(sys.executable).with_name("uv")
        install = [str(uv), "pip", "install", "--quiet", "--no-deps", "--target", "old"]
        done = subprocess.run(
            [*install, "--python", str(full), "openai==1.30.0"], cwd=tmp_path, check=False
        )
        if done.returncode and not os.environ.get("CI"):
            pytest.skip("needs a package index")
        visit = doctor(python=full, PYTHONPATH=f"{tmp_path / 'old'}")
        assert visit.code == 1
        assert list(visit.problems) == ["framework-version"]
        assert "openai 1.30.0" in visit.problems["framework-version"]
        assert 'pip install "openai>=1.68,<4"' in visit.problems["framework-version"]

    @pytest.mark.parametrize(
        "variable",
        ["OTEL_PYTHON_DISABLED_INSTRUMENTATIONS=loopguard", "OTEL_LOOPGUARD_DISABLED=true"],
    )
    def test_instrumentor_disabled(self, doctor: Doctor, variable: str) -> None:
        visit = doctor(**dict([variable.split("=")]))
        assert visit.code == 1
        assert list(visit.problems) == ["switched-off"]
        assert variable in visit.problems["switched-off"]


class TestOthers:
    def test_no_exporter(self, doctor: Doctor) -> None:
        visit = doctor(OTEL_TRACES_EXPORTER="none")
        assert list(visit.problems) == ["no-traces-exporter"]
        assert "OTEL_TRACES_EXPORTER=none" in visit.problems["no-traces-exporter"]

    @pytest.mark.parametrize(
        ("variable", "said"),
        [
            ("OTEL_TRACES_EXPORTER=jaeger", "'jaeger' not found"),
            ("OTEL_PYTHON_CONFIGURATOR=aws", "aws is set by OTEL_PYTHON_CONFIGURATOR"),
        ],
    )
    def test_what_is_not_installed(self, doctor: Doctor, variable: str, said: str) -> None:
        visit = doctor(**dict([variable.split("=")]))
        assert visit.code == 1
        assert said in visit.problems["no-sdk"]

    def test_the_other_protocol(self, doctor: Doctor) -> None:
        visit = doctor("--timeout", "3", OTEL_EXPORTER_OTLP_PROTOCOL="grpc")
        assert list(visit.problems) == ["traces-refused", "metrics-refused"]
        assert "protocol" in visit.problems["traces-refused"]

    def test_some_are_sampled(self, doctor: Doctor, receiver: Receiver) -> None:
        environ = {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.1"}
        visit = doctor(**environ)
        assert visit.code == 0
        assert "metrics still count it" in visit.notes["unsampled"]
        assert len(receiver.severities) == 1
        without = doctor(**environ, OTEL_METRICS_EXPORTER="none")
        assert list(without.problems) == ["unsampled"]

    def test_attributes_dropped(self, doctor: Doctor) -> None:
        visit = doctor(OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT="4")
        assert list(visit.problems) == ["attributes-dropped"]
        assert "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT=4" in visit.problems["attributes-dropped"]

    @pytest.mark.parametrize(("limit", "code"), [("9", 1), ("200", 0)])
    def test_values_cut(self, doctor: Doctor, limit: str, code: int) -> None:
        visit = doctor(OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT=limit)
        assert visit.code == code
        assert f"={limit}" in {**visit.problems, **visit.notes}["values-cut"]

    def test_our_own_settings(self, doctor: Doctor) -> None:
        visit = doctor(
            OTEL_LOOPGUARD_HARD_LOP_WARNING="4",
            OTEL_LOOPGUARD_EMIT="metric",
            OTEL_LOOPGUARD_MUTED_PATTERNS="hard_loop",
        )
        assert list(visit.problems) == ["setting"]
        assert "OTEL_LOOPGUARD_HARD_LOOP_WARNING" in visit.problems["setting"]
        assert "without span" in visit.notes["emit"]
        assert "hard_loop" in visit.notes["muted"]

    def test_an_instrumentor_that_raises_stops_those_after_it(
        self, doctor: Doctor, tmp_path: Path
    ) -> None:
        code = "class Instrumentor:\n    def __init__(self): raise RuntimeError('no luck')\n"
        group, point = "opentelemetry_instrumentor", "broken = broken:Instrumentor"
        path = package(tmp_path / "site", "broken", group, point, code)
        nobody = f"http://127.0.0.1:{closed_port()}"
        visit = doctor(PYTHONPATH=path, OTEL_EXPORTER_OTLP_ENDPOINT=nobody)
        assert list(visit.problems) == ["not-loaded", "unreachable"]
        assert "no luck" in visit.problems["not-loaded"]
        left_out = doctor(PYTHONPATH=path, OTEL_PYTHON_DISABLED_INSTRUMENTATIONS="broken")
        assert left_out.code == 0

    def test_two_instrumentors_of_one_name(self, doctor: Doctor, tmp_path: Path) -> None:
        code = (
            "from opentelemetry.instrumentation.instrumentor import BaseInstrumentor\n"
            "class Instrumentor(BaseInstrumentor):\n"
            "    def instrumentation_dependencies(self): return ()\n"
            "    def _instrument(self, **_): pass\n"
            "    def _uninstrument(self, **_): pass\n"
        )
        for name in ("one", "two"):
            package(
                tmp_path / "site",
                name,
                "opentelemetry_instrumentor",
                f"x = {name}:Instrumentor",
                code,
            )
        visit = doctor(PYTHONPATH=str(tmp_path / "site"))
        assert visit.code == 0
        assert "x" in visit.notes["clash"]

    def test_only_the_console(self, doctor: Doctor, receiver: Receiver) -> None:
        visit = doctor(OTEL_TRACES_EXPORTER="console")
        assert visit.code == 0
        assert "console-only" in visit.notes
        assert receiver.spans == []

    @pytest.mark.parametrize("status", [401, 404, 500])
    def test_a_receiver_that_refuses(self, doctor: Doctor, status: int) -> None:
        with Receiver(status) as refusing:
            visit = doctor("--timeout", "3", OTEL_EXPORTER_OTLP_ENDPOINT=refusing.url)
        assert list(visit.problems) == ["traces-refused", "metrics-refused"]
        assert status == 500 or str(status) in visit.problems["traces-refused"]
        assert "OTEL_TRACES_EXPORTER=none" not in visit.problems["traces-refused"]
        given_up = "OTEL_METRICS_EXPORTER=none" in visit.problems["metrics-refused"]
        assert given_up is (status == 404)

    def test_switched_off_in_the_configuration_file(
        self, doctor: Doctor, receiver: Receiver, tmp_path: Path
    ) -> None:
        pytest.importorskip("opentelemetry.configuration")
        exporter = f"otlp_http: {{endpoint: '{receiver.url}/v1/traces'}}"
        file = tmp_path / "otel.yaml"
        file.write_text(
            "file_format: '1.0-rc.1'\n"
            f"tracer_provider: {{processors: [{{simple: {{exporter: {{{exporter}}}}}}}]}}\n"
            "instrumentation/development: {python: {loopguard: {enabled: false}}}\n"
        )
        visit = doctor(OTEL_CONFIG_FILE=str(file))
        assert list(visit.problems) == ["switched-off"]
        assert "enabled: false" in visit.problems["switched-off"]
        assert receiver.severities == ["warning"]

    def test_a_broken_configuration_file(self, doctor: Doctor, tmp_path: Path) -> None:
        pytest.importorskip("opentelemetry.configuration")
        file = tmp_path / "otel.yaml"
        file.write_text("file_format: '1.0'\ntracer_provider: {processors: [{loopguard: {}}]}\n")
        visit = doctor(OTEL_CONFIG_FILE=str(file))
        assert "no-sdk" in visit.problems
        assert f"OTEL_CONFIG_FILE={file}" in visit.problems["no-sdk"]


OWN_SDK = """
import otel_loopguard
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
"""


class TestAnSdkOfOnesOwn:
    def test_all_is_well(self, doctor: Doctor, receiver: Receiver, tmp_path: Path) -> None:
        code = OWN_SDK + "trace.set_tracer_provider(provider)\notel_loopguard.instrument()\n"
        (tmp_path / "setup_sdk.py").write_text(code)
        visit = doctor("--import", "setup_sdk")
        assert visit.code == 0
        assert receiver.severities == ["warning"]
        assert "no exporter for metrics" in visit.notes["no-metrics-exporter"]

    def test_a_provider_that_is_passed_on(
        self, doctor: Doctor, receiver: Receiver, tmp_path: Path
    ) -> None:
        code = OWN_SDK + "otel_loopguard.instrument(tracer_provider=provider, emit='span')\n"
        (tmp_path / "setup_sdk.py").write_text(code)
        visit = doctor("--import", "setup_sdk")
        assert visit.code == 0
        assert receiver.severities == ["warning"]
        assert "without metric" in visit.notes["emit"]

    def test_nobody_calls_instrument(self, doctor: Doctor, tmp_path: Path) -> None:
        (tmp_path / "setup_sdk.py").write_text(OWN_SDK + "trace.set_tracer_provider(provider)\n")
        visit = doctor("--import", "setup_sdk")
        assert list(visit.problems) == ["not-loaded"]

    def test_a_provider_that_is_not_the_global_one(self, doctor: Doctor, tmp_path: Path) -> None:
        (tmp_path / "setup_sdk.py").write_text(OWN_SDK + "otel_loopguard.instrument()\n")
        visit = doctor("--import", "setup_sdk")
        assert list(visit.problems) == ["no-sdk", "second-provider"]

    def test_a_module_that_never_comes_back(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "sleeper.py").write_text("import time\ntime.sleep(600)\n")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        monkeypatch.setattr("otel_loopguard.cli.doctor.START_S", 2)
        assert main(["doctor", "--import", "sleeper", "--timeout", "1"]) == 2
        assert "did not come to an end in 3 s" in capsys.readouterr().err

    def test_a_module_that_is_not_there(self, doctor: Doctor) -> None:
        visit = doctor("--import", "no_such_module")
        assert visit.code == 2
        assert "No module named 'no_such_module'" in visit.err
        assert visit.out == ""


class TestHealthy:
    def test_everything_is_hooked_and_the_deadlock_arrives(
        self, doctor: Doctor, full: Path, receiver: Receiver
    ) -> None:
        visit = doctor(python=full)
        assert (visit.code, visit.report["ok"], visit.problems) == (0, True, {})
        assert receiver.severities == ["warning"]
        (told,) = (span for span in receiver.spans if span.events)
        assert told.trace_id.hex() == visit.report["trace_id"]
        for name in visit.report["facts"]["trial"]["metrics"]:
            forms = [name.replace(".", "_") + suffix for suffix in ("", "_total", "_count")]
            assert any(map(BORN_LATE.fullmatch, forms)), name
        installed = {
            name for name, needs in FRAMEWORKS.items() if find_spec(needs[0].split(".")[0])
        }
        assert {each["name"] for each in visit.report["facts"]["frameworks"]} == installed
        assert all(each["hooked"] for each in visit.report["facts"]["frameworks"])

    def test_under_the_command_itself(self, doctor: Doctor, thin: Path, receiver: Receiver) -> None:
        visit = doctor(json_too=False, OTEL_TRACES_EXPORTER="otlp,console")
        assert visit.code == 0, visit.out
        assert receiver.names["execute_tool trial"] == 3
        lines = visit.out.splitlines()
        assert lines[-1] == "all is well"
        assert len(lines) < 25

    def test_options_of_the_command_count(self, doctor: Doctor, thin: Path) -> None:
        command = [str(COMMAND), "--traces_sampler", "always_off"]
        visit = doctor(before=command, python=thin)
        assert list(visit.problems) == ["unsampled"]

    def test_through_a_proxy(self, doctor: Doctor, receiver: Receiver) -> None:
        endpoint = "http://collector.invalid:4318"
        visit = doctor(OTEL_EXPORTER_OTLP_ENDPOINT=endpoint, HTTP_PROXY=receiver.url)
        assert {path for path, _ in receiver.bodies} >= {f"{endpoint}/v1/traces"}
        assert visit.code == 0

    def test_the_readme_shows_what_it_prints(self, doctor: Doctor) -> None:
        readme = (ROOT / "README.md").read_text()
        shown = re.search(
            r"\$ (OTEL\S+) otel-loopguard doctor\n\.\.\.\n(.*?)```", readme, re.DOTALL
        )
        assert shown is not None
        variable, text = shown.groups()
        visit = doctor(json_too=False, **dict([variable.split("=")]))
        assert text.removesuffix("\n1 problem\n") in visit.out

    @pytest.mark.parametrize("works", [True, False])
    def test_no_secret_is_shown(self, doctor: Doctor, receiver: Receiver, works: bool) -> None:
        address = receiver.url if works else f"http://127.0.0.1:{closed_port()}"
        visit = doctor(
            OTEL_EXPORTER_OTLP_ENDPOINT=address.replace("//", "//user:hunter2@"),
            OTEL_EXPORTER_OTLP_HEADERS="key=hunter2",
            OTEL_TRACES_SAMPLER_ARG="http://user:hunter2@127.0.0.1",
        )
        assert visit.report["ok"] is works
        assert "hunter2" not in visit.out
        assert "hunter2" not in visit.err
