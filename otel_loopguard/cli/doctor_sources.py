"""Where the doctor reads series and rules: a Prometheus's API, or a page of metrics."""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast

from otel_loopguard.cli.finding import CannotRunError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Labels = Mapping[str, str]

_TIMEOUT_S: Final = 5.0
_LIMIT: Final = 64 << 20
"""Bytes that are read of an answer."""
_LOOK_BACK_S: Final = 24 * 3600
"""A series that had no value for so long is written by nobody."""
_LOST: Final = re.compile(r"otelcol_\w*(failed|refused|dropped)\w*")
_LOST_QUERY: Final = (
    '{__name__=~"otelcol_.*(failed|refused|dropped).*"} > 0 '
    'or {__name__=~"otel_sdk_.*",error_type!=""} > 0'
)
_SAMPLE: Final = re.compile(
    r'([a-zA-Z_:][\w:]*)(?:\{((?:[^"}]|"(?:\\.|[^"\\])*")*)\})?\s+([^\s#]+)'
)
_LABEL: Final = re.compile(r'([a-zA-Z_]\w*)="((?:\\.|[^"\\])*)"')


class Rule(NamedTuple):
    """A Prometheus rule.

    Attributes:
        name: of the alert or of the recorded series.
        expression: what it evaluates.
        records: whether it writes a series.
        text: all that it says, to see whether it is about us.
        fault: what Prometheus said when it evaluated it last.
    """

    name: str
    expression: str
    records: bool
    text: str
    fault: str = ""


class Loss(NamedTuple):
    """A counter that says that telemetry was lost."""

    name: str
    labels: Labels
    value: float


class Source(Protocol):
    """What is asked of either."""

    url: str

    def names(self) -> set[str]:
        """The names of all series."""
        ...

    def series(self, name: str) -> list[Labels]:
        """The labels of each series of a name; none if nobody writes it."""
        ...

    def rules(self) -> list[Rule]:
        """The rules that are loaded."""
        ...

    def losses(self) -> list[Loss]:
        """The counters of lost telemetry that are not zero."""
        ...


def connect(url: str) -> Source:
    """Find out what is there.

    Raises:
        OSError: if nothing answers, or neither a Prometheus nor a page of metrics does.
    """
    if urllib.parse.urlsplit(url).scheme not in {"http", "https"}:
        raise CannotRunError(f"{url}: expected an address that starts with http:// or https://")
    url = url.rstrip("/")
    try:
        return _Prometheus(url, _api(url, "rules"))
    except (urllib.error.HTTPError, ValueError):
        return _Page(url, _read(url))


def _read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - http, see above
        return answer.read(_LIMIT).decode("utf-8", "replace")


def _api(url: str, path: str, **query: str) -> Any:
    given = f"?{urllib.parse.urlencode(query)}" if query else ""
    answer: Any = json.loads(_read(f"{url}/api/v1/{path}{given}"))
    if not isinstance(answer, dict) or "data" not in answer:
        raise ValueError("not a Prometheus")
    return cast("dict[str, Any]", answer)["data"]


class _Prometheus:
    def __init__(self, url: str, rules: Any) -> None:
        self.url = url
        self._rules = rules

    def names(self) -> set[str]:
        return set(_api(self.url, "label/__name__/values"))

    def series(self, name: str) -> list[Labels]:
        start = f"{time.time() - _LOOK_BACK_S:.0f}"
        quoted = json.dumps(name, ensure_ascii=False)
        found: list[Labels] = _api(
            self.url, "series", **{"match[]": f"{{__name__={quoted}}}", "start": start}
        )
        return found

    def rules(self) -> list[Rule]:
        return [
            Rule(
                rule["name"],
                rule["query"],
                rule["type"] == "recording",
                json.dumps(rule),
                rule.get("lastError") or "",
            )
            for group in self._rules["groups"]
            for rule in group["rules"]
        ]

    def losses(self) -> list[Loss]:
        found = _api(self.url, "query", query=_LOST_QUERY)["result"]
        return [_loss(each["metric"], float(each["value"][1])) for each in found]


class _Page:
    """A page of metrics in the text format, read once."""

    def __init__(self, url: str, text: str) -> None:
        self.url = url
        self._samples = list(_samples(text))
        if not self._samples:
            raise OSError("neither a Prometheus nor a page of metrics answers there")

    def names(self) -> set[str]:
        return {labels["__name__"] for labels, _ in self._samples}

    def series(self, name: str) -> list[Labels]:
        return [labels for labels, _ in self._samples if labels["__name__"] == name]

    def rules(self) -> list[Rule]:
        return []

    def losses(self) -> list[Loss]:
        return [_loss(labels, value) for labels, value in self._samples if _is_lost(labels, value)]


def _samples(text: str) -> Iterator[tuple[dict[str, str], float]]:
    for line in text.splitlines():
        found = _SAMPLE.match(line)
        if found is not None:
            name, labels, value = found.groups()
            try:
                number = float(value)
            except ValueError:
                continue
            yield {**dict(_LABEL.findall(labels or "")), "__name__": name}, number


def _is_lost(labels: Labels, value: float) -> bool:
    name = labels["__name__"]
    by_sdk = name.startswith("otel_sdk_") and labels.get("error_type")
    return value > 0 and bool(_LOST.fullmatch(name) or by_sdk)


def _loss(labels: Labels, value: float) -> Loss:
    said = ("exporter", "receiver", "processor", "transport", "error_type", "component_name", "job")
    kept = {name: labels[name] for name in said if labels.get(name)}
    return Loss(labels["__name__"], kept, value)


def rules_of_file(file: str) -> list[Rule]:
    """The rules of a Prometheus rule file.

    Raises:
        CannotRunError: if it cannot be read.
    """
    try:
        import yaml  # noqa: PLC0415 - needs the extra
    except ModuleNotFoundError as missing:
        raise CannotRunError('--rules needs: pip install "otel-loopguard[cli]"') from missing
    try:
        read: Any = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
        return [
            Rule(
                str(rule.get("alert") or rule["record"]),
                str(rule["expr"]),
                "record" in rule,
                json.dumps(rule, default=str),
            )
            for group in read["groups"]
            for rule in group["rules"]
        ]
    except (OSError, UnicodeDecodeError) as fault:
        raise CannotRunError(f"{file}: {fault}") from fault
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as fault:
        raise CannotRunError(f"{file}: not a file of Prometheus rules ({fault})") from fault
