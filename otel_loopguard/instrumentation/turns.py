"""One conversation over a model SDK as it is shown, and one model call of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from opentelemetry import trace

from otel_loopguard.sdk.scope import Run, enter_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.context import Context

    from otel_loopguard.core.chain import Chain, Pending
    from otel_loopguard.core.exchange import ModelResponse
    from otel_loopguard.instrumentation.handwritten import Handwritten
    from otel_loopguard.instrumentation.models import ModelCall

Later = Literal["inside", "after"]
"""When another instrumentation opens its span for a call: while the call runs, or after it."""
WAIT_NS: Final = 1_000_000_000


class Claim(NamedTuple):
    """A pending call that an execution belongs to.

    Attributes:
        run: its run.
        call_id: its id in that run.
        round: what the calls of one response share.
        context: where it hangs; None for where the code runs.
        offered: whether the model was offered such a tool, as far as known.
        pending: the call; None before the response that asks for it is complete.
    """

    run: Run
    call_id: str
    round: str
    context: Context | None
    offered: bool = True
    pending: Pending | None = None


class Early(NamedTuple):
    """A call that was executed before the response that asks for it was complete."""

    name: str
    args_key: str | None
    call_id: str | None


@dataclass(slots=True)
class Loop:
    """What the instrumentation keeps of a conversation.

    Attributes:
        run: its run.
        span: the `invoke_agent` span that is open for it, if it is ours and open.
        parent: the span that its spans hang below; None for the span of the code that runs.
        inherited: whether some scope around the conversation is the run.
        offered: the tools last offered, as far as known; a server may keep them from then on.
        early: what was executed already of the response that is streaming.
    """

    run: Run
    span: trace.Span | None = None
    parent: trace.Span | None = None
    inherited: bool = False
    offered: frozenset[str] | None = None
    early: list[Early] = field(default_factory=list["Early"])

    def offers(self, name: str) -> bool:
        """Whether the model was offered a tool, as far as known."""
        return self.offered is None or name in self.offered

    @property
    def context(self) -> Context | None:
        """The context of the code that runs, moved below the parent; None where that is no move."""
        if self.parent is None:
            return None
        return enter_run(self.run, trace.set_span_in_context(self.parent))


class Turn:
    """One model call of a conversation, until it is finished or has failed: once.

    With `waits`, another instrumentation may show the call when it is over.
    """

    __slots__ = ("_chain", "_handwritten", "_later", "call")

    def __init__(
        self, handwritten: Handwritten, chain: Chain, call: ModelCall, *, waits: bool
    ) -> None:
        self._handwritten = handwritten
        self._chain = chain
        self._later = self._wait if waits else None
        self.call = call

    def finish(self, response: ModelResponse | None, end_ns: int = 0) -> None:
        """The model has answered; None if what it said could not be read.

        Args:
            response: what it said.
            end_ns: when, if that is not now.
        """
        if self._handwritten.settle(self):
            self.call.finish(response, end_ns=end_ns, later=self._later)
            self._respond(response)

    def drop(self) -> None:
        """The request is not sent, or not yet."""
        self._handwritten.settle(self)

    def resume(self) -> None:
        """The request is sent after all."""
        self._handwritten.resume(self)

    def fail(self, error: BaseException, response: ModelResponse | None = None) -> None:
        """The call raised; `response` is what had come until then."""
        if self._handwritten.settle(self):
            self.call.fail(error, response, later=self._later)
            self._respond(response)

    def later(self, task: Callable[[], object]) -> None:
        """Do something soon. Safe wherever garbage is collected."""
        self._handwritten.later(task)

    def _wait(self, task: Callable[[], object]) -> None:
        """Do something once another instrumentation had the time to show the call."""
        self._handwritten.later(task, time.time_ns() + WAIT_NS)

    def _respond(self, response: ModelResponse | None) -> None:
        if response is not None:
            self._handwritten.respond(self._chain, response)
