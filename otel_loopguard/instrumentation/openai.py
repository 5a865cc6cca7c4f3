"""openai: its clients, and its tool runner where the installed version has one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from otel_loopguard.instrumentation.clients import Wires, async_post, post
from otel_loopguard.instrumentation.hooks import awaits, calls
from otel_loopguard.instrumentation.runners import RunnerCall
from otel_loopguard.instrumentation.table import Row
from otel_loopguard.instrumentation.tools import open_tool, shown
from otel_loopguard.instrumentation.wire import openai_chat, openai_responses

if TYPE_CHECKING:
    from collections.abc import Mapping

    from otel_loopguard.instrumentation.drive import Scope
    from otel_loopguard.instrumentation.held import Held
    from otel_loopguard.instrumentation.turns import Later
    from otel_loopguard.instrumentation.wiring import Wiring

_WIRES: Final[Wires] = {"/chat/completions": openai_chat, "/responses": openai_responses}
_CLIENT: Final = "openai._base_client"
_RESPONSES: Final = "openai.resources.responses.responses"
_RUNNER: Final = "openai.lib.responses_tool_runner"


def _traces(_: Any) -> Later | None:
    """Whether somebody wraps responses, and may show one when it is there."""
    create = getattr(getattr(sys.modules.get(_RESPONSES), "Responses", None), "create", None)
    return "after" if hasattr(create, "_self_wrapper") else None


def _execution(
    wired: Wiring, _: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Scope | Held | None:
    item = kwargs.get("item") or args[1]

    def instead(note: str) -> object:
        return {"type": "function_call_output", "call_id": item.call_id, "output": note}

    call = open_tool(wired, item.name, item.arguments, call_id=item.call_id, instead=instead)
    return shown(call, lambda made: RunnerCall(made, "output"))


SUPPORTED: Final = "openai >= 1.68, < 4"
ROWS: tuple[Row, ...] = (
    Row(_CLIENT, "SyncAPIClient.post", post(_WIRES, _traces)),
    Row(_CLIENT, "AsyncAPIClient.post", async_post(_WIRES, _traces)),
    Row(_RUNNER, "ResponsesToolRunner._execute_function", calls(_execution)),
    Row(_RUNNER, "AsyncResponsesToolRunner._execute_function", awaits(_execution)),
)
