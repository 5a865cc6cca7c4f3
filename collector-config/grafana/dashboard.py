"""Writes `loopguard.json`, the Grafana dashboard, with the official foundation SDK.

python collector-config/grafana/dashboard.py    (pip install grafana-foundation-sdk)
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from grafana_foundation_sdk.builders import dashboard, prometheus, stat, table, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import (
    DashboardLinkType,
    DataSourceRef,
    DataTransformerConfig,
    GridPos,
    VariableRefresh,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

if TYPE_CHECKING:
    from grafana_foundation_sdk.models.dashboard import Dashboard

OUTPUT = Path(__file__).with_name("loopguard.json")
METRICS = DataSourceRef(type_val="prometheus", uid="${metrics}")
SERVICE = 'job=~"$service"'
AGENT, PATTERN = "gen_ai_agent_name", "loopguard_pattern"
ENDED_STUCK = 'loopguard_outcome="deadlock"'


class Query(NamedTuple):
    """What one panel asks; `shown` is the legend of its lines or the column of a table."""

    text: str
    shown: str


def by(label: str, series: str) -> str:
    """The sum of a series for each value of a label."""
    return f"sum by ({label}) ({series})"


def last(counter: str, more: str = "") -> str:
    """What processes counted that were seen in the time range, also those that are gone."""
    return f"last_over_time({counter}{{{SERVICE}{more}}}[$__range])"


def rounds(more: str = "") -> str:
    """How many tool rounds 95 of 100 runs took at most."""
    buckets = by(f"{AGENT}, le", last("loopguard_iterations_bucket", more))
    return f"histogram_quantile(0.95, {buckets})"


def new(label: str, counter: str) -> str:
    """What came in five minutes, by rules.yml: it sees a process's first events too.

    The counter itself gives a line at 0, and the exemplars.
    """
    came = by(label, f"loopguard:{counter}:new5m{{{SERVICE}}}")
    return f"{came} or 0 * {by(label, f'loopguard_{counter}_total{{{SERVICE}}}')}"


STUCK_RUNS = by(AGENT, f"loopguard_stuck_runs{{{SERVICE}}}")
STUCK = [Query(STUCK_RUNS, "AGENT")]
DEADLOCKS = [Query(new(PATTERN, "deadlocks"), "PATTERN")]
WASTED = [Query(new(AGENT, "wasted_tokens"), "AGENT")]
LENGTH = [Query(rounds(f", {ENDED_STUCK}"), "AGENT")]
BUDGET = [Query(rounds(), "AGENT"), Query("vector($budget)", "budget")]
HEALTH = [
    Query(STUCK_RUNS, "stuck now"),
    Query(by(AGENT, last("loopguard_deadlocks_total")), "deadlock events"),
    Query(by(AGENT, last("loopguard_iterations_count")), "runs ended"),
    Query(by(AGENT, last("loopguard_iterations_count", f", {ENDED_STUCK}")), "of them stuck"),
]
LABELS = {"AGENT": "{{gen_ai_agent_name}}", "PATTERN": "{{loopguard_pattern}}"}


def traces_link(label: str, attribute: str) -> dashboard.DashboardLink:
    """From a line to the traces that are behind it, in Explore."""
    traceql = (
        f'{{ span.{attribute} = "${{__field.labels.{label}}}" && span.loopguard.deadlock = true }}'
    )
    query = {"refId": "A", "queryType": "traceql", "query": traceql}
    panes = {
        "a": {
            "datasource": "${traces}",
            "queries": [query],
            "range": {"from": "${__from}", "to": "${__to}"},
        }
    }
    url = "/explore?schemaVersion=1&panes=" + quote(json.dumps(panes), safe="${}._:")
    link = dashboard.DashboardLink("The traces").type(DashboardLinkType.LINK)
    return link.url(url).target_blank(target_blank=True)


def targets(queries: list[Query], *, instant: bool = False) -> list[prometheus.Dataquery]:
    """The queries of a panel; those of counters bring their exemplars along."""
    asked = []
    for letter, query in zip("ABCD", queries, strict=False):
        target = prometheus.Dataquery().expr(query.text).ref_id(letter).datasource(METRICS)
        target = target.legend_format(LABELS.get(query.shown, query.shown))
        if instant:
            target = target.instant().format(PromQueryFormat.TABLE)
        else:
            target = target.exemplar("_total" in query.text)
        asked.append(target)
    return asked


def lines(
    title: str, what: str, queries: list[Query], place: GridPos, *, pattern: bool = False
) -> timeseries.Panel:
    """A panel of lines with a link to the traces."""
    if pattern:
        link = traces_link("loopguard_pattern", "loopguard.pattern")
    else:
        link = traces_link("gen_ai_agent_name", "gen_ai.agent.name")
    panel = timeseries.Panel().title(title).description(what).datasource(METRICS)
    return panel.targets(targets(queries)).grid_pos(place).min(0).data_links([link])


def build() -> Dashboard:
    """The whole dashboard."""
    stuck = stat.Panel().title("Stuck now").description("Runs that are stuck, by agent; 0 is well")
    stuck = stuck.datasource(METRICS).targets(targets(STUCK)).no_value("0")
    stuck = stuck.data_links([traces_link("gen_ai_agent_name", "gen_ai.agent.name")])
    health = table.Panel().title("Health by agent").datasource(METRICS)
    health = health.description("Of all processes in the time range, since they began")
    health = health.targets(targets(HEALTH, instant=True)).grid_pos(place(12, 16, height=9))
    names = {f"Value #{letter}": query.shown for letter, query in zip("ABCD", HEALTH, strict=True)}
    health = health.transformations(
        [
            DataTransformerConfig(id_val="merge", options={}),
            DataTransformerConfig(
                id_val="organize",
                options={
                    "excludeByName": {"Time": True},
                    "renameByName": {"gen_ai_agent_name": "agent", **names},
                },
            ),
        ]
    )
    service = dashboard.QueryVariable("service").label("Service").datasource(METRICS)
    service = service.query('label_values({__name__=~"loopguard_.+"}, job)').multi(multi=True)
    service = (
        service.include_all(include_all=True)
        .all_value(".*")
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
    )
    board = dashboard.Dashboard("Agents: deadlocks").uid("otel-loopguard").refresh("10s")
    board = board.tags(["otel-loopguard"]).time("now-1h", "now").readonly()
    for variable in (
        dashboard.DatasourceVariable("metrics").label("Metrics").type("prometheus"),
        dashboard.DatasourceVariable("traces").label("Traces").type("tempo"),
        service,
        dashboard.TextBoxVariable("budget").label("Budget (rounds)").default_value("25"),
    ):
        board = board.with_variable(variable)
    for panel in (
        stuck.grid_pos(place(0, 0)),
        lines(
            "Deadlocks by pattern", "Events in five minutes", DEADLOCKS, place(12, 0), pattern=True
        ),
        lines(
            "Tokens wasted", "On repeats, in five minutes, as last reported", WASTED, place(0, 8)
        ),
        lines(
            "Loop length", "Tool rounds of runs that ended stuck, p95 so far", LENGTH, place(12, 8)
        ),
        lines(
            "Iterations against budget", "Tool rounds of all runs, p95 so far", BUDGET, place(0, 16)
        ),
        health,
    ):
        board = board.with_panel(panel)
    return board.build()


def place(x: int, y: int, *, height: int = 8) -> GridPos:
    """Half the width of the dashboard."""
    return GridPos(h=height, w=12, x=x, y=y)


if __name__ == "__main__":
    OUTPUT.write_text(JSONEncoder(sort_keys=True, indent=2).encode(build()) + "\n")
