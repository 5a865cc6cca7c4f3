"""A loop written by hand over the Anthropic SDK that asks the guard before each call.

What it took: `held` before the call, and the `except` for OTEL_LOOPGUARD_ACTION=break.
"""

import os
import time

from anthropic import Anthropic
from shop import BY_NAME, TOOLS, schema

import otel_loopguard as loopguard

TASK = "Where is the order of Mrs Sample?"


def answer(messages: list[object]) -> str:
    client = Anthropic()
    offered = [
        {"name": tool.__name__, "description": tool.__doc__, "input_schema": schema(tool)}
        for tool in TOOLS
    ]
    while True:
        said = client.messages.create(
            model=os.environ.get("MODEL", "loop-8"),
            max_tokens=1000,
            messages=messages,
            tools=offered,
        )
        messages.append({"role": "assistant", "content": said.content})
        calls = [block for block in said.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in said.content if block.type == "text")
        messages.append({"role": "user", "content": [result_of(call) for call in calls]})
        time.sleep(float(os.environ.get("PAUSE", "0")))


def result_of(call: object) -> dict[str, object]:
    note = loopguard.held(call.name, call.input, call.id)
    content = BY_NAME[call.name](**call.input) if note is None else note
    return {"type": "tool_result", "tool_use_id": call.id, "content": content}


def main() -> None:
    messages = [{"role": "user", "content": TASK}]
    try:
        print(answer(messages))
    except loopguard.DeadlockError as stop:
        print(f"{stop}; all {len(messages)} messages so far are there")


if __name__ == "__main__":
    main()
