"""What holds for a loop over a model SDK that another vendor instruments too."""

from __future__ import annotations

import importlib
from collections import Counter
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import otel_loopguard as loopguard
from otel_loopguard import runtime
from otel_loopguard.instrumentation import instrument
from otel_loopguard.sdk.processor import LoopGuardSpanProcessor
from tests.frameworks.support import (
    Api,
    Conversation,
    Telemetry,
    assert_below,
    entered,
    of,
    offers,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping

    from opentelemetry.instrumentation.instrumentor import BaseInstrumentor
    from opentelemetry.sdk.trace import Event, ReadableSpan

    from examples.scripted_model import ScriptedModel

OURS = "otel_loopguard"
TOKENS = 120
"""What each call of the scripted model costs."""
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


@dataclass(frozen=True)
class Vendor:
    """Somebody else's instrumentation of a model SDK.

    Attributes:
        package: its module.
        content: the environment that has content on its spans.
        hidden: the environment that has none.
        inside: the endpoints whose spans start inside of our hook, below our agent span.
        after: the endpoints that it gives a span only when the response is there.
        misses: the endpoints and ways that it shows by no span as long as the call.
        breaks: those that it makes fail, or warns in.
        stays: whether it stays when it is uninstrumented.
    """

    package: str
    content: Mapping[str, str] = field(default_factory=dict)
    hidden: Mapping[str, str] = field(default_factory=dict)
    inside: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    misses: frozenset[str] = frozenset()
    breaks: frozenset[str] = frozenset()
    stays: bool = False

    def instrumentor(self) -> BaseInstrumentor:
        """Its instrumentor, of which there is one in the process."""
        module = importlib.import_module(self.package)
        (name,) = (name for name in vars(module) if name in INSTRUMENTORS)
        return getattr(module, name)()


INSTRUMENTORS = ("OpenAIInstrumentor", "AnthropicInstrumentor")
VENDORS = {
    "openai": (
        Vendor("opentelemetry.instrumentation.genai.openai", {CAPTURE: "span_only"}),
        Vendor(
            "openinference.instrumentation.openai",
            hidden={"OPENINFERENCE_HIDE_INPUTS": "true", "OPENINFERENCE_HIDE_OUTPUTS": "true"},
            inside=frozenset({"Chat", "Responses"}),
        ),
        Vendor(
            "opentelemetry.instrumentation.openai",
            hidden={"TRACELOOP_TRACE_CONTENT": "false"},
            after=frozenset({"Responses"}),
            misses=frozenset({"Responses raw-stream"}),
            stays=True,
        ),
    ),
    "anthropic": (
        Vendor("opentelemetry.instrumentation.genai.anthropic", {CAPTURE: "span_only"}),
        Vendor(
            "openinference.instrumentation.anthropic",
            hidden={"OPENINFERENCE_HIDE_INPUTS": "true", "OPENINFERENCE_HIDE_OUTPUTS": "true"},
        ),
        Vendor(
            "opentelemetry.instrumentation.anthropic",
            hidden={"TRACELOOP_TRACE_CONTENT": "false"},
            misses=frozenset({"Messages parse", "BetaMessages parse", "BetaMessages helper"}),
            breaks=frozenset({"async raw", "async raw-stream"}),
        ),
    ),
}


def installed(framework: str) -> Vendor:
    """The vendor whose package is in this environment; skips the module without one."""
    for vendor in VENDORS[framework]:
        try:
            found = find_spec(vendor.package)
        except ModuleNotFoundError:
            continue
        if found is not None:
            return vendor
    pytest.skip(f"nobody else instruments {framework} here", allow_module_level=True)


@contextmanager
def restored(modules: Iterable[str]) -> Iterator[None]:
    """Put back what an instrumentation has wrapped in these modules and cannot take off itself."""
    classes = {
        value
        for module in modules
        for value in vars(importlib.import_module(module)).values()
        if isinstance(value, type)
    }
    before = [(each, dict(vars(each))) for each in classes]
    yield
    for each, attributes in before:
        for name, value in vars(each).copy().items():
            if name in attributes and attributes[name] is not value:
                setattr(each, name, attributes[name])


class Beside(Telemetry):
    """Our telemetry with that of a vendor, on one provider."""

    def __init__(self, vendor: Vendor) -> None:
        super().__init__()
        self.vendor = vendor
        self.vendor_is_gone = False
        self._reader = InMemoryMetricReader()
        self._meters = MeterProvider([self._reader])

    def instrument(self, **settings: Any) -> None:
        instrument(tracer_provider=self.provider, meter_provider=self._meters, **settings)

    def instrument_vendor(self) -> None:
        self.vendor.instrumentor().instrument(tracer_provider=self.provider)

    def uninstrument_vendor(self) -> None:
        instrumentor = self.vendor.instrumentor()
        self.vendor_is_gone = True
        if instrumentor.is_instrumented_by_opentelemetry:
            instrumentor.uninstrument()

    def close(self) -> None:
        self.uninstrument()
        self.uninstrument_vendor()
        self._meters.shutdown()

    @property
    def models(self) -> list[ReadableSpan]:
        """One span a model call, whoever made it: the outermost, but not the SDK's own."""
        found = [span for span in self.spans if is_model(span) and not is_native(span)]
        return sorted(found, key=lambda span: span.start_time or 0)

    @property
    def deadlocks(self) -> list[Event]:
        """The deadlock events, in the order of their spans' end."""
        found = [event for span in self.spans for event in span.events]
        return [event for event in found if event.name == "loopguard.deadlock"]

    def assert_counted(self, *, models: int, tools: int) -> None:
        """As many spans as there were calls: theirs for the models, ours for the tools."""
        assert (len(self.models), len(self.tools)) == (models, tools)
        assert OURS not in {scope(span) for span in self.models} or self.vendor_is_gone
        assert {scope(span) for span in self.tools} == {OURS}

    @property
    def counted(self) -> dict[str, int]:
        """The counter of deadlocks, by severity."""
        counts: Counter[str] = Counter()
        data = self._reader.get_metrics_data()
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    if metric.name == "loopguard.deadlocks":
                        for point in metric.data.data_points:
                            counts[point.attributes["loopguard.severity"]] += point.value
        return dict(counts)


def is_model(span: ReadableSpan) -> bool:
    said = of(span, "gen_ai.operation.name") or of(span, "openinference.span.kind")
    return said in ("chat", "LLM") or span.name == "openai.response"


def is_native(span: ReadableSpan) -> bool:
    return scope(span) == "com.anthropic.sdk.python"


def scope(span: ReadableSpan) -> str:
    return span.instrumentation_scope.name if span.instrumentation_scope else ""


def parent(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent else None


ORDERS = ("theirs-ours", "ours-theirs")
WAYS = ("create", "stream", "helper", "parse", "raw", "raw-stream")
every_way = pytest.mark.parametrize("way", WAYS)


@pytest.mark.filterwarnings("ignore:Support for class-based `config`:DeprecationWarning")  # theirs
class LoopsBeside:
    """The tests; a subclass names the endpoint."""

    vendor: ClassVar[Vendor]
    api: ClassVar[Api]
    connect: ClassVar[Callable[..., Any]]
    modules: ClassVar[tuple[str, ...]]
    """Where the classes of the SDK are that are wrapped."""

    @pytest.fixture(params=ORDERS)
    def order(self, request: pytest.FixtureRequest) -> str:
        """Who instruments first."""
        return request.param

    @pytest.fixture(params=[True, False], ids=["content", "no-content"])
    def content(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
        """Whether their spans hold what is said."""
        for name, value in (self.vendor.content if request.param else self.vendor.hidden).items():
            monkeypatch.setenv(name, value)
        return request.param

    @pytest.fixture
    def both(self, content: bool) -> Iterator[Beside]:
        """Neither at work yet."""
        both = Beside(self.vendor)
        with restored(self.modules):
            yield both
            both.close()

    @pytest.fixture
    def beside(self, both: Beside, order: str) -> Beside:
        """Both at work."""
        steps = [both.instrument_vendor, both.instrument]
        for step in steps if order == "theirs-ours" else reversed(steps):
            step()
        return both

    @pytest.fixture
    def alone(self, both: Beside) -> Iterator[Beside]:
        """Their spans, and our processor without any hook."""
        runtime.reset()
        processor = LoopGuardSpanProcessor(both.provider)
        both.provider.add_span_processor(processor)
        both.instrument_vendor()
        yield both
        processor.shutdown()
        runtime.reset()

    @pytest.fixture(params=[False, True], ids=["sync", "async"])
    def is_async(self, request: pytest.FixtureRequest) -> bool:
        return request.param

    @pytest.fixture
    def options(self) -> dict[str, Any]:
        """Further arguments of a client."""
        return {}

    @asynccontextmanager
    async def client(
        self, server: ScriptedModel, *, is_async: bool, options: dict[str, Any]
    ) -> AsyncIterator[Any]:
        connected = type(self).connect(server.base_url, is_async=is_async, **options)
        async with entered(connected) as client:
            yield client

    def loop(self, client: Any, model: str, way: str = "create") -> Conversation:
        sort = "async" if hasattr(client, "__aenter__") else "sync"
        if f"{sort} {way}" in self.vendor.breaks:
            pytest.skip(f"it breaks {sort} {way}")
        if not offers(self.api, client, way):
            pytest.skip(f"this version cannot {way}")
        return Conversation(self.api, client, model, way)

    @property
    def opens(self) -> bool:
        """Whether an agent span of ours is open around their spans, or would be."""
        return type(self.api).__name__ in self.vendor.inside | self.vendor.after

    @every_way
    async def test_a_loop(
        self, beside: Beside, server: ScriptedModel, is_async: bool, options: Any, way: str
    ) -> None:
        async with self.client(server, is_async=is_async, options=options) as client:
            assert await self.loop(client, "loop-5", way).go() == "Finished after 5 turns."
        beside.uninstrument()
        name = type(self.api).__name__
        if f"{name} {way}" in self.vendor.misses:
            shown = [span for span in beside.spans if scope(span) == OURS or is_native(span)]
            models = sorted(filter(is_model, shown), key=lambda span: span.start_time or 0)
            assert (len(models), len(beside.tools)) == (6, 5)
        else:
            beside.assert_counted(models=6, tools=5)
            models = beside.models
        assert len({of(span, "loopguard.run_id") for span in models + beside.tools}) == 1
        if name in self.vendor.after:
            assert_below(*beside.agents, *beside.tools)
        elif name in self.vendor.inside or f"{name} {way}" in self.vendor.misses:
            assert_below(*beside.agents, *models, *beside.tools)
        else:
            assert beside.agents == []
            asking = [span.context.span_id for span in models[:-1]]
            assert [parent(span) for span in beside.tools] == asking
        stuck = models[3:5] if name in self.vendor.after else models[3:]
        assert {of(span, "loopguard.status") for span in stuck} == {"deadlocked"}
        assert [of(span, "loopguard.iteration") for span in beside.tools] == [1, 2, 3, 4, 5]
        assert [of(span, "loopguard.repeat_count") for span in beside.tools] == [1, 2, 3, 4, 5]
        assert beside.patterns == [("hard_loop", "warning"), ("hard_loop", "critical")]
        assert beside.counted == {"warning": 1, "critical": 1}
        third, fifth = beside.tools[2], beside.tools[4]
        assert [[event.name for event in span.events] for span in (third, fifth)] == [
            ["loopguard.deadlock"]
        ] * 2
        assert fifth.status.description == "deadlock: hard_loop"

    @pytest.mark.parametrize("around", ["run", "span"])
    @pytest.mark.parametrize("way", ["create", "stream"])
    async def test_a_scope_around_it_is_one_trace(
        self,
        beside: Beside,
        server: ScriptedModel,
        is_async: bool,
        options: Any,
        way: str,
        around: str,
    ) -> None:
        tracer = beside.provider.get_tracer("application")
        run = around == "run"
        with loopguard.run("x") if run else tracer.start_as_current_span("request"):
            async with self.client(server, is_async=is_async, options=options) as client:
                await self.loop(client, "loop-5", way).go()
        beside.uninstrument()
        beside.assert_counted(models=6, tools=5)
        assert len({span.context.trace_id for span in beside.spans if not is_native(span)}) == 1
        assert len({of(span, "loopguard.run_id") for span in beside.models + beside.tools}) == 1
        assert [span.name for span in beside.agents][:1] == (
            ["invoke_agent x"] if around == "run" else ["invoke_agent"] * self.opens
        )
        assert beside.counted == {"warning": 1, "critical": 1}
        if way == "create":
            wasted = [event.attributes["loopguard.wasted_tokens"] for event in beside.deadlocks]
            assert wasted == [2 * TOKENS, 4 * TOKENS]

    async def test_parallel_calls(
        self, beside: Beside, server: ScriptedModel, is_async: bool, options: Any
    ) -> None:
        async with self.client(server, is_async=is_async, options=options) as client:
            await self.loop(client, "parallel-3x2").go()
        beside.uninstrument()
        beside.assert_counted(models=3, tools=6)
        assert [of(span, "loopguard.iteration") for span in beside.tools] == [1] * 3 + [2] * 3
        assert beside.patterns == []

    async def test_ours_goes(
        self, beside: Beside, server: ScriptedModel, is_async: bool, options: Any
    ) -> None:
        beside.uninstrument()
        async with self.client(server, is_async=is_async, options=options) as client:
            await self.loop(client, "loop-5").go()
        assert len(beside.models) == 6
        assert not [span for span in beside.spans if scope(span) == OURS]
        assert not [key for span in beside.spans for key in span.attributes if OURS in key]

    async def test_theirs_goes(
        self, beside: Beside, server: ScriptedModel, is_async: bool, options: Any
    ) -> None:
        beside.uninstrument_vendor()
        async with self.client(server, is_async=is_async, options=options) as client:
            await self.loop(client, "loop-5").go()
        if not self.vendor.stays:
            beside.assert_run(chats=6, tools=5)
        assert len(beside.tools) == 5
        assert beside.counted == {"warning": 1, "critical": 1}

    @pytest.mark.parametrize("way", ["create", "stream"])
    async def test_the_processor_alone(
        self,
        alone: Beside,
        server: ScriptedModel,
        is_async: bool,
        options: Any,
        way: str,
        content: bool,
    ) -> None:
        """Their spans tell of the loop, or nothing is claimed."""
        tracer = alone.provider.get_tracer("application")
        with tracer.start_as_current_span("request"):
            async with self.client(server, is_async=is_async, options=options) as client:
                await self.loop(client, "loop-5", way).go()
        assert len(alone.models) == 6
        markers = [span for span in alone.spans if scope(span) == OURS]
        expected = [("hard_loop", "warning"), ("hard_loop", "critical")] if content else []
        assert alone.patterns == expected
        assert [span.name for span in markers] == ["loopguard.deadlock"] * len(expected)
