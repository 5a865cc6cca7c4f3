"""An agent for `test_ladder`: a loop by hand over chat completions, with a tool for each deadlock.

TOOL names the one that it offers; ASKED=1 is the human, who allows what was refused. It prints the
model's answer, or why it was stopped.
"""

from __future__ import annotations

import json
import os
from typing import Any

import openai

import otel_loopguard as loopguard

LINES = [f"Line {n} says what no other line of the notes says: {n * 7919}" for n in range(60)]
allowed: list[str] = []


async def ask(request: Any, /) -> bool:
    """The human."""
    allowed.append(request.tool)
    return True


def search(query: str, page: int) -> str:
    """Find nothing."""
    return f"the shelf is empty, and has been so for as long as anybody can remember, page {page}"


def read(path: str, start: int, end: int) -> str:
    """Read lines of a text."""
    return "\n".join(LINES[start:end])


def fetch(query: str, page: int) -> str:
    """Fail."""
    return "Error: connection refused"


def delete(query: str, page: int) -> str:
    """Refuse, until it is allowed."""
    return "deleted" if allowed else "permission denied"


def remove(query: str, page: int) -> str:
    """The same, but nobody has said that it cannot be undone."""
    return delete(query, page)


TOOLS = {each.__name__: each for each in (search, read, fetch, delete, remove)}
STRING, NUMBER = {"type": "string"}, {"type": "integer"}


def offered(name: str) -> dict[str, Any]:
    """A tool as the model is offered it."""
    names = [each for each in TOOLS[name].__annotations__ if each != "return"]
    schema = {each: STRING if each in ("query", "path") else NUMBER for each in names}
    parameters = {"type": "object", "properties": schema, "required": list(schema)}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def step(client: openai.OpenAI, history: list[Any]) -> str:
    """One model call and the tools that it asks for; gives the answer."""
    tools: Any = [offered(os.environ["TOOL"])]
    reply = client.chat.completions.create(
        model=os.environ["MODEL"], messages=history, tools=tools, temperature=1.0
    )
    message = reply.choices[0].message
    history.append(message.model_dump(exclude_none=True))
    for call in message.tool_calls or ():
        name, arguments = call.function.name, call.function.arguments  # type: ignore[union-attr]
        if name in TOOLS:
            result = loopguard.call_tool(TOOLS[name], name, json.loads(arguments), call.id)
        else:
            result = f"Error: there is no tool {name}"
        history.append({"role": "tool", "tool_call_id": call.id, "content": result})
    return message.content or ""


def main() -> None:
    """Ask until there is a real answer, or a stop."""
    history: list[Any] = [{"role": "user", "content": "Find it."}]
    with openai.OpenAI() as client, loopguard.run("ladder"):
        answer = ""
        while not answer.startswith("Finished") and len(history) < 100:
            answer = step(client, history)
    print(answer)


if __name__ == "__main__":
    try:
        main()
    except loopguard.DeadlockError as error:
        print(error)
