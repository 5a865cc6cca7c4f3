"""anthropic: N model calls and M tools are N chat and M execute_tool spans of one trace."""

from __future__ import annotations

from tests.frameworks.anthropic_apis import BetaMessages, Messages, connect
from tests.frameworks.loops import Loops


class TestMessages(Loops):
    api, connect = Messages(), staticmethod(connect)


class TestBetaMessages(Loops):
    api, connect = BetaMessages(), staticmethod(connect)
