"""A loop written by hand over the Anthropic SDK. Nothing here knows that it is watched."""

import os
import time

from anthropic import Anthropic
from shop import BY_NAME, TOOLS, schema

TASK = "Where is the order of Mrs Sample?"


def main() -> None:
    client = Anthropic()
    offered = [
        {"name": tool.__name__, "description": tool.__doc__, "input_schema": schema(tool)}
        for tool in TOOLS
    ]
    messages = [{"role": "user", "content": TASK}]
    while True:
        answer = client.messages.create(
            model=os.environ.get("MODEL", "loop-8"),
            max_tokens=1000,
            messages=messages,
            tools=offered,
        )
        messages.append({"role": "assistant", "content": answer.content})
        calls = [block for block in answer.content if block.type == "tool_use"]
        if not calls:
            print("".join(block.text for block in answer.content if block.type == "text"))
            return
        results = [
            {
                "type": "tool_result",
                "tool_use_id": call.id,
                "content": BY_NAME[call.name](**call.input),
            }
            for call in calls
        ]
        messages.append({"role": "user", "content": results})
        time.sleep(float(os.environ.get("PAUSE", "0")))


if __name__ == "__main__":
    main()
