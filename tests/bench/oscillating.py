"""Agents that go round between tools or other agents, each in its own way: seeded variants.

A variant is run for real: decorated functions or a LangGraph graph, with a scripted model in this
process that asks for the next call of its cycle until it obeys a note.
"""

from __future__ import annotations

import random
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import otel_loopguard as loopguard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LIMIT = 100
"""Steps after which somebody would have to look at the agent."""
KINDS = ("tools", "agents", "graph")
DRIFTS = ("none", "none", "attempt", "wording")
"""How the arguments change from lap to lap."""
NOISES = ("none", "none", "look", "clock")
"""What else the agent does now and then: look at one of a few other things, or at the time."""
OBEDIENCE = {"at once": 1, "after the second": 2, "never": LIMIT + 1}
"""How many notes a model is given before it obeys."""
WORDINGS = ("find {}", "look for {}", "where is {}?", "{}, please", "search {}")


class Variant(NamedTuple):
    """One agent.

    Attributes:
        seed: makes all of it.
        kind: between what it goes round: tools, agents that are called as tools, or the tools of a
            graph.
        period: how many different calls a lap has.
        drift, noise: see `DRIFTS` and `NOISES`.
        share: how many of its steps are noise.
        obeys: the note that ends it.
        action: what the guard may do about it.
    """

    seed: int
    kind: str
    period: int
    drift: str
    noise: str
    share: float
    obeys: str
    action: str


class Outcome(NamedTuple):
    """How a variant ended (answer, deadlock, limit), and how many calls were asked for and made."""

    variant: Variant
    end: str
    asked: int
    made: int

    @property
    def ended(self) -> bool:
        """Whether it ended without anybody."""
        return self.end != "limit"


def variants(number: int) -> Iterator[Variant]:
    """So many of them, always the same."""
    for seed in range(number):
        chance = random.Random(seed)
        obeys = chance.choice(list(OBEDIENCE))
        yield Variant(
            seed,
            chance.choice(KINDS),
            chance.randint(2, 8),
            chance.choice(DRIFTS),
            chance.choice(NOISES),
            chance.choice((0.1, 0.2)),
            obeys,
            "break" if obeys == "never" else chance.choice(("nudge", "break")),
        )


class Asked(NamedTuple):
    """A call that a model asks for."""

    tool: str
    args: dict[str, Any]


class Model:
    """Asks for the calls of a lap, over and over, with its drift and its noise, until it obeys."""

    def __init__(self, variant: Variant) -> None:
        self._variant = variant
        self._chance = random.Random(variant.seed + 1_000_000)
        self._place = count()
        self._notes = 0

    def hear(self, result: str) -> None:
        """Read a result, or a note in place of one."""
        self._notes += "was not made" in result

    @property
    def answers(self) -> bool:
        """Whether it has had enough."""
        return self._notes >= OBEDIENCE[self._variant.obeys]

    def next(self) -> Asked:
        """The next call."""
        variant, chance = self._variant, self._chance
        if variant.noise != "none" and chance.random() < variant.share:
            if variant.noise == "clock":
                return Asked("clock", {"zone": "utc"})
            return Asked("look", {"what": f"thing {chance.randrange(5)}"})
        lap, place = divmod(next(self._place), variant.period)
        args: dict[str, Any] = {"query": f"matter {place // 2}"}
        if variant.drift == "attempt":
            args["attempt"] = lap
        elif variant.drift == "wording":
            args["query"] = WORDINGS[(lap + place) % len(WORDINGS)].format(args["query"])
        return Asked("ab"[place % 2], args)


class World:
    """The tools: what they say depends on the matter alone, whatever words are used for it."""

    def __init__(self, variant: Variant) -> None:
        self.made = 0
        self._ticks = count(variant.seed)
        self.tools: dict[str, Callable[..., str]] = {
            "a": self.a,
            "b": self.b,
            "look": self.look,
            "clock": self.clock,
        }

    def a(self, query: str, attempt: int = 0) -> str:
        """Open it."""
        return self._said("opened and handed on to be closed", query)

    def b(self, query: str, attempt: int = 0) -> str:
        """Close it."""
        return self._said("closed and handed back to be opened", query)

    def look(self, what: str) -> str:
        """Look at something else."""
        return self._said("is as it was, and has been so for as long as anybody can say", what)

    def clock(self, zone: str) -> str:
        """Tell the time."""
        tick = next(self._ticks)
        self.made += 1
        return f"it is 2026-03-01T10:{tick // 60 % 60:02d}:{tick % 60:02d}Z"

    def _said(self, what: str, query: str) -> str:
        self.made += 1
        number = next((word for word in query.replace("?", "").replace(",", "").split()
                       if word.isdigit()), "0")  # fmt: skip
        return f"matter {number} {what}; nothing else is known about it, here or anywhere"


def played(variant: Variant) -> Outcome:
    """Run a variant to its end, or to the limit. The guard is to be in force."""
    world, model = World(variant), Model(variant)
    run = {"tools": _tools, "agents": _agents, "graph": _graph}[variant.kind]
    steps = count(1)
    try:
        end = run(world, model, steps)
    except loopguard.DeadlockError:
        end = "deadlock"
    return Outcome(variant, end, next(steps) - 1, world.made)


def _loop(tools: dict[str, Callable[..., str]], model: Model, steps: count[int]) -> str:
    with loopguard.run("boss"):
        while not model.answers:
            if next(steps) > LIMIT:
                return "limit"
            call = model.next()
            model.hear(tools[call.tool](**call.args))
    return "answer"


def _tools(world: World, model: Model, steps: count[int]) -> str:
    tools = {name: loopguard.tool(tool, name=name) for name, tool in world.tools.items()}
    return _loop(tools, model, steps)


def _agents(world: World, model: Model, steps: count[int]) -> str:
    """Each tool of the boss is an agent that calls a tool of its own."""
    tools: dict[str, Callable[..., str]] = {}
    for name, tool in world.tools.items():
        inner = loopguard.tool(tool, name=f"work_{name}")
        tools[name] = loopguard.tool(loopguard.agent(inner, name=f"agent_{name}"), name=name)
    return _loop(tools, model, steps)


class State(TypedDict):
    """The state of the graph: its messages."""

    messages: list[Any]


def _graph(world: World, model: Model, steps: count[int]) -> str:
    from langchain_core.messages import AIMessage  # noqa: PLC0415 - a third of the variants
    from langchain_core.tools import StructuredTool  # noqa: PLC0415
    from langgraph.graph import END, START, StateGraph  # noqa: PLC0415
    from langgraph.prebuilt import ToolNode  # noqa: PLC0415

    ends: list[str] = []

    def think(state: State) -> State:
        if state["messages"]:
            model.hear(str(state["messages"][-1].content))
        if model.answers or next(steps) > LIMIT:
            ends.append("answer" if model.answers else "limit")
            return {"messages": [AIMessage("done")]}
        call, number = model.next(), random.getrandbits(60)
        asked = {"name": call.tool, "args": call.args, "id": f"call-{number}"}
        return {"messages": [AIMessage("", tool_calls=[asked])]}

    graph = StateGraph(State)
    graph.add_node("think", think)
    tools = [StructuredTool.from_function(tool, name=name) for name, tool in world.tools.items()]
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "think")
    graph.add_conditional_edges(
        "think", lambda state: "tools" if state["messages"][-1].tool_calls else END
    )
    graph.add_edge("tools", "think")
    graph.compile(name="boss").invoke({"messages": []}, {"recursion_limit": 2 * LIMIT + 10})
    return ends[0]
