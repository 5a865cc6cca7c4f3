"""Which tools a span says were offered."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_loopguard.dialects.offered import offered

FLAT = {"name": "search", "type": "function", "parameters": {}}
NESTED = {"type": "function", "function": {"name": "write"}}


@pytest.mark.parametrize(
    ("attributes", "names"),
    [
        ({}, None),
        ({"gen_ai.tool.definitions": json.dumps([FLAT, NESTED])}, {"search", "write"}),
        ({"gen_ai.tool.definitions": [json.dumps(FLAT), json.dumps(NESTED)]}, {"search", "write"}),
        ({"gen_ai.tool.definitions": "[]"}, None),
        ({"gen_ai.tool.definitions": "<REDACTED>"}, None),
        ({"gen_ai.tool.definitions": json.dumps([FLAT])[:-3]}, None),
        ({"gen_ai.tool.definitions": json.dumps([FLAT, {"type": "web_search"}])}, None),
        ({"gen_ai.tool.definitions": json.dumps([FLAT, "text"])}, None),
        (
            {
                "llm.tools.0.tool.json_schema": json.dumps(NESTED),
                "llm.tools.1.tool.json_schema": json.dumps(FLAT),
                "llm.tools.1.tool.name": "other",
            },
            {"search", "write"},
        ),
        ({"llm.tools.0.tool.json_schema": "{"}, None),
        (
            {"llm.request.functions.0.name": "search", "llm.request.functions.0.description": "x"},
            {"search"},
        ),
        ({"gen_ai.tool.definitions": 7, "llm.request.functions.x": None}, None),
    ],
)
def test_the_offered_tools(attributes: dict[str, Any], names: set[str] | None) -> None:
    assert offered(attributes) == names
