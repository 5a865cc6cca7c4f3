"""openai beside the instrumentation of another vendor: each call counts once."""

from __future__ import annotations

from tests.frameworks.beside import LoopsBeside, installed
from tests.frameworks.openai_apis import Chat, Responses, connect

VENDOR = installed("openai")
MODULES = ("openai.resources.chat.completions.completions", "openai.resources.responses.responses")


class TestChat(LoopsBeside):
    vendor, modules = VENDOR, MODULES
    api, connect = Chat(), staticmethod(connect)


class TestResponses(LoopsBeside):
    vendor, modules = VENDOR, MODULES
    api, connect = Responses(), staticmethod(connect)
