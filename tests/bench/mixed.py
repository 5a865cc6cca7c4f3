"""A mixed load: many agents at once over a model SDK, of which a few are stuck.

Each agent is a loop written by hand over the openai SDK, against the scripted model server, and
calls its tools through `call_tool`. All that it does follows from its number, so that two runs of
the same load can be compared request by request.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import openai

import otel_loopguard as loopguard
from examples.scripted_model import Call, Reply, ScriptedModel, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from examples.scripted_model import Turn

LIMIT = 60
"""Model calls after which an agent is given up: it was stuck."""
STUCK_SHARE = 0.03
ABREAST = 25
PAGE = "Nothing fits. Try another name, or ask for the number that is on the confirmation. " * 4
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
NAMES = ("search", "open", "close", "fetch", "status", "read", "write")
TOOLS = [{"type": "function", "function": {"name": n, "parameters": SCHEMA}} for n in NAMES]
Asked = "tuple[str, dict[str, Any]] | None"

HEALTHY: tuple[Callable[[int, int, list[str]], Any], ...] = (
    lambda seed, turn, _: ("search", {"n": turn}) if turn < 2 + seed % 9 else None,
    lambda _seed, _turn, said: None if said and "done" in said[-1] else ("status", {"n": 1}),
    lambda _seed, _turn, said: None if said and "fetched" in said[-1] else ("fetch", {"n": 1}),
    lambda _seed, turn, _: (("read", "write")[turn % 2], {"n": turn}) if turn < 8 else None,
    lambda _seed, turn, _: ("read", {"n": 7}) if turn < 2 else None,
)
"""What a model asks for, by the agent's number, the turn, and the results so far; None: it answers.

It pages, polls until something is done, tries again what failed, reads and writes, reads twice.
"""
STUCK: tuple[Callable[[int, int], Any], ...] = (
    lambda _seed, _turn: ("search", {"n": -1}),
    lambda _seed, turn: (("open", "close")[turn % 2], {"n": -1}),
    lambda _seed, turn: ("search", {"n": -1 - turn}),
)
"""The same for agents that are stuck: one call, two calls in turns, one result for all calls."""
OBEYS = (1, 2, LIMIT)
"""How many notes a stuck agent's model needs: one, two, or it never obeys."""


class Report(NamedTuple):
    """How a run went."""

    name: str
    is_stuck: bool
    end: str
    answer: str
    tokens: int
    calls: int
    seconds: float


class Load(NamedTuple):
    """How a load went: its runs, and the bytes of all requests of each."""

    runs: list[Report]
    sent: dict[str, list[bytes]]

    @property
    def to_the_limit(self) -> float:
        """The share of the runs that were given up."""
        return sum(run.end == "limit" for run in self.runs) / len(self.runs)

    @property
    def tokens(self) -> int:
        """Tokens of all runs."""
        return sum(run.tokens for run in self.runs)

    @property
    def calls(self) -> int:
        """Model calls of all runs."""
        return sum(run.calls for run in self.runs)

    @property
    def p99_s(self) -> float:
        """Seconds that all but one of a hundred runs took at most."""
        took = sorted(run.seconds for run in self.runs)
        return took[min(len(took) - 1, int(0.99 * len(took)))]

    def healthy(self) -> dict[str, tuple[str, str, list[bytes]]]:
        """End, answer and requests of each run that is not stuck."""
        return {
            run.name: (run.end, run.answer, self.sent[run.name])
            for run in self.runs
            if not run.is_stuck
        }


def is_stuck(number: int) -> bool:
    """Whether an agent is one of the stuck ones."""
    every = round(1 / STUCK_SHARE)
    return number % every == every // 2


