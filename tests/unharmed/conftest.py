"""Here our boundary is as it is for users: it swallows, and it counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from otel_loopguard.runtime import boundary
from tests.unharmed.running import APPS, Seen, inside

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterator


@pytest.fixture(autouse=True)
def faults(nothing_is_swallowed: None) -> Iterator[Counter[str]]:
    """What our boundary has caught in this test."""
    boundary.reraise = False
    yield boundary.faults
    boundary.faults.clear()


@pytest.fixture(scope="session")
def unwatched() -> Callable[[str, str], Seen]:
    """What can be seen of an app when nobody watches."""
    known: dict[tuple[str, str], Seen] = {}

    def run(app: str, part: str) -> Seen:
        assert app in APPS
        if (app, part) not in known:
            known[app, part] = inside(app, part)
        return known[app, part]

    return run
