"""How an example agent runs without any model service: its environment, and its command."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from examples.scripted_model import ScriptedModel

EXAMPLES = Path(__file__).resolve().parent
AGENTS = tuple(sorted(path.parent.name for path in EXAMPLES.glob("*/agent.py")))
"""Agents that are watched."""
BREAKING = tuple(sorted(f"breaking/{path.stem}" for path in EXAMPLES.glob("breaking/*.py")))
"""Agents whose loops can be broken: they know what a stop is."""


def script(agent: str) -> Path:
    """The file that an agent is in."""
    return EXAMPLES / (f"{agent}.py" if agent in BREAKING else f"{agent}/agent.py")


def command(agent: str) -> list[str]:
    """What a user would type: `opentelemetry-instrument python agent.py`."""
    tool = Path(sys.executable).with_name("opentelemetry-instrument")
    return [str(tool), sys.executable, str(script(agent))]


def environment(model: ScriptedModel, scenario: str, **more: str) -> dict[str, str]:
    """The agent's environment: the scripted model in place of the real ones, and what is added."""
    return {
        **os.environ,
        "PYTHONPATH": str(EXAMPLES),
        "PYTHONUNBUFFERED": "1",
        "MODEL": scenario,
        "OPENAI_BASE_URL": f"{model.base_url}/v1",
        "OPENAI_API_KEY": "unused",
        "ANTHROPIC_BASE_URL": model.base_url,
        "ANTHROPIC_API_KEY": "unused",
        "OTEL_SERVICE_NAME": "shop",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        **more,
    }
