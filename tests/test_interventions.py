"""What is told of calls that are held back, and what decorated functions do then."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry._logs import SeverityNumber

import otel_loopguard
from otel_loopguard.core.decision import GO
from otel_loopguard.runtime import boundary
from otel_loopguard.sdk.scope import Run, live_spans
from tests.signals import Signals, attributes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

QUERY = "the needle in the haystack"
PAGE = "a page without any needle, though it is long and has been read with great care by all"
EVENT = {
    "gen_ai.agent.name": str,
    "gen_ai.tool.name": str,
    "loopguard.finding_id": str,
    "loopguard.intervention": str,
    "loopguard.intervention_no": int,
    "loopguard.mode": str,
    "loopguard.pattern": str,
    "loopguard.recovery_level": int,
    "loopguard.repeats": int,
    "loopguard.run_id": str,
    "loopguard.severity": str,
}
HELD = {
    "gen_ai.agent.name": str,
    "gen_ai.operation.name": str,
    "gen_ai.tool.name": str,
    "loopguard.args_fingerprint": str,
    "loopguard.intervention": str,
    "loopguard.recovery_level": int,
    "loopguard.run_id": str,
    "loopguard.status": str,
}
NOTE = "This call was not made: search was called 3 times"


@pytest.fixture
def signals() -> Signals:
    return Signals()


class Tool:
    """A decorated tool of each kind, which counts how often it really ran."""

    def __init__(self, **options: Any) -> None:
        self.made = 0
        decorate = otel_loopguard.tool(name="search", **options)
        self.plain = decorate(self._plain)
        self.coroutine = decorate(self._coroutine)
        self.generator = decorate(self._generator)
        self.async_generator = decorate(self._async_generator)

    def _plain(self, query: str) -> str:
        self.made += 1
        return PAGE

    async def _coroutine(self, query: str) -> str:
        await asyncio.sleep(0)
        return self._plain(query)

    def _generator(self, query: str) -> Iterator[str]:
        yield self._plain(query)

    async def _async_generator(self, query: str) -> AsyncIterator[str]:
        await asyncio.sleep(0)
        yield self._plain(query)


def types(of: Any) -> dict[str, type]:
    return {name: type(value) for name, value in attributes(of).items()}


def loop(times: int, tool: Tool | None = None) -> Any:
    """The same call again and again; gives what the last one gave."""
    search, result = (tool or Tool()).plain, None
    with otel_loopguard.run("finder"):
        for _ in range(times):
            result = search(QUERY)
    return result


def told(signals: Signals, name: str = "loopguard.intervention") -> list[Any]:
    return [event for span in signals.spans for event in span.events if event.name == name]


def test_a_call_that_is_held_back_has_a_span_that_says_so(signals: Signals) -> None:
    with signals.instrumented(action="nudge"):
        result = loop(4)
    *made, held = signals.named("execute_tool search")
    assert result.startswith(NOTE)
    assert types(held) == HELD
    (event,) = held.events
    assert event.name == "loopguard.intervention"
    assert types(event) == EVENT
    said = attributes(event)
    assert said["loopguard.intervention"] == "inject_correction"
    assert said["loopguard.recovery_level"] == attributes(held)["loopguard.recovery_level"] == 1
    assert said["loopguard.mode"] == "nudge"
    (deadlock,) = signals.events
    for name in ("finding_id", "run_id", "pattern", "repeats"):
        assert said[f"loopguard.{name}"] == attributes(deadlock)[f"loopguard.{name}"]
    assert held.status.is_unset
    assert attributes(made[-1])["loopguard.iteration"] == 3
    (agent,) = signals.named("invoke_agent finder")
    assert attributes(agent)["loopguard.iteration"] == 3  # what was not made is no step


def test_a_run_that_is_stopped_says_what_could_not_be_done_before(signals: Signals) -> None:
    with signals.instrumented(action="break"), pytest.raises(otel_loopguard.DeadlockError) as error:
        loop(10)
    *_, last = told(signals)
    assert types(last) == {**EVENT, "loopguard.skipped_interventions": tuple}
    assert attributes(last)["loopguard.skipped_interventions"] == ("force_final_answer",)
    assert attributes(last)["loopguard.intervention"] == "end_run"
    assert attributes(last)["loopguard.recovery_level"] == 3
    assert attributes(last)["loopguard.intervention_no"] == 3
    assert error.value.finding_id == attributes(last)["loopguard.finding_id"]
    assert error.value.run_id == attributes(last)["loopguard.run_id"]
    (agent,) = signals.named("invoke_agent finder")
    assert attributes(agent)["loopguard.end_reason"] == "deadlock"
    assert attributes(agent)["error.type"] == "otel_loopguard.DeadlockError"


def test_the_counter_agrees_with_the_events(signals: Signals) -> None:
    with signals.instrumented(action="break"):
        with pytest.raises(otel_loopguard.DeadlockError):
            loop(10)
        assert signals.points("loopguard.interventions") == {
            (): 0,
            ("finder", "inject_correction", "break", "hard_loop"): 2,
            ("finder", "end_run", "break", "hard_loop"): 1,
        }
    assert len(told(signals)) == 3


def test_a_shadow_makes_every_call_and_says_what_it_would_have_done(signals: Signals) -> None:
    tool = Tool()
    with signals.instrumented(action="shadow"):
        assert loop(6, tool) == PAGE
        counted = signals.points("loopguard.interventions")
    assert tool.made == 6
    spans = [attributes(span) for span in signals.named("execute_tool search")]
    assert [span.get("loopguard.would_intervene") for span in spans] == [None] * 3 + [True] * 3
    assert [span["loopguard.repeat_count"] for span in spans] == [1, 2, 3, 4, 5, 6]
    assert not [span for span in spans if "loopguard.intervention" in span]
    assert counted[("finder", "inject_correction", "shadow", "hard_loop")] == 2
    assert counted[("finder", "end_run", "shadow", "hard_loop")] == 1
    assert len(told(signals)) == 3


def test_observing_tells_of_no_intervention(signals: Signals) -> None:
    with signals.instrumented():
        loop(6)
        assert signals.points("loopguard.interventions") == {(): 0}
    assert told(signals) == []


@pytest.mark.parametrize("emit", ["span", "metric", "log"])
def test_an_intervention_is_told_where_the_setting_says(signals: Signals, emit: str) -> None:
    with signals.instrumented(action="nudge", emit=emit):
        loop(5)
        counted = signals.points("loopguard.interventions")
    assert len(told(signals)) == (2 if emit == "span" else 0)
    assert sum(counted.values()) == (2 if emit == "metric" else 0)
    records = [each.log_record for each in signals.logs]
    logged = [each for each in records if each.event_name == "loopguard.intervention"]
    assert len(logged) == (2 if emit == "log" else 0)
    assert {each.severity_number for each in logged} <= {SeverityNumber.WARN}
    spans = {f"{span.context.span_id:x}" for span in signals.named("execute_tool search")[3:]}
    assert {f"{each.span_id:x}" for each in logged} in (set(), spans)


def test_nothing_that_is_told_holds_content(signals: Signals) -> None:
    with (
        signals.instrumented(action="break", emit="span,metric,log"),
        pytest.raises(otel_loopguard.DeadlockError) as error,
    ):
        loop(10)
    everything = [str(span.to_json()) for span in signals.spans]
    everything += [str(record.to_json()) for record in signals.logs]
    everything += [str(error.value), repr(error.value.finding)]
    assert not [text for text in everything if QUERY in text or PAGE in text or NOTE in text]


def test_what_lets_a_call_go_is_not_told(signals: Signals) -> None:
    signals.pipeline().intervene(Run("one"), GO, "search", None)
    assert signals.points("loopguard.interventions") == {}


def test_a_call_whose_span_has_ended_is_counted(signals: Signals) -> None:
    pipeline = signals.pipeline(action="nudge")
    with signals.instrumented(action="nudge") as wired, otel_loopguard.run("finder"):
        for _ in range(3):
            Tool().plain(QUERY)
        guard = wired.pipeline.guard
        (event,) = signals.events
        run_id = str(attributes(event)["loopguard.run_id"])
        key = guard.fingerprinter.of_args({"query": QUERY})
        decision = guard.decide(run_id, "search", key)
    pipeline.intervene(Run(run_id), decision, "search", None)
    assert told(signals) == []
    assert sum(signals.points("loopguard.interventions").values()) == 1


async def drained(tool: Tool) -> list[Any]:
    return [each async for each in tool.async_generator(QUERY)]


KINDS: tuple[Callable[[Tool], Any], ...] = (
    lambda tool: tool.plain(QUERY),
    lambda tool: asyncio.run(tool.coroutine(QUERY)),
    lambda tool: list(tool.generator(QUERY)),
    lambda tool: asyncio.run(drained(tool)),
)
"""One call of each kind of function."""


def test_observed_each_kind_of_function_goes_on(signals: Signals) -> None:
    with signals.instrumented():
        for call in KINDS:
            tool = Tool()
            with otel_loopguard.run("finder"):
                for _ in range(50):
                    call(tool)
            assert tool.made == 50


def model(history: list[tuple[str, str]], *, reads: bool = True) -> str | None:
    """A model that asks for the same call for ever, unless it reads a note; gives the call's id."""
    done = reads and history and history[-1][1].startswith(NOTE)
    return None if done else f"call-{len(history)}"


