"""A loop written by hand over the OpenAI SDK, whose tools are called through the guard.

What it took: `call_tool` in place of the call, and the `except` for OTEL_LOOPGUARD_ACTION=break.
"""

import os
import time

from openai import OpenAI
from shop import BY_NAME, TOOLS, schema

import otel_loopguard as loopguard

TASK = "Where is the order of Mrs Sample?"


def answer(messages: list[object]) -> str:
    client = OpenAI()
    offered = [
        {
            "type": "function",
            "function": {
                "name": tool.__name__,
                "description": tool.__doc__,
                "parameters": schema(tool),
            },
        }
        for tool in TOOLS
    ]
    while True:
        said = client.chat.completions.create(
            model=os.environ.get("MODEL", "loop-8"), messages=messages, tools=offered
        )
        message = said.choices[0].message
        messages.append(message)
        if not message.tool_calls:
            return message.content
        for call in message.tool_calls:
            name, arguments = call.function.name, call.function.arguments
            result = loopguard.call_tool(BY_NAME[name], name, arguments, call.id)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        time.sleep(float(os.environ.get("PAUSE", "0")))


def main() -> None:
    messages = [{"role": "user", "content": TASK}]
    try:
        print(answer(messages))
    except loopguard.DeadlockError as stop:
        print(f"{stop}; all {len(messages)} messages so far are there")


if __name__ == "__main__":
    main()
