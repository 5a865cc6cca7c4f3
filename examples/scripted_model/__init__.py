"""A model service for tests and demos that says what a script says; stdlib only.

In a test:

    with ScriptedModel() as model:
        client = OpenAI(base_url=model.base_url, api_key="unused")
        client.chat.completions.create(model="loop-4", tools=..., messages=...)

By itself: `python -m examples.scripted_model --port 8765`.
"""

from __future__ import annotations

from .scenarios import GHOST_TOOL
from .script import Call, Finish, Message, Reply, Scenario, Tool, Turn, Usage
from .server import ScriptedModel
from .wire import WireError

__all__ = [
    "GHOST_TOOL",
    "Call",
    "Finish",
    "Message",
    "Reply",
    "Scenario",
    "ScriptedModel",
    "Tool",
    "Turn",
    "Usage",
    "WireError",
]