def test_the_model_reads_the_note_under_the_id_of_the_call(signals: Signals) -> None:
    for call in KINDS:
        tool, history = Tool(), list[tuple[str, str]]()
        with signals.instrumented(action="nudge"), otel_loopguard.run("finder"):
            while (call_id := model(history)) is not None:
                result = call(tool)
                history.append((call_id, result[0] if isinstance(result, list) else result))
        assert tool.made == 3
        assert [text == PAGE for _, text in history] == [True] * 3 + [False]


def at_once_in_threads(tool: Tool, queries: list[str]) -> None:
    with ThreadPoolExecutor(len(queries)) as pool:
        jobs = [pool.submit(copy_context().run, tool.plain, query) for query in queries]
        for job in jobs:
            job.result()


def at_once_in_tasks(tool: Tool, queries: list[str]) -> None:
    async def work() -> None:
        await asyncio.gather(*map(tool.coroutine, queries))
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(work())


@pytest.mark.parametrize("at_once", [at_once_in_threads, at_once_in_tasks])
def test_calls_at_once_are_decided_each_for_itself(
    signals: Signals, at_once: Callable[[Tool, list[str]], None]
) -> None:
    before, queries = set(live_spans), [QUERY, f"{QUERY} and below it"]
    tool = Tool()
    with signals.instrumented(action="break"):
        with otel_loopguard.run("finder"):
            for _ in range(5):
                at_once(tool, queries)
            with pytest.raises(otel_loopguard.DeadlockError) as error:
                at_once(tool, queries)
        assert error.value.run_id == attributes(signals.events[0])["loopguard.run_id"]
        assert tool.made == 6
        assert set(live_spans) <= before
    said = [attributes(event)["loopguard.intervention"] for event in told(signals)]
    assert len(said) == 6  # each call after the third of its kind
    assert said.count("end_run") in (1, 2)


