"""Makes pieces of our package raise: each name is a piece, and what of it is replaced."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

FAULTS: dict[str, tuple[str, ...]] = {
    "detectors": (
        "core.detectors.hard_loop:HardLoop.__call__",
        "core.detectors.retry_storm:RetryStorm.__call__",
        "core.detectors.iteration_budget:IterationBudget.__call__",
    ),
    "observe": ("core.guard:Guard.observe",),
    "episode": ("core.episode:Episode.add",),
    "guard": ("core.guard:Guard.end", "core.guard:Guard.expire", "core.guard:Guard.is_stuck"),
    "fingerprint": (
        "core.fingerprint:Fingerprinter.of_args",
        "core.fingerprint:Fingerprinter.of_result",
        "core.fingerprint:Fingerprinter.of_text",
    ),
    "outcome": ("core.digest:classify",),
    "conversations": (
        "core.conversation:Conversations.request",
        "core.conversation:Conversations.response",
        "core.conversation:Conversations.claim",
    ),
    "wire requests": (
        "instrumentation.wire.openai_chat:read_request",
        "instrumentation.wire.openai_responses:read_request",
        "instrumentation.wire.anthropic_messages:read_request",
    ),
    "wire responses": (
        "instrumentation.wire.openai_chat:read_response",
        "instrumentation.wire.openai_responses:read_response",
        "instrumentation.wire.anthropic_messages:read_response",
    ),
    "wire streams": (
        "instrumentation.wire.openai_chat:StreamReader.feed",
        "instrumentation.wire.openai_responses:StreamReader.feed",
        "instrumentation.wire.anthropic_messages:StreamReader.feed",
    ),
    "wire readers": (
        "instrumentation.wire.openai_chat:StreamReader.__init__",
        "instrumentation.wire.anthropic_messages:StreamReader.__init__",
    ),
    "runners": ("instrumentation.runners:get", "instrumentation.runners:result_of"),
    "dialects": ("sdk.processor:read", "sdk.processor:starts"),
    "reporter": ("sdk.report:Reporter.report", "sdk.report:Reporter.close"),
    "attributes": ("sdk.attributes:step_attributes", "sdk.attributes:event_attributes"),
    "daemon": ("sdk.daemon:Daemon.flush", "sdk.daemon:Daemon.start"),
    "attaching": ("sdk.attach:Attachment.ensure",),
    "spans": ("instrumentation.actions:Action._open",),
    "agents": (
        "instrumentation.agents:start_run",
        "instrumentation.handwritten:start_run",
    ),
    "contexts": ("instrumentation.agents:enter_run", "instrumentation.turns:enter_run"),
    "places": ("instrumentation.actions:Context", "instrumentation.actions:enter_action"),
    "around": ("instrumentation.tools:open_around", "instrumentation.models:open_around"),
    "tool values": (
        "instrumentation.langchain_tools:model_arguments",
        "instrumentation.langchain_tools:tool_content",
        "instrumentation.langchain_tools:is_signal",
    ),
    "model values": (
        "instrumentation.langchain_models:model_and_provider",
        "instrumentation.langchain_models:are_several",
    ),
    "replies": ("instrumentation.langchain_models:Reply.add",),
    "graphs": (
        "instrumentation.langgraph_runs:task_in",
        "instrumentation.langgraph_runs:answer_in",
        "instrumentation.langgraph_runs:Answer.add",
    ),
    "callbacks": (
        "instrumentation.langchain:shown_by_another",
        "instrumentation.langgraph_runs:shown_by_another",
    ),
    "settings": ("settings:from_env", "instrumentation:from_env", "runtime:from_env"),
    "building": ("runtime:Runtime._make",),
    "wiring": ("instrumentation.wiring:connect",),
    "rows": ("instrumentation.table:Patches._wrap",),
}


class Fault(RuntimeError):  # noqa: N818
    """A fault of ours."""


def raises(*_: Any, **__: Any) -> Any:
    """What stands in the place of a piece."""
    raise Fault("a fault with a secret text")


def break_(name: str) -> Callable[[], None]:
    """Make a piece raise; returns what mends it."""
    pieces = [_piece(path) for path in FAULTS[name]]  # all of them, before any is replaced
    for holder, last, _ in pieces:
        setattr(holder, last, raises)

    def mend() -> None:
        for holder, last, before in pieces:
            setattr(holder, last, before)

    return mend


def _piece(path: str) -> tuple[Any, str, Any]:
    """What holds a piece, its name there, and the piece."""
    module, _, target = path.partition(":")
    holder: Any = importlib.import_module(f"otel_loopguard.{module}")
    *outer, last = target.split(".")
    for part in outer:
        holder = getattr(holder, part)
    return holder, last, vars(holder)[last]
