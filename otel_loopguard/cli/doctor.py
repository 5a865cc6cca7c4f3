"""`otel-loopguard doctor`: what is wrong between the agent and the page.

It starts a process as the agent's is started, lets it look around and send a deadlock, and judges
what it found.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from otel_loopguard.cli.doctor_export import judge_export
from otel_loopguard.cli.doctor_metrics import judge_metrics
from otel_loopguard.cli.doctor_process import (
    judge_frameworks,
    judge_instrumentor,
    judge_sdk,
    judge_settings,
)
from otel_loopguard.cli.doctor_screen import screen
from otel_loopguard.cli.finding import CannotRunError
from otel_loopguard.sdk.facts import BEGINS, without_credentials

if TYPE_CHECKING:
    import argparse

    from otel_loopguard.cli.finding import Finding
    from otel_loopguard.sdk.facts import Facts

START_S: Final = 60
"""How long the process may take besides waiting for exporters: frameworks are imported there."""
_PROBE: Final = ("-m", "otel_loopguard.instrumentation.probe")
_INSTRUMENT: Final = (
    "-c",
    "from opentelemetry.instrumentation.auto_instrumentation import run; run()",
)
_LINES: Final = 4
"""How many lines of what the process said are shown."""


def add_parser(commands: Any) -> None:
    """Add the command to the command line."""
    doctor: argparse.ArgumentParser = commands.add_parser(
        "doctor", help="say what is wrong between the agent and the page"
    )
    doctor.add_argument("--json", action="store_true", help="print one JSON object")
    doctor.add_argument(
        "--import",
        dest="module",
        metavar="MODULE",
        help="import this module instead of starting opentelemetry-instrument: where a program "
        "sets up its own SDK",
    )
    doctor.add_argument(
        "--timeout", type=float, default=10, help="seconds to wait for the exporters; 10 by default"
    )
    doctor.add_argument(
        "--metrics",
        action="append",
        default=[],
        metavar="URL",
        help="a Prometheus, or a page of metrics: look for lost telemetry and for rules that watch "
        "a series that nobody writes; may be given several times",
    )
    doctor.add_argument(
        "--rules",
        action="append",
        default=[],
        metavar="FILE",
        help="judge these Prometheus rules instead of those that the Prometheus has loaded",
    )


def diagnose(options: argparse.Namespace) -> int:
    """Run it.

    Returns:
        0 if all is well, 1 if there is a problem.

    Raises:
        CannotRunError: if it could not look.
    """
    facts, said = probe(options.module, options.timeout)
    findings = judge(facts, said, options.module)
    findings += judge_metrics(options.metrics, options.rules)
    has_problem = any(finding.is_problem for finding in findings)
    if options.json:
        shown: dict[str, Any] = {
            "ok": not has_problem,
            "trace_id": facts["trial"]["trace_id"],
            "findings": [finding._asdict() for finding in findings],
            "facts": facts,
            "said": said,
        }
        print(json.dumps(shown, indent=2))
    else:
        print(screen(facts, findings))
    return int(has_problem)


def probe(module: str | None, timeout_s: float) -> tuple[Facts, list[str]]:
    """Start a process like the agent's; gives what it found and what it said on standard error."""
    start = () if module is not None else (*_INSTRUMENT, sys.executable)
    modules = [module] if module is not None else []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "facts.json"
        command = [sys.executable, *start, *_PROBE, str(file), str(timeout_s), *modules]
        try:
            done = subprocess.run(  # noqa: S603 - our own module
                command,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=START_S + timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            raise CannotRunError(
                f"a process that was started like the agent's did not come to an end in "
                f"{late.timeout:.0f} s"
            ) from late
        said = _said(done.stderr.split(BEGINS)[0])
        if not file.exists():
            raise CannotRunError(
                "a process that was started like the agent's ended before it had looked around: "
                + "; ".join(_said(done.stderr))
            )
        return cast("Facts", json.loads(file.read_text(encoding="utf-8"))), said


def _said(text: str) -> list[str]:
    """The last lines of log messages and exceptions, without where they came from.

    What we say ourselves at the start is left out: it is found again by looking.
    """
    lines = [
        line.strip()
        for line in without_credentials(text).splitlines()
        if line
        and not line[0].isspace()
        and not line.startswith(("Traceback (", "The above exception", "During handling of"))
        and not line.startswith("otel_loopguard: ")
    ]
    return list(dict.fromkeys(lines))[-_LINES:]


def judge(facts: Facts, said: list[str], module: str | None) -> list[Finding]:
    """What is wrong, the cause before what follows from it."""
    findings = list(judge_sdk(facts, said, module))
    sends = facts["provider"]["kind"] != "none" and not any(
        f.id == "sdk-disabled" for f in findings
    )
    findings += judge_instrumentor(facts, said, module)
    findings += judge_frameworks(facts)
    findings += judge_settings(facts)
    if sends:
        findings += judge_export(facts)
    return findings
