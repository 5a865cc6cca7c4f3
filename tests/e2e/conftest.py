"""One Jaeger and one scripted model for all e2e tests; figures go to build/e2e.json."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from examples.scripted_model import ScriptedModel
from tests.e2e.agents import SAID
from tests.e2e.backends.jaeger import Jaeger
from tests.figures import Figures

if TYPE_CHECKING:
    from collections.abc import Iterator


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was measured."""
    if SAID:
        terminalreporter.section("measured")
    for text in SAID:
        terminalreporter.write_line(text)


@pytest.fixture(scope="session")
def jaeger() -> Iterator[Jaeger]:
    """A real Jaeger."""
    with Jaeger() as running:
        yield running


@pytest.fixture(scope="session")
def model() -> Iterator[ScriptedModel]:
    """The scripted model; endless agents make long logs, so it keeps none."""
    with ScriptedModel(log_size=0) as running:
        yield running


@pytest.fixture(scope="session")
def figures() -> Iterator[Figures]:
    """What the tests measured."""
    with Figures("e2e") as kept:
        yield kept
