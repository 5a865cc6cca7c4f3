"""The chat model of the apps over LangChain."""

from __future__ import annotations

import os

import httpx
from langchain_openai import ChatOpenAI


def chat_model(name: str) -> ChatOpenAI:
    """A model of the scripted service.

    LangChain keeps its clients by address and time-out, and those of an earlier event loop are of
    no use. A time-out of this type has it keep none.
    """
    address = os.environ["OPENAI_BASE_URL"]
    return ChatOpenAI(model=name, max_retries=0, base_url=address, timeout=httpx.Timeout(60))
