"""The boundary around our own faults, and the detectors of others."""

from __future__ import annotations

import logging
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

import otel_loopguard
from otel_loopguard import runtime
from otel_loopguard.core.fingerprint import Fingerprinter
from otel_loopguard.core.guard import Guard
from otel_loopguard.core.model import Kind, Sighting
from otel_loopguard.runtime import boundary, guarded
from otel_loopguard.sdk.report import Reporter
from otel_loopguard.settings import from_env
from tests.signals import Signals, attributes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CONTENT = "what only the user may see"


@pytest.fixture
def swallowing() -> Iterator[None]:
    """The boundary as it is for users."""
    boundary.reraise = False
    yield
    boundary.faults.clear()


@pytest.fixture
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    """No runtime is in force."""
    monkeypatch.setattr(runtime, "_current", None)


def fail(*_args: object, **_kwargs: object) -> None:
    raise ValueError(CONTENT)


@pytest.mark.usefixtures("swallowing")
class TestBoundary:
    def test_the_caller_gets_none(self) -> None:
        assert guarded("somewhere")(fail)() is None
        assert guarded("somewhere")(len)("four") == 4
        assert boundary.faults == {"somewhere": 1}

    def test_each_place_is_logged_once_by_class_and_line(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        for place in ("here", "there", "here"):
            guarded(place)(fail)()
        assert boundary.faults == {"here": 2, "there": 1}
        assert len(caplog.records) == 2
        assert "ValueError at test_runtime.py:" in caplog.text
        assert CONTENT not in caplog.text

    def test_a_fault_that_was_never_raised(self, caplog: pytest.LogCaptureFixture) -> None:
        boundary.caught("nowhere", ValueError(CONTENT))
        assert "unknown" in caplog.text

    def test_what_ends_a_program_goes_through(self) -> None:
        def leave() -> None:
            raise SystemExit(3)

        with pytest.raises(SystemExit):
            guarded("somewhere")(leave)()

    def test_tests_see_what_is_caught(self) -> None:
        boundary.reraise = True
        with pytest.raises(ValueError, match=CONTENT):
            guarded("somewhere")(fail)()


@pytest.mark.usefixtures("swallowing")
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Guard, "observe"),
        (Guard, "end"),
        (Guard, "is_stuck"),
        (Fingerprinter, "of_args"),
        (Fingerprinter, "of_result"),
        (Reporter, "report"),
        (Reporter, "close"),
    ],
)
def test_an_application_does_not_notice_our_faults(
    owner: type, name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    error = KeyError("mine")

    @otel_loopguard.tool
    def work(number: int) -> int:
        if number < 0:
            raise error
        return 2 * number

    @otel_loopguard.agent
    def think() -> list[int]:
        return [work(n) for n in range(3)]

    with Signals().instrumented():
        monkeypatch.setattr(owner, name, fail)
        with otel_loopguard.run("around"):
            assert think() == [0, 2, 4]
        with pytest.raises(KeyError) as caught:
            work(-1)
    assert caught.value is error
    assert boundary.faults
    assert len(caplog.records) == len(boundary.faults)
    assert CONTENT not in caplog.text


class TestSettings:
    @pytest.mark.usefixtures("unset")
    def test_the_first_use_reads_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OTEL_LOOPGUARD_MAX_RUNS", "7")
        first = runtime.get()
        assert first.settings.max_runs == 7
        monkeypatch.setenv("OTEL_LOOPGUARD_MAX_RUNS", "8")
        assert runtime.get() is runtime.configure() is first

    @pytest.mark.usefixtures("unset")
    def test_equal_settings_share_a_guard_and_others_do_not(self) -> None:
        first = runtime.configure(from_env({}))
        assert runtime.configure(from_env({})) is first
        second = runtime.configure(from_env({}, max_runs=3))
        assert second is not first
        assert runtime.get() is second
        runtime.reset()
        assert runtime.get() is not second

    def test_thresholds_and_muted_patterns_reach_the_guard(self) -> None:
        signals = Signals()
        with signals.instrumented(hard_loop_warning=2, muted_patterns="result_stagnation"):
            loop(2)
        assert signals.severities == ["warning"]
        muted = Signals()
        with muted.instrumented(muted_patterns="hard_loop,result_stagnation"):
            loop(9)
        assert muted.events == []

    def test_ignored_tools_are_no_steps(self) -> None:
        signals = Signals()
        with signals.instrumented(ignored_tools="search"):
            loop(9)
        assert signals.events == []

    @pytest.mark.usefixtures("unset")
    def test_without_a_key_digests_differ_between_processes(self) -> None:
        one, two = (runtime.Runtime(from_env({})).guard.fingerprinter for _ in range(2))
        assert one.of_text("x") != two.of_text("x")

    @pytest.mark.usefixtures("unset")
    def test_threads_that_come_first_together_share_a_guard(self) -> None:
        found: list[object] = []
        threads = [threading.Thread(target=lambda: found.append(runtime.get())) for _ in range(16)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert len(set(map(id, found))) == 1


def loop(times: int) -> None:
    @otel_loopguard.tool
    def search(query: str) -> str:
        return "nothing"

    with otel_loopguard.run("finder"):
        for _ in range(times):
            search("x")


DETECTORS = """
from dataclasses import dataclass
from otel_loopguard.core.model import Finding, Pattern, Severity

def find(episode, step):
    if episode.iteration < 2:
        return None
    return Finding(Pattern.ITERATION_BUDGET, Severity.WARNING, "two", 1, 2, "two steps", "stop")

@dataclass(frozen=True)
class Made:
    steps: int = 2
    def __call__(self, episode, step):
        return find(episode, step)

def fail(episode, step):
    raise RuntimeError(step)

def babble(episode, step):
    return "deadlock"

class Unmakeable:
    def __init__(self, needed):
        self.needed = needed

number = 3
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A distribution with detectors is installed."""
    (tmp_path / "their_detectors.py").write_text(DETECTORS)
    info = tmp_path / "their_detectors-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-detectors\nVersion: 1.0\n")
    names = ["find", "Made", "fail", "babble", "Unmakeable", "number", "absent"]
    lines = [f"{name} = their_detectors:{name}" for name in names]
    lines.append("broken = no_such_module_anywhere:x")
    (info / "entry_points.txt").write_text("\n".join(["[otel_loopguard_detector]", *lines]))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("their_detectors", None)


@pytest.mark.usefixtures("installed", "swallowing")
class TestDetectorsOfOthers:
    @pytest.mark.parametrize("name", ["find", "Made"])
    def test_one_that_is_named_is_loaded(self, name: str) -> None:
        signals = Signals()
        with signals.instrumented(detectors=name):
            loop(2)
        (event,) = signals.events
        assert attributes(event)["loopguard.pattern"] == "iteration_budget"
        assert not boundary.faults

    def test_one_that_is_not_named_is_not_imported(self) -> None:
        runtime.Runtime(from_env({}))
        assert "their_detectors" not in sys.modules

    @pytest.mark.parametrize("name", ["fail", "babble"])
    def test_one_that_misbehaves_is_contained(self, name: str) -> None:
        signals = Signals()
        with signals.instrumented(detectors=f"{name},find"):
            loop(3)
        patterns = {attributes(event)["loopguard.pattern"] for event in signals.events}
        assert patterns == {"hard_loop", "iteration_budget"}
        assert boundary.faults == {f"detector {name}": 3}

    @pytest.mark.parametrize("name", ["Unmakeable", "number", "absent", "broken"])
    def test_one_that_does_not_load_is_left_out(self, name: str) -> None:
        signals = Signals()
        with signals.instrumented(detectors=f"{name},find"):
            loop(2)
        assert len(signals.events) == 1
        assert boundary.faults == {f"loading detector {name}": 1}

    def test_one_that_is_not_installed_is_warned_of(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.WARNING):
            runtime.Runtime(from_env({}, detectors="nobody"))
        assert caplog.messages == [
            "otel_loopguard: no detector 'nobody' is installed; it is left out"
        ]


def test_counts_are_exact_with_many_threads() -> None:
    signals = Signals()
    barrier = threading.Barrier(64)
    errors: list[BaseException] = []

    @otel_loopguard.tool
    def search(query: str) -> str:
        return "nothing"

    def work() -> None:
        barrier.wait()
        try:
            with otel_loopguard.run("finder"):
                for _ in range(5):
                    search("x")
        except BaseException as error:
            errors.append(error)

    with signals.instrumented(log_warnings=False, flush=False):
        threads = [threading.Thread(target=work) for _ in range(64)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert errors == []
        assert signals.points("loopguard.deadlocks") == {
            ("finder", "hard_loop", "critical"): 64,
            ("finder", "hard_loop", "warning"): 64,
        }
        assert set(signals.points("loopguard.stuck_runs").values()) == {0}
        assert signals.points("loopguard.iterations") == {("finder", "deadlock"): 64 * 5}
    assert len(signals.events) == 128


def test_a_guard_can_be_entered_again_by_the_thread_that_is_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A signal handler or a finalizer may call a tool at any time."""
    guard = runtime.Runtime(from_env({}, hard_loop_warning=2)).guard
    seen = Sighting(Kind.TOOL, "search", args={"query": "x"}, result="nothing")
    original: Callable[..., object] = Guard._judge

    def interrupted(self: Guard, *given: object) -> object:
        monkeypatch.setattr(Guard, "_judge", original)
        guard.observe("another", seen)
        return original(self, *given)

    monkeypatch.setattr(Guard, "_judge", interrupted)
    assert guard.observe("one", seen).counted


class TestLazy:
    def test_many_threads_make_one(self) -> None:
        made: list[object] = []

        class Holder:
            @runtime.Lazy
            def value(self) -> object:
                time.sleep(0.01)
                made.append(object())
                return made[-1]

        holder, go, read = Holder(), threading.Barrier(8), list[object]()

        def work() -> None:
            go.wait()
            read.append(holder.value)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert len(made) == 1
        assert read == made * 8
        assert vars(holder) == {"value": made[0]}

    def test_what_fails_is_made_at_the_next_read(self) -> None:
        answers = iter([None, 3])

        class Holder:
            @runtime.Lazy
            def value(self) -> int:
                answer = next(answers)
                if answer is None:
                    raise ValueError
                return answer

        holder = Holder()
        with pytest.raises(ValueError, match=r"^$"):
            _ = holder.value
        assert holder.value == 3
