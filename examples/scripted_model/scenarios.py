"""Scenarios that need no code: the model name says what the model does.

    NAME[-COUNT][xTIMES][+OPTION...]      after an optional "provider/" or "provider:"

| name | what the model does |
|---|---|
| `answer` | never calls a tool |
| `loop`, `loop-4` | the same call of the first tool, for ever or 4 times |
| `paging-5` | the first tool with another argument each time: page 1 to 5 |
| `cycle-2`, `cycle-2x6` | a cycle of 2 different calls (over the tools), for ever or for 6 turns |
| `parallel-2`, `parallel-2x3` | 2 different calls at once, for ever or for 3 turns |
| `write-read`, `write-read-3` | the same read, then a new write, for ever or 3 times |
| `poll-3` | the same call until its result contains "done", at most 3 times |
| `retry-3` | the same call while its result contains "error", at most 3 times |
| `nudge`, `nudge-9` | the same call until a result contains the server's marker |
| `ghost-2` | a tool that was not offered, twice |
| `badargs-2` | the first tool with arguments that its schema does not know |
| `badjson-2` | the first tool with arguments that are not JSON |
| `slices` | reads a text of 60 lines, then parts of it again and again, cut in other places |
| `plead` | the first tool with another argument each time while its result contains "denied" |
| `muse` | says that it will do something, and calls nothing, for ever |

After that it answers. Without a count it goes on for ever. Options: `+think` (reasoning in every
reply), `+same-id` (the calls of every reply are `call_0`, `call_1` ...), `+tool=NAME` (that tool is
the first one), `+deaf` (calls go on though the request forbids them), `+told` (it answers
once it is told something new: by a user message that came later than the first, or by another
result of a call that had the same one twice). An option in the place of the name stands for `loop`:
`think`, `same-id-4`.
The count starts again at each user message. Without tools to call, every scenario answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from .arguments import example
from .script import Call, Reply, Scenario, Tool, Turn

GHOST_TOOL = "ghost_tool"
"""The name of the tool that no request offers."""

_PATTERN = re.compile(r"(?P<name>[a-z-]+?)(?:-(?P<count>\d+)(?:x(?P<times>\d+))?)?")
_FOR_EVER = 10**9

Plan: TypeAlias = Callable[[Turn, int], "tuple[Call, ...]"]
"""The calls of a turn that has tools, given the size of a group; none means that it answers."""


def scenario_named(name: str, *, marker: str) -> Scenario | None:
    """The scenario that a model name stands for, or None when the name is not of the grammar.

    Args:
        name: The model name.
        marker: What `nudge` waits for in a tool result.
    """
    first, *options = re.split(r"[/:]", name)[-1].split("+")
    match = _PATTERN.fullmatch(first)
    if match is None:
        return None
    behaviour = match["name"]
    if behaviour in {"think", "same-id"}:
        behaviour, options = "loop", [*options, behaviour]
    plan = {**_PLANS, "nudge": _until(marker)}.get(behaviour)
    if plan is None or not all(map(_is_option, options)):
        return None
    size, limit = _size_and_limit(behaviour, match["count"], match["times"])
    return _scenario(plan, size, limit, options)


def _is_option(text: str) -> bool:
    return text in {"think", "same-id", "deaf", "told"} or text.startswith("tool=")


def _size_and_limit(name: str, count: str | None, times: str | None) -> tuple[int, int]:
    """The size of a group of calls, and the most turns with calls."""
    if name in {"cycle", "parallel"}:
        return int(count or 2), int(times or _FOR_EVER)
    turns_each = 2 if name == "write-read" else 1
    return 1, int(count or _FOR_EVER) * turns_each


def _scenario(plan: Plan, size: int, limit: int, options: list[str]) -> Scenario:
    preferred = next((o.removeprefix("tool=") for o in options if o.startswith("tool=")), None)

    def decide(turn: Turn) -> Reply:
        offered = tuple(sorted(turn.offered, key=lambda tool: tool.name != preferred))
        choice = None if "deaf" in options else turn.choice
        heard = replace(turn, offered=offered, choice=choice)
        goes_on = turn.number < limit and not ("told" in options and _is_told(turn))
        if plan is _muse and goes_on:
            return Reply("I will look into it now, and then tell you all that there is to know.")
        calls = plan(heard, size) if heard.tools and goes_on else ()
        if "same-id" in options:
            calls = tuple(replace(call, id=f"call_{i}") for i, call in enumerate(calls))
        thinking = "Let me think about it." if "think" in options else ""
        return Reply("" if calls else _answer(turn), calls, thinking)

    return decide


def _is_told(turn: Turn) -> bool:
    """Whether the request holds what the loop itself never brings, wherever it stands in it."""
    if sum(message.role == "user" for message in turn.history) > 1:
        return True
    calls = {call.id: (call.name, str(call.arguments)) for m in turn.history for call in m.calls}
    results: dict[object, list[str]] = {}
    for message in turn.history:
        if message.role == "tool":
            results.setdefault(calls.get(message.call_id), []).append(message.text)
    last = turn.history[-1]
    *before, newest = results.get(calls.get(last.call_id)) or [""]
    return last.role == "tool" and len(before) > 1 and newest not in before


def _answer(turn: Turn) -> str:
    if turn.answer_schema is not None:
        return json.dumps(example(turn.answer_schema))
    return f"Finished after {turn.number} turns."


def _call(tool: Tool, number: int = 1) -> Call:
    return Call(tool.name, example(tool.schema or {"type": "object"}, number))


def _loop(turn: Turn, _: int) -> tuple[Call, ...]:
    return (_call(turn.tools[0]),)


def _paging(turn: Turn, _: int) -> tuple[Call, ...]:
    return (_call(turn.tools[0], turn.number + 1),)


def _cycle(turn: Turn, size: int) -> tuple[Call, ...]:
    return (_nth_of_tools(turn, turn.number % size),)


def _parallel(turn: Turn, size: int) -> tuple[Call, ...]:
    return tuple(_call(turn.tools[0], i + 1) for i in range(size))


def _nth_of_tools(turn: Turn, index: int) -> Call:
    """The tools one after another, then all again with other arguments."""
    lap, place = divmod(index, len(turn.tools))
    return _call(turn.tools[place], lap + 1)


def _write_read(turn: Turn, _: int) -> tuple[Call, ...]:
    reader = next((t for t in turn.tools if "read" in t.name), turn.tools[0])
    writer = next((t for t in turn.tools if "write" in t.name), turn.tools[-1])
    pair, is_write = divmod(turn.number, 2)
    return (_call(writer, pair + 1) if is_write else _call(reader),)


def _until(word: str) -> Plan:
    return lambda turn, size: (
        ()
        if any(word.lower() in result.lower() for result in turn.last_results)
        else _loop(turn, size)
    )


def _retry(turn: Turn, size: int) -> tuple[Call, ...]:
    failed = any("error" in result.lower() for result in turn.last_results)
    return _loop(turn, size) if failed or turn.number == 0 else ()


def _muse(_turn: Turn, _: int) -> tuple[Call, ...]:
    return ()


_PASS = ((0, 20), (20, 40), (40, 60))
_AGAIN = ((10, 30), (30, 50), (5, 25), (25, 45), (15, 35), (35, 55))


def _slices(turn: Turn, _: int) -> tuple[Call, ...]:
    """The first tool with a start and an end: two numbers of its arguments."""
    again = turn.number - len(_PASS)
    start, end = _PASS[turn.number] if again < 0 else _AGAIN[again % len(_AGAIN)]
    return (Call(turn.tools[0].name, {"path": "notes.txt", "start": start, "end": end}),)


def _plead(turn: Turn, _: int) -> tuple[Call, ...]:
    tried = sum(1 for message in turn.history if message.calls)
    results = [message.text for message in turn.history if message.role == "tool"]
    denied = not results or "denied" in results[-1]
    return (_call(turn.tools[0], tried + 1),) if denied else ()


def _ghost(_turn: Turn, _: int) -> tuple[Call, ...]:
    return (Call(GHOST_TOOL, {"query": "sample"}),)


def _badargs(turn: Turn, _: int) -> tuple[Call, ...]:
    return (Call(turn.tools[0].name, {"no_such_argument": "sample"}),)


def _badjson(turn: Turn, _: int) -> tuple[Call, ...]:
    return (Call(turn.tools[0].name, 'query = "sample"'),)


_PLANS: dict[str, Plan] = {
    "answer": lambda *_: (),
    "loop": _loop,
    "paging": _paging,
    "cycle": _cycle,
    "parallel": _parallel,
    "write-read": _write_read,
    "poll": _until("done"),
    "retry": _retry,
    "ghost": _ghost,
    "slices": _slices,
    "muse": _muse,
    "plead": _plead,
    "badargs": _badargs,
    "badjson": _badjson,
}
