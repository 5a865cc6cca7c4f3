"""Apps over each framework, in all kinds of trouble: being watched makes no difference to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unharmed.faults import FAULTS, break_
from tests.unharmed.running import APPS, Asleep, Seen, assert_same, inside, watched

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

pytestmark = [
    # What the frameworks warn of is compared; what the collector finds later is not ours to say.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    # A thread that leaves by SystemExit does so in silence, but for pytest.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]

EVERYWHERE = frozenset(APPS) - {"anthropic_calls"}  # which is like openai_calls but for these:
SDKS = frozenset({"openai_calls", "anthropic_calls"})
CHAINS = frozenset({"langchain_calls", "langgraph_calls"})
WHERE = {
    "dialects": frozenset(),  # test_odd_telemetry has it: they read the spans of others
    "conversations": SDKS,
    "wire requests": SDKS,
    "wire responses": SDKS,
    "wire streams": SDKS,
    "wire readers": SDKS,
    "runners": frozenset({"anthropic_calls"}),
    "tool values": CHAINS,
    "model values": CHAINS,
    "replies": CHAINS,
    "callbacks": CHAINS,
    "graphs": CHAINS,
}
"""Where a piece is of use; anywhere else it is not tried."""
FROM_THE_START = ("attaching", "settings", "building", "wiring", "rows")


@pytest.mark.parametrize("app", APPS)
def test_an_app_sees_no_difference(app: str, unwatched: Callable[[str, str], Seen]) -> None:
    alone = unwatched(app, "main")
    with watched() as exporter:
        beside = inside(app)
    assert_same(alone, beside)
    assert len(alone.out) > 50
    names = {span.name.split()[0] for span in exporter.get_finished_spans()}
    assert {"execute_tool", "invoke_agent"} <= names
    assert ("chat" in names) == (app != "decorated")


@pytest.mark.parametrize("app", APPS)
def test_an_app_sees_no_difference_with_content(
    app: str, unwatched: Callable[[str, str], Seen]
) -> None:
    alone = unwatched(app, "brief")
    with watched(capture_content=True):
        beside = inside(app, "brief")
    assert_same(alone, beside)


@pytest.mark.parametrize("app", APPS)
def test_an_app_sees_no_fault_of_an_exporter(
    app: str, unwatched: Callable[[str, str], Seen]
) -> None:
    with watched(Asleep()):
        beside = inside(app, "brief")
    assert_same(unwatched(app, "brief"), beside)


@pytest.mark.parametrize(
    ("fault", "app"),
    [(fault, app) for fault in FAULTS for app in APPS if app in WHERE.get(fault, EVERYWHERE)],
)
def test_an_app_sees_no_fault_of_ours(
    fault: str,
    app: str,
    unwatched: Callable[[str, str], Seen],
    faults: Counter[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    alone = unwatched(app, "brief")
    if fault in FROM_THE_START:
        mend = break_(fault)
        with watched():
            beside = inside(app, "brief")
            mend()
    else:
        with watched():
            mend = break_(fault)
            beside = inside(app, "brief")
            mend()
    assert_same(alone, beside)
    assert faults, "nothing has failed"
    ours = [each.getMessage() for each in caplog.records if each.name.startswith("otel_loopguard")]
    assert not [line for line in ours if "secret" in line]
