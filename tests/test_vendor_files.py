"""The files of collector-config/ that programs of others read hold what these say they take."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.test_collector_config import CONFIG, read

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMAS = yaml.safe_load(Path(__file__).with_name("schemas.yaml").read_text("utf-8"))


def held(file: str) -> Any:
    """What a file holds; JSON is YAML too."""
    return yaml.safe_load((CONFIG / file).read_text("utf-8"))


def wrong(document: Any) -> Iterator[tuple[str, Any]]:
    """The document with each value made one of another type, and with a new key in each object."""

    def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        for key, each in inner:
            yield (*path, key)
            if isinstance(each, dict | list):
                yield from places(each, (*path, key))

    for path in places(document):
        changed = copy.deepcopy(document)
        inside = changed
        for key in path[:-1]:
            inside = inside[key]
        if isinstance(inside[path[-1]], dict):
            inside[path[-1]]["notOfTheirs"] = 1
        else:
            inside[path[-1]] = {"notOfTheirs": 1}
        yield ".".join(map(str, path)), changed


def test_each_alert_file_has_a_schema() -> None:
    alerts = {f"backends/{file.name}" for file in (CONFIG / "backends").glob("*.json")}
    assert alerts == {name for name in SCHEMAS if name.startswith("backends/")}


@pytest.mark.parametrize("file", SCHEMAS)
def test_a_file_is_of_the_form_that_its_reader_takes(file: str) -> None:
    assert SCHEMAS[file]["$comment"]
    Draft202012Validator.check_schema(SCHEMAS[file])
    schema = Draft202012Validator(SCHEMAS[file])
    document = held(file)
    schema.validate(document)
    passed = [path for path, changed in wrong(document) if schema.is_valid(changed)]
    assert passed == [], "of another form, but not noticed"


def test_what_a_schema_does_not_say() -> None:
    query = json.loads(held("backends/elastic-rule.json")["params"]["esQuery"])
    assert set(query) == {"query"}
    condition = held("backends/signoz-alert.json")["condition"]
    queries = {each["spec"]["name"] for each in condition["compositeQuery"]["queries"]}
    assert condition["selectedQueryName"] in queries
    trigger = held("backends/honeycomb-trigger.json")
    assert trigger["query"]["time_range"] <= 4 * trigger["frequency"]


def test_grafana_s_models_read_its_alert() -> None:
    alerting = pytest.importorskip(
        "grafana_foundation_sdk.models.alerting", reason="Grafana's SDK needs Python 3.11"
    )
    from grafana_foundation_sdk.cog.encoder import JSONEncoder  # noqa: PLC0415

    (group,) = held("backends/tempo-alert.yaml")["groups"]
    for rule in group["rules"]:
        understood = json.loads(JSONEncoder().encode(alerting.Rule.from_json(rule)))
        assert understood | rule == understood
        refs = {query["refId"]: query for query in rule["data"]}
        assert rule["condition"] in refs
        assert refs[rule["condition"]]["model"]["expression"] in refs


def test_the_chart_sets_only_what_the_collector_reads() -> None:
    values = held("kubernetes/values.yaml")
    known = read("collector.yaml") | read("exporters/jaeger.yaml")
    given = {each["name"]: each["value"] for each in values["extraEnvs"]}
    assert set(given) <= set(known)
    limit = int(values["resources"]["limits"]["memory"].removesuffix("Mi"))
    assert int(given["LOOPGUARD_MEMORY_MIB"]) < limit
    ports = {port.get("containerPort") for port in values["ports"].values()} - {None}
    defaults = {
        int(port) for text in known.values() for port in re.findall(r"(?:^|:)(\d{4,5})$", text)
    }
    assert ports <= defaults


def test_the_chart_mounts_what_its_command_makes() -> None:
    """The chart itself starts `--config=/conf/relay.yaml`, the key `relay` of the config map."""
    text = (CONFIG / "kubernetes" / "values.yaml").read_text("utf-8")
    values = yaml.safe_load(text)
    made = dict(re.findall(r"--from-file=([\w.]+)=([\w./-]+)", text))
    assert set(made) == {"relay", "backend.yaml"}
    assert all((CONFIG / file).is_file() for file in made.values())
    name = values["configMap"]["existingName"]
    assert f"create configmap {name} " in text
    volumes = {each["name"]: each["configMap"]["name"] for each in values["extraVolumes"]}
    claims = {each["metadata"]["name"] for each in values["statefulset"]["volumeClaimTemplates"]}
    mounts = {each["mountPath"]: each["name"] for each in values["extraVolumeMounts"]}
    assert volumes[mounts["/backend"]] == name
    assert values["command"]["extraArgs"] == ["--config=/backend/backend.yaml"]
    assert mounts[read("collector.yaml")["LOOPGUARD_STORAGE"]] in claims
