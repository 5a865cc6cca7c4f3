"""The process's one Guard with its settings, and the boundary that keeps our faults from the host.

Nothing of ours may raise into the application. Code behind a boundary is plain; the boundary logs
what it catches once, counts it, and goes on. Tests set `reraise` so that whatever a boundary would
swallow fails them.
"""

from __future__ import annotations

import functools
import logging
import os
import threading
from collections import Counter
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, TypeVar, cast

from otel_loopguard.core.detectors import BUILTIN, Detector
from otel_loopguard.core.model import Finding
from otel_loopguard.settings import Settings, from_env

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from importlib.metadata import EntryPoint

    from otel_loopguard.core.episode import Episode
    from otel_loopguard.core.guard import Guard
    from otel_loopguard.core.model import Step

logger = logging.getLogger("otel_loopguard")

DETECTOR_GROUP: Final = "otel_loopguard_detector"
_P = ParamSpec("_P")
_R = TypeVar("_R")


class Boundary:
    """What became of our own faults.

    Attributes:
        reraise: raise what would be swallowed (tests set it).
        faults: how many faults each place had.
    """

    def __init__(self) -> None:
        self.reraise = False
        self.faults: Counter[str] = Counter()

    def caught(self, where: str, fault: Exception) -> None:
        """Count a fault and log the first of its place, never its text: that may hold content."""
        self.faults[where] += 1
        if self.faults[where] == 1:
            logger.error(
                "otel_loopguard: internal fault in %s (%s at %s); the application goes on, this "
                "place is not reported again",
                where,
                type(fault).__name__,
                _origin(fault),
            )
        if self.reraise:
            raise fault


def _origin(fault: Exception) -> str:
    """File and line that raised."""
    trace = fault.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "unknown"
    return f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"


boundary: Final = Boundary()


def guarded(where: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R | None]]:
    """Put a boundary around a function: if it raises, the caller gets None."""

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R | None]:
        @functools.wraps(function)
        def inside(*args: _P.args, **kwargs: _P.kwargs) -> _R | None:
            try:
                return function(*args, **kwargs)
            except Exception as fault:  # noqa: BLE001 - this is the boundary
                boundary.caught(where, fault)
                return None

        return inside

    return decorate


class Lazy(Generic[_R]):
    """An attribute that is made once, when it is first read, and a plain one from then on.

    As `functools.cached_property`, which has a lock of its own before Python 3.12: a child that
    forks while another thread holds it would wait for ever. This one is `unforked`.
    """

    def __init__(self, make: Callable[[Any], _R]) -> None:
        self._make = make

    def __set_name__(self, _owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, _owner: type) -> _R:
        with unforked():
            known = instance.__dict__
            if self._name not in known:
                known[self._name] = self._make(instance)
            return known[self._name]


class Runtime:
    """The settings in force, and the guard that they describe.

    Without a hash key digests are keyed at random, so that nobody can look up what was hashed.

    Args:
        settings: the settings.
        wrap: puts something around each detector.
    """

    def __init__(
        self, settings: Settings, wrap: Callable[[Detector], Detector] | None = None
    ) -> None:
        self.settings = settings
        self._wrap = wrap
        if settings.detectors:
            _ = self.guard  # which of them is missing is said at the start

    @Lazy
    def guard(self) -> Guard:
        """The guard; what it takes is loaded when something is first to be judged."""
        return self._make()

    @property
    def made(self) -> Guard | None:
        """The guard, if anything was to be judged yet."""
        return self.__dict__.get("guard")

    def _make(self) -> Guard:
        from otel_loopguard.core.fingerprint import Fingerprinter  # noqa: PLC0415
        from otel_loopguard.core.guard import Guard  # noqa: PLC0415

        settings, wrap = self.settings, self._wrap
        detectors: list[Detector] = [
            settings.thresholds.get(pattern) or detector() for pattern, detector in BUILTIN.items()
        ]
        detectors += _third_party(settings.detectors)
        guard = Guard(
            detectors if wrap is None else [wrap(detector) for detector in detectors],
            Fingerprinter(settings.hash_key or os.urandom(32)),
            max_runs=settings.max_runs,
            ttl_ns=int(settings.run_ttl_s * 1e9),
            ignored_tools=settings.ignored_tools,
            muted=settings.muted_patterns,
            action=settings.action,
            actions=settings.actions,
            tools=settings.tools,
        )
        guard.decides = guard.decides or settings.escalate is not None
        return guard


def _third_party(names: tuple[str, ...]) -> list[Detector]:
    """Load the named detectors; one that is missing or does not load is said and left out."""
    found: list[Detector] = []
    for name in names:
        points = entry_points(group=DETECTOR_GROUP, name=name)
        if not points:
            logger.warning("otel_loopguard: no detector %r is installed; it is left out", name)
        for point in points:
            detector = guarded(f"loading detector {name}")(_load)(point)
            if detector is not None:
                found.append(_contained(name, detector))
    return found


def _load(point: EntryPoint) -> Detector:
    """The detector that an entry point names, itself or as a class to be made without arguments."""
    named = point.load()
    detector = named() if isinstance(named, type) else named
    if not callable(detector):
        raise TypeError("a detector has to be callable")
    return cast("Detector", detector)


def _contained(name: str, detector: Detector) -> Detector:
    """A detector of somebody else, which may raise and may give anything."""

    @guarded(f"detector {name}")
    def judge(episode: Episode, step: Step) -> Finding | None:
        finding = cast("object", detector(episode, step))
        if finding is None or isinstance(finding, Finding):
            return finding
        raise TypeError("a detector has to give a Finding or None")

    return judge


_lock = threading.RLock()  # a detector's module may use what this package offers
_current: Runtime | None = None


def get() -> Runtime:
    """The runtime in force; the first call makes it from the environment."""
    return _current or configure()


def configure(settings: Settings | None = None) -> Runtime:
    """Put settings in force. Without any: those of the environment, unless some are in force.

    Settings equal to those in force change nothing, so that all who ask share one guard.
    """
    global _current  # noqa: PLW0603 - the process has one guard
    with _lock:
        if _current is None or settings not in (None, _current.settings):
            _current = Runtime(settings or from_env())
        return _current


def unforked() -> AbstractContextManager[object]:
    """To be held where the process must not be forked: in a late import, or with others' locks.

    A module that is half loaded stays so in the child, and a lock that another thread held is never
    released there: those of the SDK's instruments are renewed by nobody.
    """
    return _lock


def reset() -> None:
    """Forget the runtime in force (for tests and for a second `instrument`)."""
    global _current  # noqa: PLW0603
    with _lock:
        _current = None


def _before_fork() -> None:
    """Wait for whoever must not be forked."""
    _lock.acquire()


def _after_fork_in_parent() -> None:
    _lock.release()


def _after_fork_in_child() -> None:
    global _lock  # noqa: PLW0603
    _lock = threading.RLock()
    if _current is not None and _current.made is not None:
        _current.made.after_fork()


if hasattr(os, "register_at_fork"):  # pragma: no branch - not on Windows
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