def test_each_kind_of_function_gives_the_note(signals: Signals) -> None:
    with signals.instrumented(action="nudge"):
        for call in KINDS:
            tool = Tool()
            with otel_loopguard.run("finder"):
                results = [call(tool) for _ in range(4)]
            assert tool.made == 3
            last = results[3] if isinstance(results[3], list) else [results[3]]
            assert len(last) == 1
            assert last[0].startswith(NOTE)


def test_each_kind_of_function_raises_where_the_run_is_stopped(signals: Signals) -> None:
    with signals.instrumented(action="break"):
        for call in KINDS:
            tool = Tool()
            with otel_loopguard.run("finder"):
                for _ in range(5):
                    call(tool)
                with pytest.raises(otel_loopguard.DeadlockError):
                    call(tool)
            assert tool.made == 3


def test_a_tool_may_make_its_own_kind_of_result(signals: Signals) -> None:
    with signals.instrumented(action="nudge"):
        said = loop(4, Tool(on_loop=lambda note: {"error": note}))
    assert said["error"].startswith(NOTE)


def test_a_result_that_cannot_be_made_lets_the_call_go(
    signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(note: str) -> object:
        raise ValueError(note)

    monkeypatch.setattr(boundary, "reraise", False)
    tool = Tool(on_loop=fail)
    with signals.instrumented(action="nudge"):
        assert loop(5, tool) == PAGE
    assert tool.made == 5
    assert told(signals) == []
    assert len(signals.named("execute_tool search")) == 5
    assert boundary.faults == {"result of a tool that is not called": 2}
    boundary.faults.clear()


def test_the_note_may_be_ones_own_and_in_another_language(signals: Signals) -> None:
    own = "hard_loop=Enough of {tool} after {count} times."
    with signals.instrumented(action="nudge", notes=own):
        assert loop(4) == "Enough of search after 3 times."
    with signals.instrumented(action="nudge", note_language="de"):
        assert loop(4).startswith("Dieser Aufruf wurde nicht ausgeführt: search wurde 3 Mal")


def test_single_patterns_may_be_left_alone(signals: Signals) -> None:
    tool = Tool()
    with signals.instrumented(action="break", actions="hard_loop=observe"):
        loop(10, tool)
    assert tool.made == 10


def test_a_call_outside_of_every_run_is_never_held_back(signals: Signals) -> None:
    tool = Tool()
    with signals.instrumented(action="break"):
        for _ in range(10):
            tool.plain(QUERY)
    assert tool.made == 10


def test_a_user_who_speaks_lets_the_call_go_again(signals: Signals) -> None:
    tool = Tool()
    with signals.instrumented(action="nudge"):
        for _ in range(2):
            loop(4, tool)  # each is a run of its own
    assert tool.made == 6
