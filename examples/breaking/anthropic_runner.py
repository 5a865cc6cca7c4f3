"""The tool runner of the Anthropic SDK. It took one `except`, for OTEL_LOOPGUARD_ACTION=break."""

import os

from anthropic import Anthropic, beta_tool
from shop import TOOLS

import otel_loopguard as loopguard

TASK = "Where is the order of Mrs Sample?"


def main() -> None:
    runner = Anthropic().beta.messages.tool_runner(
        model=os.environ.get("MODEL", "loop-8"),
        max_tokens=1000,
        messages=[{"role": "user", "content": TASK}],
        tools=[beta_tool(tool) for tool in TOOLS],
    )
    messages = []
    try:
        messages.extend(runner)
        print("".join(block.text for block in messages[-1].content if block.type == "text"))
    except loopguard.DeadlockError as stop:
        print(f"{stop}; all {len(messages)} answers so far are there")


if __name__ == "__main__":
    main()
