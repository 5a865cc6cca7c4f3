"""What the tests of all frameworks share: where spans are looked at, and loops over a model SDK.

It imports no framework: each is tested in environments that have no other.
"""

from __future__ import annotations

import inspect
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_loopguard.instrumentation import LoopGuardInstrumentor, instrument, uninstrument

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from opentelemetry.sdk.trace import ReadableSpan

KEY = "secret-key"
USER = {"role": "user", "content": "Find it."}
PARAMETERS = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "page": {"type": "integer"}},
    "required": ["query", "page"],
    "additionalProperties": False,
}
MARKER = "was not made"
"""In each note to the model: the scenario `nudge` loops until it reads that."""
WAYS = ("create", "stream", "helper", "parse", "raw", "raw-stream", "reading", "reading-stream")
"""How an SDK is asked: `raw` is with_raw_response, `reading` with_streaming_response."""


class Open(SpanProcessor):
    """The spans that have been started and not ended."""

    def __init__(self) -> None:
        self.spans: dict[int, str] = {}

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        self.spans[span.context.span_id] = span.name

    def on_end(self, span: Any) -> None:
        self.spans.pop(span.context.span_id, None)


class Telemetry:
    """A provider of its own, and the spans that it exported.

    Attributes:
        open: the spans that are still open.
    """

    def __init__(self) -> None:
        self.provider = TracerProvider()
        self.open = Open()
        self.provider.add_span_processor(self.open)
        self._exporter = InMemorySpanExporter()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def instrument(self, **settings: Any) -> None:
        """Watch, unless that is done already; with settings, by those."""
        if settings:
            self.uninstrument()
        if not LoopGuardInstrumentor().is_instrumented_by_opentelemetry:
            instrument(tracer_provider=self.provider, **settings)

    def uninstrument(self) -> None:
        """Stop watching: ends what is open."""
        if LoopGuardInstrumentor().is_instrumented_by_opentelemetry:
            uninstrument()

    @property
    def spans(self) -> list[ReadableSpan]:
        """All spans that ended, in the order of their end."""
        return list(self._exporter.get_finished_spans())

    def operation(self, name: str) -> list[ReadableSpan]:
        """The spans of one operation, in the order of their start."""
        found = [span for span in self.spans if of(span, "gen_ai.operation.name") == name]
        return sorted(found, key=lambda span: span.start_time or 0)

    @property
    def chats(self) -> list[ReadableSpan]:
        return self.operation("chat")

    @property
    def tools(self) -> list[ReadableSpan]:
        return self.operation("execute_tool")

    @property
    def agents(self) -> list[ReadableSpan]:
        return self.operation("invoke_agent")

    @property
    def patterns(self) -> list[tuple[str, str]]:
        """Pattern and severity of each deadlock event, in their order."""
        return [
            (event.attributes["loopguard.pattern"], event.attributes["loopguard.severity"])
            for span in self.spans
            for event in span.events
            if event.name == "loopguard.deadlock"
        ]

    def assert_run(self, *, chats: int, tools: int) -> ReadableSpan:
        """One trace of one run with exactly these spans, all below its agent span; returns that."""
        (agent,) = self.agents
        assert (len(self.chats), len(self.tools)) == (chats, tools)
        assert len(self.spans) == 1 + chats + tools
        assert_below(agent, *self.chats, *self.tools)
        return agent


def of(span: ReadableSpan, name: str) -> Any:
    """An attribute of a span, None without it."""
    return (span.attributes or {}).get(name)


def assert_below(agent: ReadableSpan, *spans: ReadableSpan) -> None:
    """The spans are children of an agent's, and in its run."""
    assert {span.parent and span.parent.span_id for span in spans} <= {agent.context.span_id}
    assert {span.context.trace_id for span in spans} <= {agent.context.trace_id}
    assert {of(span, "loopguard.run_id") for span in spans} <= {of(agent, "loopguard.run_id")}


class Said(NamedTuple):
    """What a model said: a text, and calls as (id, name, arguments as JSON text)."""

    text: str
    calls: tuple[tuple[str, str, str], ...]


