"""A loop over the OpenAI SDK whose every round is one step of a guarded run.

What it took: a function for one step, `run_guarded` in place of `while`, and `call_tool`. It ends
after ten steps, in a deadlock, or with the answer, and says which; a last answer is asked for.
"""

import os

from openai import OpenAI
from shop import BY_NAME, TOOLS, schema

import otel_loopguard as loopguard

TASK = "Where is the order of Mrs Sample?"
MODEL = os.environ.get("MODEL", "loop-8")
OFFERED = [
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


def main() -> None:
    client = OpenAI()
    messages = [{"role": "user", "content": TASK}]

    def step(progress: object) -> loopguard.Done | None:
        said = client.chat.completions.create(model=MODEL, messages=messages, tools=OFFERED)
        message = said.choices[0].message
        messages.append(message)
        if not message.tool_calls:
            return loopguard.Done(message.content)
        for call in message.tool_calls:
            name, arguments = call.function.name, call.function.arguments
            result = loopguard.call_tool(BY_NAME[name], name, arguments, call.id)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        return None

    def final(so_far: list[object]) -> str:
        """Without tools the model has to answer."""
        asked = [TASK, "Nothing more can be looked up. Answer with what there is."]
        turns = [{"role": "user", "content": text} for text in asked]
        return (
            client.chat.completions.create(model=MODEL, messages=turns).choices[0].message.content
        )

    result = loopguard.run_guarded(
        step,
        name="shop",
        max_tokens=50_000,
        max_seconds=120,
        partial_context=lambda progress: list(messages),
        final=final,
    )
    if result.success:
        print(result.output)
    else:
        print(f"{result.error or result.stop_reason.value}; the last answer: {result.output}")


if __name__ == "__main__":
    main()
