"""A loop written by hand over the OpenAI SDK. Nothing here knows that it is watched."""

import json
import os
import time

from openai import OpenAI
from shop import BY_NAME, TOOLS, schema

TASK = "Where is the order of Mrs Sample?"


def main() -> None:
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
    messages = [{"role": "user", "content": TASK}]
    while True:
        answer = client.chat.completions.create(
            model=os.environ.get("MODEL", "loop-8"), messages=messages, tools=offered
        )
        message = answer.choices[0].message
        messages.append(message)
        if not message.tool_calls:
            print(message.content)
            return
        for call in message.tool_calls:
            result = BY_NAME[call.function.name](**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        time.sleep(float(os.environ.get("PAUSE", "0")))


if __name__ == "__main__":
    main()
