"""A graph built by hand with LangGraph. Nothing here knows that it is watched."""

import os
import time

from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from shop import TOOLS

TASK = "Where is the order of Mrs Sample?"


def main() -> None:
    model = ChatOpenAI(model=os.environ.get("MODEL", "loop-8")).bind_tools(TOOLS)

    def think(state: MessagesState) -> dict[str, object]:
        time.sleep(float(os.environ.get("PAUSE", "0")))
        return {"messages": [model.invoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("think", think)
    graph.add_node("tools", ToolNode(TOOLS))
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", tools_condition)
    graph.add_edge("tools", "think")
    answer = graph.compile(name="shop").invoke({"messages": [("user", TASK)]})
    print(answer["messages"][-1].content)


if __name__ == "__main__":
    main()
