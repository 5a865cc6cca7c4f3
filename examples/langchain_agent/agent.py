"""An agent made with LangChain's create_agent. Nothing here knows that it is watched."""

import os
import time

from langchain.agents import create_agent
from langchain.agents.middleware import after_model
from langchain_openai import ChatOpenAI
from shop import TOOLS

TASK = "Where is the order of Mrs Sample?"


@after_model
def pause(state: object, runtime: object) -> None:
    time.sleep(float(os.environ.get("PAUSE", "0")))


def main() -> None:
    model = ChatOpenAI(model=os.environ.get("MODEL", "loop-8"))
    agent = create_agent(model, TOOLS, middleware=[pause], name="shop")
    answer = agent.invoke({"messages": [("user", TASK)]})
    print(answer["messages"][-1].content)


if __name__ == "__main__":
    main()
