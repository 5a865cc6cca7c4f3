"""A tool call under way, from a hook or a decorator."""

from __future__ import annotations

from time import time_ns
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.trace import SpanKind

from otel_loopguard.breaking.questions import Verdict
from otel_loopguard.core.digest import UNKNOWN_TOOL
from otel_loopguard.core.model import MISSING, Kind, Outcome, Source
from otel_loopguard.dialects import Role
from otel_loopguard.instrumentation import rounds
from otel_loopguard.instrumentation.actions import (
    Action,
    error_type,
    failure_text,
    open_around,
)
from otel_loopguard.instrumentation.asking import Asked
from otel_loopguard.instrumentation.content import as_text
from otel_loopguard.instrumentation.deciding import decided
from otel_loopguard.runtime import boundary
from otel_loopguard.sdk import attributes as names
from otel_loopguard.sdk.scope import SPAN, Run, here, live_spans

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry import trace

    from otel_loopguard.core.decision import Decision
    from otel_loopguard.core.traits import Traits
    from otel_loopguard.instrumentation.drive import Scope
    from otel_loopguard.instrumentation.held import Held
    from otel_loopguard.instrumentation.wiring import Wiring
    from otel_loopguard.sdk.pipeline import Pipeline

# Before Python 3.12 it takes long to read a member from its enum.
_ROLE: Final = Role.TOOL
_TOOL: Final = Kind.TOOL
_HOOK: Final = Source.HOOK
_OPERATION: Final = names.OPERATION
_TOOL_NAME: Final = names.TOOL_NAME
_RUN_ID: Final = names.RUN_ID
_ARGS_FINGERPRINT: Final = names.ARGS_FINGERPRINT
_AGENT_NAME: Final = names.AGENT_NAME
OUTSIDE: Final = Run("", scoped=False)
"""Stands for no run at all: a call that nothing ties to others can be in no loop."""


class ToolCall(Action):
    """One execution of a tool. Make it with `open_tool`.

    Attributes:
        args_key, call_id, round_id: the arguments' digest, the provider's id of the call, and what
            the calls share that one response of the model asked for; None where unknown.
        args: the arguments, until the call is done.
        shadow: what would have become of the call if notes were in force; None if it had been made.
    """

    __slots__ = ("args", "args_key", "call_id", "round_id", "shadow")

    role = Role.TOOL
    span_kind = SpanKind.INTERNAL
    args: object
    args_key: str | None
    call_id: str | None
    round_id: str | None
    shadow: Decision | None

    def is_call(self, name: str, call_id: str | None) -> bool:
        """Whether a call that starts inside of this one is this one, as an inner layer sees it.

        What goes on in the background after the tool is done is another call.
        """
        return not self.ended and self.name == name and call_id in (None, self.call_id)

    def declare(self, traits: Traits) -> None:
        """An inner layer knows more of the tool: that holds from its next call on; this counts."""
        pipeline = self.pipeline
        if pipeline.guard.declare(self.name, traits) and self.run is not OUTSIDE:
            pipeline.decide(self.run, self.name, self.args_key, self.call_id, self.start_ns)

    def finish(
        self,
        result: object = MISSING,
        failure: str | None = None,
        outcome: Outcome | None = None,
    ) -> None:
        """The tool is done; only the first time counts.

        Here and in `open_tool` nothing is by keyword alone: to call that takes longer.

        Args:
            result: what it gave back; of a failed one, its text if known (it is not exported).
            failure: the class of the failure, if it failed.
            outcome: what came of it, where the hook knows more than the values tell.
        """
        if self.ended:
            return
        self.ended = True
        # As `guarded` does, without the time that it takes to pass on arguments of any kind.
        try:
            end_ns = time_ns()
            args, self.args = self.args, MISSING  # whoever still holds the call holds no content
            pipeline, run = self.pipeline, self.run
            span = self.span if self.own else self.showing()
            if failure is not None:
                self.mark_failed(failure)
            try:
                if run is not OUTSIDE:
                    # A plain tuple is made and taken apart in half the time of a named one.
                    seen: Any = (
                        _TOOL, self.name, _HOOK, args, self.args_key, result, failure, outcome,
                        self.call_id, self.round_id, None, self.start_ns, end_ns, 0, self.where,
                        MISSING, None, 0, None, False, None,
                    )  # fmt: skip
                    pipeline.see(run, seen, span, self.place)
                    if self.shadow is not None:
                        pipeline.intervene(run, self.shadow, self.name, span, context=self.place)
                if pipeline.captures and span is not None and failure is None:
                    capture_result(span, result)
            finally:
                if self.own and span is not None:  # as `close` does, in fewer steps
                    span.end(end_ns)
                    if self.where is not None:
                        live_spans.pop(self.where[1], None)
        except Exception as fault:  # noqa: BLE001 - this is the boundary
            boundary.caught("end of a tool call", fault)

    def fail(self, error: BaseException) -> None:
        """The tool raised. What is no Exception (a cancellation, an exit) says nothing of it."""
        if isinstance(error, Exception):
            self.finish(failure_text(error), failure=error_type(error))
        else:
            self.finish(outcome=Outcome.UNKNOWN)

    def allow(self, decision: Decision) -> None:
        """A human was asked, and allows the call."""
        self._told(decision, Verdict.APPROVED)

    def hold(self, decision: Decision, answer: Verdict | None = None) -> None:
        """The tool is not called; that is no step of the run.

        Args:
            decision: what was decided.
            answer: how it ended if a human was asked.
        """
        self.ended, self.args = True, MISSING
        try:
            self._told(decision, answer)
        finally:
            self.close(time_ns())

    def _told(self, decision: Decision, answer: Verdict | None) -> None:
        span = self.span if self.own else self.showing()
        self.pipeline.intervene(
            self.run, decision, self.name, span, context=self.place, answer=answer
        )


