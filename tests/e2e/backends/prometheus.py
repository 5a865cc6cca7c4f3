"""A real Prometheus and Alertmanager with the files of collector-config/, and a pager for them.

Both are programs of the PATH: Debian's packages, or the released ones.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import yaml

from tests.e2e.backends.collector import CONFIG
from tests.e2e.backends.programs import ProgramMissing, Service, get
from tests.serving import Answer, Serving

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.e2e.backends.collector import Collector

FILES = CONFIG / "prometheus"


def find(*names: str) -> str:
    """The first of these programs that the PATH has; Debian calls some otherwise.

    Raises:
        ProgramMissing: it has none; the message says what brings one.
    """
    for name in names:
        if path := shutil.which(name):
            return path
    raise ProgramMissing(
        f"{names[0]} is missing. It comes with the Debian packages prometheus and "
        "prometheus-alertmanager (apt-get install --no-install-recommends), or from "
        "https://prometheus.io/download; put it on the PATH."
    )


def ask(program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """What promtool or amtool says."""
    return subprocess.run([find(program), *arguments], capture_output=True, text=True, check=False)


class Prometheus(Service):
    """A Prometheus that runs our rules and scrapes a collector.

    Args:
        collector: what to scrape.
        alertmanager: where alerts go.
    """

    def __init__(self, collector: Collector, alertmanager: Alertmanager) -> None:
        super().__init__("Prometheus", 1)
        self._collector = collector
        self._alertmanager = alertmanager

    def command(self) -> tuple[list[str], Mapping[str, str]]:
        at = self._collector.at
        ports = {9464: at.metrics, 9465: at.counts, 8888: at.own, 9093: self._alertmanager.ports[0]}
        config = (FILES / "prometheus.yml").read_text()
        for usual, port in ports.items():
            config = config.replace(f"127.0.0.1:{usual}", f"127.0.0.1:{port}")
        (self.folder / "prometheus.yml").write_text(config)
        shutil.copy(FILES / "rules.yml", self.folder)
        return [
            find("prometheus"),
            f"--config.file={self.folder}/prometheus.yml",
            f"--storage.tsdb.path={self.folder}/data",
            f"--web.listen-address=127.0.0.1:{self.ports[0]}",
            "--enable-feature=exemplar-storage",
        ], {}

    @property
    def url(self) -> str:
        """Its page and its API."""
        return f"http://127.0.0.1:{self.ports[0]}"

    def is_up(self) -> bool:
        return self.answers(self.ports[0], "/-/ready") and bool(self.query("up"))

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """The labels and the value of each sample that an expression gives now."""
        _, answer = get(self.ports[0], f"/api/v1/query?{urlencode({'query': expression})}")
        assert answer["status"] == "success", answer
        return [(one["metric"], float(one["value"][1])) for one in answer["data"]["result"]]

    def total(self, expression: str) -> float:
        """The sum of what an expression gives now; 0 where it gives nothing."""
        return sum(value for _, value in self.query(expression))

    def exemplars(self, expression: str) -> list[dict[str, Any]]:
        """The exemplars of the last minutes."""
        now = time.time()
        query = urlencode({"query": expression, "start": now - 600, "end": now + 1})
        _, answer = get(self.ports[0], f"/api/v1/query_exemplars?{query}")
        return [each for series in answer["data"] for each in series["exemplars"]]


class Alertmanager(Service):
    """An Alertmanager with our example of a configuration, whose receivers are a pager's.

    Args:
        pager: who is told.
        timing: other waits of the route for critical alerts, so that a test need not wait long.
    """

    def __init__(self, pager: Pager, **timing: str) -> None:
        super().__init__("Alertmanager", 1)
        self._pager = pager
        self._timing = timing

    def command(self) -> tuple[list[str], Mapping[str, str]]:
        config = yaml.safe_load((FILES / "alertmanager.yml").read_text())
        config["route"]["routes"][0].update(self._timing)
        for receiver in config["receivers"]:
            receiver["webhook_configs"][0]["url"] = f"{self._pager.url}/{receiver['name']}"
        file = self.folder / "alertmanager.yml"
        file.write_text(yaml.safe_dump(config))
        return [
            find("alertmanager", "prometheus-alertmanager"),
            f"--config.file={file}",
            f"--storage.path={self.folder}/data",
            f"--web.listen-address=127.0.0.1:{self.ports[0]}",
            "--cluster.listen-address=",
        ], {}

    def is_up(self) -> bool:
        return self.answers(self.ports[0], "/-/ready")


@dataclass(frozen=True)
class Page:
    """A call of Alertmanager's webhook."""

    at_s: float
    receiver: str
    group: str
    status: str
    labels: dict[str, str]
    alerts: Sequence[dict[str, Any]]


class Pager(Serving):
    """Takes the calls of Alertmanager's webhooks inside the `with` block."""

    def __init__(self) -> None:
        super().__init__()
        self.pages: list[Page] = []

    def answer(self, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        said = json.loads(body)
        kept = (said[name] for name in ("receiver", "groupKey", "status", "groupLabels", "alerts"))
        self.pages.append(Page(time.time(), *kept))
        return Answer()

    def of(self, service: str, status: str = "firing") -> list[Page]:
        """The calls about a service."""
        return [
            page
            for page in list(self.pages)
            if page.status == status and page.labels.get("job") == service
        ]
