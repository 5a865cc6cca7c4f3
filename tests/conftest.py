"""What every test gets: our boundary inverted, so that what it would swallow fails the test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from otel_loopguard.runtime import boundary

if TYPE_CHECKING:
    from collections.abc import Iterator

# How long an example takes says something about the machine, not about the code.
settings.register_profile("here", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("here")


@pytest.fixture(autouse=True)
def nothing_is_swallowed() -> Iterator[None]:
    """Raise what our boundary would keep from the application, and fail if anything was kept."""
    boundary.reraise = True
    boundary.faults.clear()
    yield
    assert not boundary.faults
