"""A graph built by hand with LangGraph.

It took one `except`, for OTEL_LOOPGUARD_ACTION=break, and a checkpointer for what there is then.
"""

import os

from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from shop import TOOLS

import otel_loopguard as loopguard

TASK = "Where is the order of Mrs Sample?"
THREAD = {"configurable": {"thread_id": "mrs-sample"}, "recursion_limit": 60}


def main() -> None:
    model = ChatOpenAI(model=os.environ.get("MODEL", "loop-8")).bind_tools(TOOLS)

    def think(state: MessagesState) -> dict[str, object]:
        return {"messages": [model.invoke(state["messages"])]}

    building = StateGraph(MessagesState)
    building.add_node("think", think)
    building.add_node("tools", ToolNode(TOOLS))
    building.add_edge(START, "think")
    building.add_conditional_edges("think", tools_condition)
    building.add_edge("tools", "think")
    graph = building.compile(checkpointer=InMemorySaver(), name="shop")
    try:
        answer = graph.invoke({"messages": [("user", TASK)]}, THREAD)
        print(answer["messages"][-1].content)
    except loopguard.DeadlockError as stop:
        messages = graph.get_state(THREAD).values["messages"]
        print(f"{stop}; all {len(messages)} messages so far are there")


if __name__ == "__main__":
    main()
