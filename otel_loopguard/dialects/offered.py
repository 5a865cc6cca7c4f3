"""Which tools a model span says were offered: a name that was not is the model's invention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from otel_loopguard.dialects.values import load, mapping, name, sequence

if TYPE_CHECKING:
    from collections.abc import Mapping


def offered(attributes: Mapping[str, object]) -> frozenset[str] | None:
    """The names of the tools that were offered; None where the span does not name each of them."""
    defined = [
        *sequence(load(attributes.get("gen_ai.tool.definitions"))),
        *_numbered(attributes, "llm.tools.", ".tool.json_schema"),
    ]
    names = [_named(each) for each in defined]
    names += [str(each) for each in _numbered(attributes, "llm.request.functions.", ".name")]
    return frozenset(filter(None, names)) if names and None not in names else None


def _numbered(attributes: Mapping[str, object], prefix: str, suffix: str) -> list[object]:
    return [
        value
        for key, value in attributes.items()
        if key.startswith(prefix) and key.endswith(suffix)
    ]


def _named(definition: object) -> str | None:
    tool = mapping(load(definition))
    return None if tool is None else name(mapping(tool.get("function")) or tool, "name")
