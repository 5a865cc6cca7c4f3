"""LangChain's chat model over the scripted service."""

from __future__ import annotations

from typing import Any

import httpx
from langchain_openai import ChatOpenAI


def chat_model(name: str, base_url: str | None = None, **options: Any) -> ChatOpenAI:
    """A model asked at an address (or at that of the environment), with HTTP clients of its own.

    LangChain keeps its clients by address and time-out, and those of an earlier event loop are of
    no use. A time-out of this type, which has no hash, has it keep none.
    """
    options.setdefault("api_key", "unused")
    options.setdefault("max_retries", 0)
    return ChatOpenAI(model=name, base_url=base_url, timeout=httpx.Timeout(60), **options)
