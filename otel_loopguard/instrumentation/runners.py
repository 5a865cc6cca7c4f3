"""Tool runners of the model SDKs: what they make of a tool's result for the next request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from otel_loopguard.instrumentation.wire.fields import get, result_of
from otel_loopguard.runtime import guarded

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from otel_loopguard.instrumentation.tools import ToolCall

FAILURE: Final = "tool_error"


class RunnerCall:
    """An execution by a tool runner, which returns the item or block that it will send.

    Args:
        call: the tool call.
        field: where in that the result is.
    """

    def __init__(self, call: ToolCall, field: str) -> None:
        self._call = call
        self._field = field

    @property
    def context(self) -> Context:
        """The context that the tool runs in."""
        return self._call.context

    @guarded("result of a tool runner")
    def finish(self, sent: object = None, /) -> None:
        """The tool is done; one that raised is told by a mark on what is sent."""
        failure = FAILURE if get(sent, "is_error") is True else None
        self._call.finish(result_of(get(sent, self._field)), failure=failure)

    def fail(self, error: BaseException, /) -> None:
        """The runner gives up on the tool's exception."""
        self._call.fail(error)
