"""What is wrong between metrics and page: rules that watch nothing, telemetry that is lost."""

from __future__ import annotations

import re
from difflib import get_close_matches
from itertools import chain
from typing import TYPE_CHECKING, Final

from otel_loopguard.cli.doctor_sources import Rule, Source, connect, rules_of_file
from otel_loopguard.cli.finding import CannotRunError, Finding
from otel_loopguard.cli.promql import Selector, selectors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_ABOUT_US: Final = re.compile("loopguard|deadlock", re.IGNORECASE)
BORN_LATE: Final = re.compile(
    r"loopguard_(deadlocks|interventions|wasted_tokens|deadlock_(events|logs)|stuck_spans"
    r"|(watched_)?tool_spans)_total"
    r"|loopguard_stuck_runs|loopguard_iterations_(bucket|count|sum)|otelcol_\w+"
)
"""Series that exist only once the first deadlock, run or failure has been."""


def judge_metrics(urls: Sequence[str], files: Sequence[str]) -> list[Finding]:
    """Judge rules by the series that there are.

    Args:
        urls: of a Prometheus, or of pages of metrics.
        files: of rules; without any, those that a Prometheus has loaded and that are about us.

    Raises:
        CannotRunError: if a file or a URL is none.
    """
    if files and not urls:
        raise CannotRunError("--rules needs --metrics URL, to see which series are written")
    rules = [rule for file in files for rule in rules_of_file(file)]
    sources: list[Source] = []
    findings: list[Finding] = []
    for url in urls:
        found = _connect(url)
        if isinstance(found, Finding):
            findings.append(found)
        else:
            sources.append(found)
    if not sources:
        return findings
    if not files:
        loaded = [rule for source in sources for rule in source.rules()]
        rules = [rule for rule in loaded if _ABOUT_US.search(rule.text)]
        if loaded and not rules:
            findings.append(_no_rule(len(loaded)))
    for source in sources:
        findings += _judge_losses(source)
    return findings + list(_judge_rules(rules, sources))


def _connect(url: str) -> Source | Finding:
    try:
        return connect(url)
    except OSError as fault:
        return Finding(
            "metrics-unreachable",
            f"{url} does not answer: {fault}",
            "nobody can tell whether an alert would fire",
            "correct the address, or start what should answer there",
        )


def _no_rule(count: int) -> Finding:
    return Finding(
        "no-rule",
        f"none of the {count} rules in this Prometheus is about deadlocks",
        "nobody is paged",
        "add collector-config/prometheus/rules.yml to rule_files",
    )


def _judge_losses(source: Source) -> Iterator[Finding]:
    for loss in source.losses():
        where = ", ".join(f"{name} {value}" for name, value in loss.labels.items())
        yield Finding(
            "lost",
            f"{loss.name} is {loss.value:.0f}{f' ({where})' if where else ''}, says {source.url}",
            "deadlocks may be among what was lost",
            "see what the collector logs; let its sending queue be on disk and large enough",
        )


def _judge_rules(rules: Sequence[Rule], sources: Sequence[Source]) -> Iterator[Finding]:
    """Find rules that watch what nobody writes, each pair of rule and series once."""
    recorded = {rule.name for rule in rules if rule.records}
    names = set(chain.from_iterable(source.names() for source in sources))
    unborn: dict[str, None] = {}
    for rule in rules:
        if rule.fault:
            yield _faulty(rule)
        for watched in dict.fromkeys(selectors(rule.expression)):
            if watched.name is None or watched.name in recorded or watched.of_absence:
                continue
            series = [labels for source in sources for labels in source.series(watched.name)]
            if series:
                yield from _judge_labels(rule, watched, set(chain.from_iterable(series)))
            elif BORN_LATE.fullmatch(watched.name):
                unborn[watched.name] = None
            else:
                yield _unwritten(rule, watched.name, names | recorded)
    if unborn:
        yield Finding(
            "not-yet-written",
            f"not written yet: {', '.join(unborn)}",
            "right if nothing of that kind has happened in the last day; else the metrics of the "
            "agents or of the collector do not arrive here",
            "see whether the test deadlock of this run is counted there in a minute",
            is_problem=False,
        )


def _faulty(rule: Rule) -> Finding:
    return Finding(
        "rule-fails",
        f"rule {rule.name} fails: {rule.fault}",
        "it fires for nobody",
        "correct its expression; promtool check rules shows where",
    )


def _unwritten(rule: Rule, name: str, names: set[str]) -> Finding:
    close = get_close_matches(name, sorted(names), n=1)
    return Finding(
        "rule-watches-nothing",
        f"rule {rule.name} watches {name}, which nobody writes",
        "it never fires",
        f"watch {close[0]}" if close else "correct the name, or remove the rule",
    )


def _judge_labels(rule: Rule, watched: Selector, labels: set[str]) -> Iterator[Finding]:
    for label in sorted(watched.labels - labels):
        close = get_close_matches(label, sorted(labels), n=1, cutoff=0.5)
        yield Finding(
            "rule-watches-nothing",
            f"rule {rule.name} asks for the label {label}, which no series {watched.name} has",
            "it never fires",
            f"ask for {close[0]}" if close else "correct the label's name",
        )
