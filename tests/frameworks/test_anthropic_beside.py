"""anthropic beside the instrumentation of another vendor, its own spans on and off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.frameworks.anthropic_apis import BetaMessages, Messages, connect
from tests.frameworks.beside import LoopsBeside, installed

if TYPE_CHECKING:
    from tests.frameworks.beside import Beside

VENDOR = installed("anthropic")
MODULES = ("anthropic.resources.messages.messages", "anthropic.resources.beta.messages.messages")


class Native:
    """With the spans of the SDK itself, or without."""

    @pytest.fixture(params=[True, False], ids=["native", "no-native"])
    def options(self, request: pytest.FixtureRequest, both: Beside) -> dict[str, Any]:
        mode = "content" if request.getfixturevalue("content") else "metadata_only"
        native = {"tracer_provider": both.provider, "traces": {"content_mode": mode}}
        return {"open_telemetry": native if request.param else False}


class TestMessages(Native, LoopsBeside):
    vendor, modules = VENDOR, MODULES
    api, connect = Messages(), staticmethod(connect)


class TestBetaMessages(Native, LoopsBeside):
    vendor, modules = VENDOR, MODULES
    api, connect = BetaMessages(), staticmethod(connect)
