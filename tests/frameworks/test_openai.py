"""openai: N model calls and M tools are N chat and M execute_tool spans of one trace."""

from __future__ import annotations

from tests.frameworks.loops import Loops
from tests.frameworks.openai_apis import Chat, Responses, connect


class TestChat(Loops):
    api, connect = Chat(), staticmethod(connect)


class TestResponses(Loops):
    api, connect = Responses(), staticmethod(connect)
