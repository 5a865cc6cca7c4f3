"""The chat model of the apps over LangChain."""

from __future__ import annotations

import os

from langchain_openai import ChatOpenAI


def chat_model(name: str) -> ChatOpenAI:
    """A model of the scripted service.

    The address is given by code: LangChain keeps its clients by that, and those of an earlier event
    loop are of no use.
    """
    return ChatOpenAI(model=name, max_retries=0, base_url=os.environ["OPENAI_BASE_URL"])
