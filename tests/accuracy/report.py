"""What was caught, late, missed, false and early, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.accuracy.counting import Tally, by_pattern, judge, total
from tests.accuracy.rules import RULES
from tests.accuracy.suites import hits_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.accuracy.suites import Case, Suite

WARNING = "guard"
CRITICAL = "guard, critical only"
OF_RULES = tuple(rule.name for rule in RULES)
SEVERITIES = {WARNING: ("warning", "critical"), CRITICAL: ("critical",)}
COUNTS = ("loops", "caught", "late", "missed", "quiet", "false", "early")

Judged = list[tuple["Case", Tally]]


class Report:
    """The verdicts on some suites: our own, at both severities, and those of the simple rules.

    Attributes:
        judged: for each suite and each who judges, the cases with what was counted.
    """

    def __init__(self, suites: Iterable[Suite]) -> None:
        self.judged: dict[str, dict[str, Judged]] = {each.name: _judge(each) for each in suites}

    def tally(self, suite: str, who: str = WARNING) -> Tally:
        """One suite's verdicts together."""
        return total(tally for _, tally in self.judged[suite][who])

    def show(self, *, verbose: bool = False) -> None:
        """Print the tables; `verbose` names the cases that went wrong."""
        for suite, judged in self.judged.items():
            _table(suite, {who: self.tally(suite, who) for who in judged})
            if verbose:
                _name_the_wrong(judged[WARNING])
        everything = {who: self._all(who) for who in (WARNING, *OF_RULES)}
        beside = {who: by_pattern(everything[who]) for who in OF_RULES}
        _table("by pattern", by_pattern(everything[WARNING]), beside)
        sums = {who: total(tally for _, tally in pairs) for who, pairs in everything.items()}
        _table("all suites", sums)

    def _all(self, who: str) -> Judged:
        return [pair for judged in self.judged.values() for pair in judged[who]]


def _judge(suite: Suite) -> dict[str, Judged]:
    findings = suite.findings()
    found = {
        who: [hits_of(each, severities) for each in findings]
        for who, severities in SEVERITIES.items()
    }
    found |= {rule.name: [rule.hits(case) for case in suite.cases] for rule in RULES}
    return {
        who: [(case, judge(case, hits)) for case, hits in zip(suite.cases, column, strict=True)]
        for who, column in found.items()
    }


def _table(
    title: str, rows: Mapping[str, Tally], beside: Mapping[str, Mapping[str, Tally]] | None = None
) -> None:
    """One tally a row; of those `beside` it only what was caught and the false alarms."""
    others = beside or {}
    heads = "".join(f"{name:>8}" for name in (*COUNTS, "P", "R"))
    print(f"{title:60}{heads}{''.join(f'  | {who}' for who in others)}")
    for name, tally in rows.items():
        of_all = f" ({tally.unlabelled_alarms} of {tally.unlabelled} unlabelled)"
        label = name + of_all * bool(tally.unlabelled)
        counts = "".join(f"{getattr(tally, count):8}" for count in COUNTS)
        shares = f"{tally.precision:8.3f}{tally.recall:8.3f}"
        cells = "".join(
            f"  | {f'caught {theirs[name].caught}, false {theirs[name].alarms}':{len(who)}}"
            for who, theirs in others.items()
        )
        print(f"  {label:58}{counts}{shares}{cells}".rstrip())
    print()


def _name_the_wrong(judged: Judged) -> None:
    for case, tally in judged:
        for wrong in ("late", "missed", "false", "early"):
            if getattr(tally, wrong):
                print(f"  {wrong:7}{case['id']}: {case.get('why', '')[:90]}")
    print()