def capture_result(span: trace.Span, result: object) -> None:
    """Put a result on a span; only where the setting asks for content."""
    text = as_text(result)
    if text is not None:
        span.set_attribute(names.TOOL_RESULT, text)


def tool_attributes(
    pipeline: Pipeline,
    run: Run,
    shown: str,
    call_id: str | None,
    args_key: str | None,
    args: object,
) -> names.Attributes:
    """What a tool span of ours says from its start on."""
    agent = run.agent
    attributes: names.Attributes
    if args_key is not None and agent is not None:  # as most often
        attributes = {
            _OPERATION: "execute_tool", _TOOL_NAME: shown, _RUN_ID: run.id,
            _ARGS_FINGERPRINT: args_key, _AGENT_NAME: agent,
        }  # fmt: skip
    else:
        attributes = {_OPERATION: "execute_tool", _TOOL_NAME: shown}
        if run is not OUTSIDE:
            attributes[_RUN_ID] = run.id
        if args_key is not None:
            attributes[_ARGS_FINGERPRINT] = args_key
        if agent is not None:
            attributes[_AGENT_NAME] = agent
    if call_id is not None:
        attributes[names.TOOL_CALL_ID] = call_id
    if pipeline.captures:
        text = as_text(args)
        if text is not None:
            attributes[names.TOOL_ARGUMENTS] = text
    return attributes


def open_tool(
    wired: Wiring,
    name: str,
    args: object,
    call_id: str | None = None,
    offered: bool = True,  # noqa: FBT001, FBT002
    later: bool = False,  # noqa: FBT001, FBT002
    instead: Callable[[str], object] = str,
    traits: Traits | None = None,
) -> ToolCall | Held | None:
    """Begin a tool call; None if an outer layer shows it already. To be called behind a boundary.

    It is held back if the guard decides so: then it is over already.

    Args:
        wired: where it is told, and the conversations that may have asked for it.
        name: the tool's name.
        args: its arguments: a mapping or JSON text; MISSING if they cannot be known.
        call_id: the provider's id of the call.
        offered: False for a tool that does not exist: its name is the model's invention, and
            therefore content.
        later: another instrumentation is about to show this call on a span of its own.
        instead: makes what the call gives in place of a result, out of a note to the model.
        traits: what the code declares of the tool.
    """
    context, run, outer = here()
    if outer is not None and isinstance(outer, ToolCall) and outer.is_call(name, call_id):
        if traits is not None:
            outer.declare(traits)
        return None
    pipeline, parent = wired.pipeline, context
    guard = pipeline.guard
    if traits is not None:
        guard.declare(name, traits)
    args_key = guard.fingerprinter.of_args(args)
    round_id = None
    claim = None if wired.conversations is None else wired.claim(name, args_key, call_id)
    if claim is not None:
        run, call_id, round_id, asked_in = claim[:4]
        parent = context if asked_in is None else asked_in
    elif call_id is not None and run is not None:
        round_id = rounds.of(run.id, call_id)
    if run is None:
        run = OUTSIDE
    shown = name if offered else UNKNOWN_TOOL
    around = None
    if context.get(SPAN) is not run.span:
        around = open_around(_ROLE, name, ours=run.span, context=context)
    attributes = tool_attributes(pipeline, run, shown, call_id, args_key, args)
    title = f"execute_tool {shown}"
    call = ToolCall(pipeline, run, name, title, attributes, around, parent, later)
    call.args = args
    call.args_key, call.call_id, call.round_id, call.shadow = args_key, call_id, round_id, None
    if guard.decides and not guard.lets_go(run.id, name) and offered and run is not OUTSIDE:
        return decided(wired, call, instead)
    return call


def shown(
    call: ToolCall | Held | None,
    made: Callable[[ToolCall], Scope],
    held: Callable[[Held], Held] = lambda held: held,
) -> Scope | Held | None:
    """A framework's own scope for a call, or for what stands in for it."""
    if isinstance(call, ToolCall):
        return made(call)
    if isinstance(call, Asked):
        return call.then(made, held)
    return None if call is None else held(call)
