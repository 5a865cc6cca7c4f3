"""For loops written by hand: whether a tool call is to be made, or the call itself."""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from otel_loopguard.core.digest import UNKNOWN_TOOL
from otel_loopguard.dialects import Role
from otel_loopguard.instrumentation import drive, wiring
from otel_loopguard.instrumentation.actions import open_around
from otel_loopguard.instrumentation.deciding import held_by
from otel_loopguard.instrumentation.tools import ToolCall, open_tool, tool_attributes
from otel_loopguard.runtime import guarded
from otel_loopguard.sdk.scope import here

if TYPE_CHECKING:
    from otel_loopguard.core.decision import Decision
    from otel_loopguard.instrumentation.held import Held
    from otel_loopguard.sdk.scope import Run

Arguments = Mapping[str, Any] | str
"""The arguments of a call as the model gave them: by name, or as JSON text."""


def held(name: str, arguments: Arguments, call_id: str | None = None) -> str | None:
    """A note to the model to give as the tool's result, or None: make the call.

    For a loop over the openai or anthropic SDK whose tools are not decorated: ask before each call.
    The calls that are made are seen from the messages, as without it. It never waits, and does for
    async code too: where a human is to be asked, the call is not made (`call_tool` asks). Unless
    the setting `action` is nudge or break, it is None for all that code and settings do not limit.

    Args:
        name: the tool's name, as the model gave it.
        arguments: the arguments, as the model gave them.
        call_id: the provider's id of the call. Without it the call is found by name and arguments.

    Raises:
        DeadlockError: the run is stopped, since notes did not end the loop.
    """
    back = _held(name, arguments, call_id)
    return None if back is None else back.give()


def call_tool(
    function: Callable[..., Any],
    name: str,
    arguments: Arguments,
    call_id: str | None = None,
    *,
    on_loop: Callable[[str], object] = str,
) -> Any:
    """Call a tool as the model asks for it, `function(**arguments)`, unless that is a loop.

    The call is shown and watched as if the function were decorated with `tool`, under the
    provider's id. That of an `async def` is to be awaited.

    Args:
        function: the tool.
        name: its name, as the model gave it.
        arguments: the arguments, as the model gave them; JSON text has to be an object.
        call_id: the provider's id of the call.
        on_loop: makes what is given back in place of a result, out of a note to the model; by
            default the note itself. If it raises, the call is made.

    Returns:
        What the function returns.

    Raises:
        DeadlockError: the run is stopped, since notes did not end the loop.
        ValueError: the arguments are text, but not JSON.
    """
    named = json.loads(arguments) if isinstance(arguments, str) else arguments
    call = partial(function, **named)
    begin = partial(_begin, name, arguments, call_id, on_loop)
    if any(map(inspect.iscoroutinefunction, (function, type(function).__call__))):
        return _awaited(begin, call)
    scope = begin()
    return call() if scope is None else drive.call(scope, call)


async def _awaited(begin: Callable[[], drive.Scope | Held | None], call: Callable[[], Any]) -> Any:
    scope = begin()
    return await call() if scope is None else await drive.await_(scope, call)


@guarded("question before a call")
def _held(name: str, arguments: Arguments, call_id: str | None) -> Held | None:
    wired = wiring.current()
    if wired is None or not wired.pipeline.guard.decides:
        return None
    return _hold_back(wired, _Call(wired, name, arguments, call_id), str)


@guarded("start of a dispatched call")
def _begin(
    name: str, arguments: Arguments, call_id: str | None, instead: Callable[[str], object]
) -> drive.Scope | Held | None:
    wired = wiring.current()
    if wired is None:
        return None
    call = _Call(wired, name, arguments, call_id)
    if call.claim is None or call.claim.offered:
        return open_tool(wired, name, arguments, call_id=call_id, instead=instead)
    return _hold_back(wired, call, instead)  # what becomes of it, the messages show


class _Call:
    """A call that somebody is about to make, and the conversation that it belongs to, if any."""

    def __init__(
        self, wired: wiring.Wiring, name: str, args: Arguments, call_id: str | None
    ) -> None:
        self.name, self.args, self.call_id = name, args, call_id
        self.args_key = wired.pipeline.guard.fingerprinter.of_args(args)
        self.claim = wired.claim(name, self.args_key, call_id, shows=False)

    @property
    def shown(self) -> str:
        """Its name as it may be exported: one that was not offered is the model's invention."""
        return self.name if self.claim is None or self.claim.offered else UNKNOWN_TOOL


def _hold_back(wired: wiring.Wiring, call: _Call, instead: Callable[[str], object]) -> Held | None:
    """What stands in for a call; None if it is to be made, which somebody else shows then."""
    context, run, outer = here()
    if isinstance(outer, ToolCall) and outer.is_call(call.name, call.call_id):
        return None
    pipeline, claim, call_id = wired.pipeline, call.claim, call.call_id
    if claim is not None:
        run, call_id = claim.run, claim.call_id
    if run is None:
        return None
    decision = pipeline.decide(run, call.shown, call.args_key, call_id, time.time_ns())
    if decision.finding is None:
        return None
    pending = None if claim is None else claim.pending
    if decision.shadow:
        if pending is not None:
            pending.decision = decision
        else:
            pipeline.intervene(run, decision, call.shown, None, context=context)
        return None
    back = held_by(pipeline, run, decision, decision.finding, instead)
    if back is not None and (pending is None or pending.decision is not decision):
        _show(wired, call, run, decision)
        if back.error is not None:
            wired.stop(run, back.error)
    return back


def _show(wired: wiring.Wiring, call: _Call, run: Run, decision: Decision) -> None:
    """Show that a call is not made: it has a span, and its note is no result."""
    claim, call_id, parent = call.claim, call.call_id, None
    if claim is not None:
        wired.claim(call.name, call.args_key, call.call_id)
        call_id, parent = claim.call_id, claim.context
        if claim.pending is not None:
            claim.pending.decision = decision
    attributes = tool_attributes(wired.pipeline, run, call.shown, call_id, call.args_key, call.args)
    around = open_around(Role.TOOL, call.name, ours=run.span)
    title = f"execute_tool {call.shown}"
    ToolCall(wired.pipeline, run, call.shown, title, attributes, around, parent).hold(decision)
