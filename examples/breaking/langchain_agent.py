"""An agent made with LangChain's create_agent.

It took one `except`, for OTEL_LOOPGUARD_ACTION=break, and a checkpointer for what there is then.
"""

import os

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from shop import TOOLS

import otel_loopguard as loopguard

TASK = "Where is the order of Mrs Sample?"
THREAD = {"configurable": {"thread_id": "mrs-sample"}, "recursion_limit": 60}


def main() -> None:
    model = ChatOpenAI(model=os.environ.get("MODEL", "loop-8"))
    agent = create_agent(model, TOOLS, checkpointer=InMemorySaver(), name="shop")
    try:
        answer = agent.invoke({"messages": [("user", TASK)]}, THREAD)
        print(answer["messages"][-1].content)
    except loopguard.DeadlockError as stop:
        messages = agent.get_state(THREAD).values["messages"]
        print(f"{stop}; all {len(messages)} messages so far are there")


if __name__ == "__main__":
    main()