class Api(Protocol):
    """One endpoint of a model SDK."""

    final: str
    """The method of a stream helper that gives the whole response."""
    forced: Any
    """The tool choice that leaves the model no other."""

    def endpoint(self, client: Any) -> Any:
        """What has the methods `create`, `parse` and `stream`."""
        ...

    def request(self, model: str, history: list[Any]) -> dict[str, Any]:
        """The arguments of a call that offers the tool `search`."""
        ...

    def said(self, response: Any) -> Said:
        """What a whole response says."""
        ...

    def gathered(self, events: list[Any]) -> Said:
        """What the events of a stream say."""
        ...

    def written(self, said: Said, results: list[str]) -> list[Any]:
        """What goes into the history."""
        ...


async def maybe(value: Any) -> Any:
    """A value of a sync or of an async client."""
    return await value if inspect.isawaitable(value) else value


def is_async(stream: Any) -> bool:
    """Whether a stream is async, below what others have put around it."""
    return hasattr(inspect.unwrap(stream), "__aiter__")


async def drained(stream: Any) -> list[Any]:
    """All events of a sync or an async stream."""
    if is_async(stream):
        return [event async for event in stream]
    return list(stream)


@asynccontextmanager
async def entered(manager: Any) -> AsyncIterator[Any]:
    """A sync or an async context manager."""
    if hasattr(inspect.unwrap(manager), "__aenter__"):
        async with manager as value:
            yield value
    else:
        with manager as value:
            yield value


def offers(api: Api, client: Any, way: str) -> bool:
    """Whether the installed version can be asked in this way."""
    return hasattr(api.endpoint(client), {"helper": "stream", "parse": "parse"}.get(way, "create"))


async def ask(api: Api, client: Any, way: str, request: Mapping[str, Any]) -> Said:
    """One model call, in one of the ways."""
    endpoint = api.endpoint(client)
    streams = {"stream": True} if way.endswith("stream") else {}
    kind = way.partition("-")[0]
    if kind == "helper":
        async with entered(endpoint.stream(**request)) as stream:
            await drained(stream)
            return api.said(await maybe(getattr(stream, api.final)()))
    if kind == "reading":
        async with entered(
            endpoint.with_streaming_response.create(**request, **streams)
        ) as response:
            return await _received(api, await maybe(response.parse()), way)
    if kind == "raw":
        response = await maybe(endpoint.with_raw_response.create(**request, **streams))
        return await _received(api, await maybe(response.parse()), way)
    send = endpoint.parse if kind == "parse" else endpoint.create
    return await _received(api, await maybe(send(**request, **streams)), way)


async def _received(api: Api, response: Any, way: str) -> Said:
    if way.endswith("stream"):
        return api.gathered(await drained(response))
    return api.said(response)


def nothing(_: str) -> str:
    """A tool that finds nothing, ever."""
    return "nothing"


@dataclass
class Conversation:
    """A hand-written agent: it calls the model until that answers, and writes its own history.

    Attributes:
        tool: gives a result for arguments (JSON text); may be async.
        most: after how many model calls it gives up.
        more: further arguments of each call.
    """

    api: Api
    client: Any
    model: str
    way: str = "create"
    tool: Callable[[str], str | Awaitable[str]] = nothing
    most: int = 12
    more: dict[str, Any] = field(default_factory=dict)
    history: list[Any] = field(default_factory=lambda: [USER])
    asked: int = 0
    executed: int = 0

    async def step(self) -> Said:
        """One model call and the tools that it asks for."""
        said = await self.ask()
        self.history += self.api.written(said, await self.answers(said))
        return said

    async def ask(self) -> Said:
        """One model call."""
        self.asked += 1
        request = {**self.api.request(self.model, self.history), **self.more}
        return await ask(self.api, self.client, self.way, request)

    async def answers(self, said: Said) -> list[str]:
        """The results of the calls that a response asks for."""
        return [await self.run(*call) for call in said.calls]

    async def run(self, call_id: str, name: str, args: str) -> str:
        """One execution of the tool."""
        self.executed += 1
        return await maybe(self.tool(args))

    async def go(self) -> str:
        """All of it; returns the answer."""
        while self.asked < self.most:
            said = await self.step()
            if not said.calls:
                return said.text
        return ""
