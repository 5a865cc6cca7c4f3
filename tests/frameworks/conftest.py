"""Fixtures of the framework tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.register_assert_rewrite(
    *(
        f"tests.frameworks.{name}"
        for name in ("support", "loops", "unwrapping", "handwritten", "beside", "breaking")
    )
)

from examples.scripted_model import ScriptedModel  # noqa: E402
from tests.frameworks.support import MARKER, Telemetry  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def server() -> Iterator[ScriptedModel]:
    """A model that says what its name says."""
    with ScriptedModel(marker=MARKER) as model:
        yield model


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    """Instrumented, with a provider of its own."""
    telemetry = Telemetry()
    telemetry.instrument()
    yield telemetry
    telemetry.uninstrument()