def obeys(number: int) -> int:
    """How many notes the model of a stuck agent needs."""
    return OBEYS[number // round(1 / STUCK_SHARE) % len(OBEYS)]


def scenario(number: int, turn: Turn) -> Reply:
    """What the model of an agent says."""
    said = list(turn.results)
    if is_stuck(number):
        kind = number // round(1 / STUCK_SHARE)
        needs = obeys(number)
        obeyed = sum("was not made" in each for each in said) >= needs
        obeyed = obeyed or (not turn.tools and needs < LIMIT)  # it is not let call anything
        asked = None if obeyed else STUCK[kind // len(OBEYS) % len(STUCK)](number, turn.number)
    else:
        asked = HEALTHY[number % len(HEALTHY)](number, turn.number, said)
    usage = Usage(input=60 + sum(len(message.text) for message in turn.history) // 4)
    if asked is None:
        return Reply(f"Agent {number} is done after {turn.number} turns.", usage=usage)
    name, args = asked
    return Reply(calls=(Call(name, args, f"call-{number}-{turn.number}"),), usage=usage)


class Tools:
    """The tools of one agent."""

    def __init__(self) -> None:
        self._looks = count(1)
        self._tries = count(1)
        self._notes: list[int] = []

    async def call(self, tool: str, n: int) -> str:
        """Do it, and say what came of it."""
        await asyncio.sleep(0)
        if tool == "search":
            return PAGE if n < 0 else f"Page {n}: " + " ".join(f"row-{n}-{i}" for i in range(30))
        if tool == "status":
            return "done" if next(self._looks) > 4 else "pending, ask again later"
        if tool == "fetch":
            return "fetched the file" if next(self._tries) > 2 else "error: the host is not there"
        if tool == "write":
            self._notes.append(n)
            return "saved"
        if tool == "read":
            return f"{len(self._notes)} notes: {self._notes}, and the text of each of them in full"
        return f"The door is {tool}ed now, as it has been asked for by whoever asked for it."


async def _run(client: openai.AsyncOpenAI, number: int) -> Report:
    name, tools, tokens = f"agent-{number}", Tools(), 0
    messages: list[Any] = [{"role": "user", "content": f"Do the task of agent {number}."}]
    began, calls, end, text = time.perf_counter(), 0, "limit", ""
    try:
        while calls < LIMIT:
            answer = await client.chat.completions.create(
                model=name, messages=messages, tools=TOOLS
            )
            calls, message = calls + 1, answer.choices[0].message
            tokens += answer.usage.total_tokens if answer.usage else 0
            messages.append(message)
            if not message.tool_calls:
                end, text = "answer", message.content or ""
                break
            for call in message.tool_calls:
                tool = call.function.name
                function = partial(tools.call, tool)
                result = await loopguard.call_tool(function, tool, call.function.arguments, call.id)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    except loopguard.DeadlockError:
        end = "deadlock"
    seconds = time.perf_counter() - began
    return Report(name, is_stuck(number), end, text, tokens, calls, seconds)


async def _all(numbers: Iterable[int], base_url: str) -> list[Report]:
    places = asyncio.Semaphore(ABREAST)

    async def in_place(client: openai.AsyncOpenAI, number: int) -> Report:
        async with places:
            return await _run(client, number)

    async with openai.AsyncOpenAI(base_url=base_url, api_key="unused", timeout=60) as client:
        return await asyncio.gather(*(in_place(client, number) for number in numbers))


def loaded(number: int, *, latency_s: float = 0.0) -> Load:
    """Run so many agents, 25 at a time, with whatever guard is in force.

    Args:
        number: how many.
        latency_s: seconds that each answer of the model takes.
    """
    scenarios = {f"agent-{n}": partial(scenario, n) for n in range(number)}
    with ScriptedModel(scenarios=scenarios, latency_s=latency_s, log_size=number * LIMIT) as server:
        runs = asyncio.run(_all(range(number), server.base_url))
        sent: defaultdict[str, list[bytes]] = defaultdict(list)
        for request in server.requests:
            body = request["body"]
            sent[body["model"]].append(json.dumps(body).encode())
    return Load(runs, dict(sent))
