"""The tool runner of the OpenAI SDK. It took one `except`, for OTEL_LOOPGUARD_ACTION=break."""

import os

from openai import OpenAI
from openai.lib.responses_tool_runner import (
    RegisteredFunction,
    ResponsesToolRunner,
    ToolRunnerError,
)
from shop import TOOLS, schema

import otel_loopguard as loopguard

TASK = "Where is the order of Mrs Sample?"


def registered(tool: object) -> RegisteredFunction:
    name, parameters = tool.__name__, schema(tool)
    offered = {"type": "function", "name": name, "parameters": parameters, "strict": False}
    return RegisteredFunction(offered, lambda arguments: tool(**arguments))


def main() -> None:
    runner = ResponsesToolRunner(functions=[registered(tool) for tool in TOOLS])
    asked = {
        "model": os.environ.get("MODEL", "loop-8"),
        "input": [{"role": "user", "content": TASK}],
    }
    try:
        print(runner.run(OpenAI(), asked).output_text)
    except ToolRunnerError as error:
        if not isinstance(error.__context__, loopguard.DeadlockError):
            raise
        print(error.__context__)


if __name__ == "__main__":
    main()
