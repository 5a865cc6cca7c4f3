"""The doctor's findings on one screen."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from otel_loopguard.cli.finding import Finding
    from otel_loopguard.sdk.facts import Exporter, Facts, Framework

_WIDTH: Final = 100


def screen(facts: Facts, findings: list[Finding]) -> str:
    """What was looked at, then what is wrong, what is worth knowing, and the verdict."""
    provider, ours, trial = facts["provider"], facts["instrumentor"], facts["trial"]
    state = "loaded" if ours["loaded"] else "not loaded"
    versions = [f"{name} {version}" for name, version in facts["versions"].items()]
    rows = [
        ("python", ", ".join([facts["python"], *versions])),
        ("provider", f"{provider['type']}, service {provider['service'] or 'without a name'}"),
        ("loopguard", f"{state}, {'attached' if ours['attached'] else 'not attached'}"),
        ("frameworks", ", ".join(map(_framework, facts["frameworks"])) or "none"),
        ("beside", _packages(facts) or "no other instrumentation"),
        *((exporter["signal"], _exporter(exporter)) for exporter in facts["exporters"]),
        ("test", _trial(trial["trace_id"], trial["events"])),
    ]
    lines = [line for name, text in rows for line in _wrap(f"{name:<11} ", text)]
    for finding in sorted(findings, key=lambda each: not each.is_problem):
        lines += ["", *_wrap("PROBLEM  " if finding.is_problem else "note     ", finding.what)]
        lines += _wrap("    why  ", finding.why) + _wrap("    do   ", finding.fix)
    count = sum(finding.is_problem for finding in findings)
    lines += ["", f"{count} {'problem' if count == 1 else 'problems'}" if count else "all is well"]
    return "\n".join(lines)


def _wrap(lead: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=lead,
        subsequent_indent=" " * len(lead),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _framework(framework: Framework) -> str:
    hooked = f"{framework['hooked']} hooks" if framework["hooked"] else "not hooked"
    return f"{framework['package']} {framework['version']} ({hooked})"


def _packages(facts: Facts) -> str:
    found: Iterable[str] = (f"{e['package']} {e['version']}" for e in facts["instrumentations"])
    return ", ".join(sorted(set(found)))


def _exporter(exporter: Exporter) -> str:
    where = f"{exporter['type']} to {exporter['endpoint'] or 'wherever it writes'}"
    if exporter["outcome"] == "success":
        return f"{where}: taken in {exporter['milliseconds']} ms"
    return f"{where}: {exporter['outcome']}"


def _trial(trace_id: str | None, events: int) -> str:
    if trace_id is None:
        return "no span could be recorded"
    return f"a deadlock of warning severity, trace {trace_id}, events handed over: {events}"
