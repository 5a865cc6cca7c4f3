"""What holds beside every other instrumentation of LangChain, whichever came first.

A module of tests names the other's instrumentor and inherits these tests; each of them needs an
environment of its own, since the names of their entry points clash.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.callbacks import BaseCallbackManager
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.pregel import Pregel

from tests.frameworks.langchain_agents import PREBUILT, QUIET, build, chat, pages, run, search
from tests.frameworks.support import Telemetry, of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.sdk.trace import ReadableSpan

    from examples.scripted_model import ScriptedModel

OURS = "otel_loopguard"
ORDERS = ("theirs-before-ours", "ours-before-theirs")

PATCHED: tuple[tuple[type, str], ...] = (
    (BaseCallbackManager, "__init__"),
    (Pregel, "stream"),
    (Pregel, "astream"),
)
"""What another instrumentation may leave behind."""

every_order = pytest.mark.parametrize("order", ORDERS)
every_way = pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "amessages"])


def ours(telemetry: Telemetry) -> list[str]:
    """The names of the spans that we have made."""
    spans = sorted(telemetry.spans, key=lambda span: span.start_time or 0)
    return [span.name for span in spans if scope(span) == OURS]


def scope(span: ReadableSpan) -> str:
    return span.instrumentation_scope.name if span.instrumentation_scope else ""


def theirs(telemetry: Telemetry, name: str) -> list[ReadableSpan]:
    """The spans that the other instrumentation has made for a tool."""
    found = [
        span
        for span in telemetry.spans
        if scope(span) != OURS and span.name in (name, f"execute_tool {name}")
    ]
    return sorted(found, key=lambda span: span.start_time or 0)


class Beside:
    """The tests. `instrumentor` makes the other's instrumentor."""

    instrumentor: Any
    pytestmark = [*QUIET, pytest.mark.filterwarnings("ignore::DeprecationWarning")]  # noqa: RUF012

    @contextmanager
    def both(self, order: str) -> Iterator[Telemetry]:
        """Both at work. The last to come goes first: others unwrap whatever is outermost."""
        telemetry = Telemetry()
        with ExitStack() as stack:
            for name in order.split("-before-"):
                if name == "ours":
                    telemetry.instrument()
                    stack.callback(telemetry.uninstrument)
                else:
                    stack.enter_context(self.theirs(telemetry))
            yield telemetry

    @contextmanager
    def theirs(self, telemetry: Telemetry) -> Iterator[None]:
        """The other instrumentation at work, and gone afterwards even if it forgets a patch."""
        other = self.instrumentor()
        before = [(owner, name, vars(owner)[name]) for owner, name in PATCHED]
        other.instrument(tracer_provider=telemetry.provider, skip_dep_check=True)
        try:
            yield
        finally:
            other.uninstrument()
            for owner, name, value in before:
                setattr(owner, name, value)

    @every_way
    @every_order
    async def test_a_loop(self, server: ScriptedModel, order: str, way: str) -> None:
        with self.both(order) as telemetry:
            await run(build("graph", chat(server, "loop-5")), way)
        assert ours(telemetry) == []
        tools = theirs(telemetry, search.name)
        assert [of(span, "loopguard.iteration") for span in tools] == [1, 2, 3, 4, 5]
        assert [of(span, "loopguard.repeat_count") for span in tools] == [1, 2, 3, 4, 5]
        assert telemetry.patterns == [("hard_loop", "warning"), ("hard_loop", "critical")]
        assert [of(span, "loopguard.severity") for span in tools] == [
            None, None, "warning", None, "critical",
        ]  # fmt: skip
        told = [span for span in telemetry.spans if of(span, "loopguard.run_id") is not None]
        assert len({of(span, "loopguard.run_id") for span in told}) == 1
        assert len(told) == 6 + 5

    @every_way
    @every_order
    async def test_paging(self, server: ScriptedModel, order: str, way: str) -> None:
        with self.both(order) as telemetry:
            await run(build(PREBUILT, chat(server, "paging-4"), [pages]), way)
        assert ours(telemetry) == []
        tools = theirs(telemetry, pages.name)
        assert [of(span, "loopguard.iteration") for span in tools] == [1, 2, 3, 4]
        assert {of(span, "loopguard.status") for span in tools} == {"healthy"}
        assert telemetry.patterns == []

    @every_order
    async def test_failures_are_told_beside_their_spans(
        self, server: ScriptedModel, order: str
    ) -> None:
        @tool
        def broken(query: str) -> str:
            """Always fails."""
            raise RuntimeError("gone")

        with self.both(order) as telemetry:
            await run(build("graph", chat(server, "loop-5"), [broken]), "invoke")
        assert telemetry.patterns == [("retry_storm", "warning"), ("retry_storm", "critical")]
        assert ours(telemetry) == ["loopguard.deadlock"] * 2
        assert len(theirs(telemetry, broken.name)) == 5
        markers = [span for span in telemetry.spans if scope(span) == OURS]
        assert [of(span, "loopguard.severity") for span in markers] == ["warning", "critical"]
        assert (
            len({span.context.trace_id for span in telemetry.spans if of(span, "loopguard.run_id")})
            == 1
        )

    @every_order
    async def test_agent_as_a_tool(self, server: ScriptedModel, order: str) -> None:
        helper = build("graph", chat(server, "loop-1"))

        @tool
        def delegate(task: str) -> str:
            """Let the helper do it."""
            return helper.invoke({"messages": [HumanMessage(task)]})["messages"][-1].content

        with self.both(order) as telemetry:
            await run(build(PREBUILT, chat(server, "loop-3"), [delegate]), "invoke")
        delegations = theirs(telemetry, delegate.name)
        assert [of(span, "loopguard.iteration") for span in delegations] == [1, 2, 3]
        assert [of(span, "loopguard.iteration") for span in theirs(telemetry, search.name)] == [
            1
        ] * 3
        assert telemetry.patterns == [("hard_loop", "warning")]
        assert of(delegations[2], "loopguard.severity") == "warning"
        assert ours(telemetry) == []

    def test_it_may_come_and_go(self, server: ScriptedModel, telemetry: Telemetry) -> None:
        graph = build("graph", chat(server, "loop-1"))
        mine = ["invoke_agent LangGraph", "chat loop-1", "execute_tool search", "chat loop-1"]
        graph.invoke({"messages": [HumanMessage("Find it.")]})
        assert ours(telemetry) == mine
        with self.theirs(telemetry):
            graph.invoke({"messages": [HumanMessage("Find it.")]})
            assert ours(telemetry) == mine
        graph.invoke({"messages": [HumanMessage("Find it.")]})
        assert ours(telemetry) == mine * 2
