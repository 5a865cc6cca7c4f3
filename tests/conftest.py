"""What every test gets: our boundary inverted, so that what it would swallow fails the test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from otel_loopguard.runtime import boundary

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def nothing_is_swallowed() -> Iterator[None]:
    """Raise what our boundary would keep from the application, and fail if anything was kept."""
    boundary.reraise = True
    boundary.faults.clear()
    yield
    assert not boundary.faults
