"""langgraph: a graph's run is an agent run; a call of an unknown tool is a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from otel_loopguard.core.model import Outcome
from otel_loopguard.instrumentation.hooks import aiterates, iterates
from otel_loopguard.instrumentation.langchain_tools import astopping, stopping
from otel_loopguard.instrumentation.langgraph_runs import Answer, begin_run
from otel_loopguard.instrumentation.table import Row, Wrapper
from otel_loopguard.instrumentation.tools import ToolCall, open_tool
from otel_loopguard.runtime import guarded

if TYPE_CHECKING:
    from otel_loopguard.instrumentation.wiring import Wiring


def _unknown_tools(wired: Wiring) -> Wrapper:
    """ToolNode answers a call of an unknown tool itself, with a message."""

    @guarded("unknown tool")
    def tell(call: Any, answer: Any) -> None:
        shown = open_tool(
            wired, call["name"], call.get("args"), call_id=call.get("id"), offered=False
        )
        if isinstance(shown, ToolCall):
            shown.finish(answer.content, failure="unknown_tool", outcome=Outcome.UNKNOWN_TOOL)

    def wrapper(wrapped: Any, _instance: Any, args: Any, kwargs: Any) -> Any:
        answer = wrapped(*args, **kwargs)
        if answer is not None:
            tell(args[0] if args else kwargs["call"], answer)
        return answer

    return wrapper


_TOOLS: Final = "langgraph.prebuilt.tool_node"
SUPPORTED: Final = "langgraph >= 0.2.20, < 2"
ROWS: Final = (
    Row("langgraph.pregel.main", "Pregel.stream", iterates(begin_run, Answer)),
    Row("langgraph.pregel.main", "Pregel.astream", aiterates(begin_run, Answer)),
    Row("langgraph.pregel", "Pregel.stream", iterates(begin_run, Answer)),  # before 0.6
    Row("langgraph.pregel", "Pregel.astream", aiterates(begin_run, Answer)),
    Row(_TOOLS, "ToolNode._validate_tool_call", _unknown_tools),
    Row(_TOOLS, "ToolNode._run_one", stopping),
    Row(_TOOLS, "ToolNode._arun_one", astopping),
)
