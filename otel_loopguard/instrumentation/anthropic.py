"""anthropic: its clients, with or without their own spans, and its tool runner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from otel_loopguard.instrumentation.clients import Wires, async_post, post
from otel_loopguard.instrumentation.hooks import awaits, calls
from otel_loopguard.instrumentation.runners import RunnerCall
from otel_loopguard.instrumentation.table import Row
from otel_loopguard.instrumentation.tools import open_tool, shown
from otel_loopguard.instrumentation.wire import anthropic_messages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from otel_loopguard.instrumentation.drive import Scope
    from otel_loopguard.instrumentation.held import Held
    from otel_loopguard.instrumentation.turns import Later
    from otel_loopguard.instrumentation.wiring import Wiring

_WIRES: Final[Wires] = {"/messages": anthropic_messages}
_CLIENT: Final = "anthropic._base_client"
_RUNNER: Final = "anthropic.lib.tools._beta_runner"


def _traces(client: Any) -> Later | None:
    """Whether the client opens a span inside of its `post`."""
    return None if getattr(client, "_tracer", None) is None else "inside"


def _execution(
    wired: Wiring, _: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Scope | Held | None:
    use = kwargs.get("tool_use") or args[-1]

    def instead(note: str) -> object:
        return {"type": "tool_result", "tool_use_id": use.id, "content": note, "is_error": True}

    call = open_tool(wired, use.name, use.input, call_id=use.id, instead=instead)
    return shown(call, lambda made: RunnerCall(made, "content"))


SUPPORTED: Final = "anthropic >= 0.51, < 3"
ROWS: tuple[Row, ...] = (
    Row(_CLIENT, "SyncAPIClient.post", post(_WIRES, _traces)),
    Row(_CLIENT, "AsyncAPIClient.post", async_post(_WIRES, _traces)),
    Row(_RUNNER, "BaseSyncToolRunner._run_tool", calls(_execution)),
    Row(_RUNNER, "BaseAsyncToolRunner._run_tool", awaits(_execution)),
    Row(_RUNNER, "BaseSyncToolRunner._run_toolset_member", calls(_execution)),
    Row(_RUNNER, "BaseAsyncToolRunner._run_toolset_member", awaits(_execution)),
)
