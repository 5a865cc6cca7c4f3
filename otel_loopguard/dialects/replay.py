"""Recorded spans as they were seen when they were open: which run each tells of, and what.

The decisions are those of the span processor (`calls`, `asked`); here they are taken for spans that
are read from a file, where an instrumentation's whole trace is known at once, or a piece of it.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from otel_loopguard.core.model import Kind, Sighting, Source
from otel_loopguard.core.tuples import make
from otel_loopguard.dialects import own, read, starts
from otel_loopguard.dialects.asked import AskedCalls
from otel_loopguard.dialects.calls import Call, met_call, opens_run, tells
from otel_loopguard.dialects.reading import Role
from otel_loopguard.dialects.values import name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from otel_loopguard.core.fingerprint import Fingerprinter
    from otel_loopguard.dialects.reading import Reading, Start
    from otel_loopguard.dialects.view import SpanView

_AGENT: Final = Role.AGENT  # before Python 3.12 it takes long to read a member from its enum
MAX_KNOWN: Final = 10_000
"""How many spans of earlier pieces are remembered, for children that come later."""


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A run as its spans show it; see `otel_loopguard.sdk.scope.Run`."""

    id: str
    agent: str | None = None
    scoped: bool = True
    foreign: bool = False
    parent: Run | None = None


class Told(NamedTuple):
    """What a recording tells of a run.

    Attributes:
        run: the run's id.
        sighting: what happened; None if the run is over.
        agent: the agent's name, if known.
        dialect: the convention of the span, or "loopguard" for our own.
    """

    run: str
    sighting: Sighting | None
    agent: str | None
    dialect: str


class _Known(NamedTuple):
    """What a span is part of, and how deep it is nested."""

    run: Run
    call: Call | None
    depth: int


class Replay:
    """Plays recorded spans, trace by trace or piece by piece.

    Args:
        fingerprinter: makes the digests by which calls are told apart.
    """

    def __init__(self, fingerprinter: Fingerprinter) -> None:
        self._asked = AskedCalls(fingerprinter, lazily=True)
        self._before: OrderedDict[str, _Known] = OrderedDict()

    def play(self, spans: Iterable[SpanView]) -> Iterator[Told]:
        """What spans of one trace tell, in the order of time. Their own order does not matter."""
        views = {view.span_id: view for view in spans}
        known = self._place(views)
        moments: list[tuple[int, int, int, int, SpanView, _Known]] = []
        for number, (span_id, view) in enumerate(views.items()):
            here, start_ns = known[span_id], view.start_ns
            moments.append((view.end_ns, -here[2], start_ns, number, view, here))
            if own.USER_TURN in view.attributes:
                moments.append((start_ns, 1, start_ns, number, view, here))
        moments.sort()
        for _, order, _, _, view, here in moments:
            if order == 1:
                yield _user_turn(here.run, view)
            else:
                yield from self._end(view, here)
        self._asked.settle(over=views.keys())  # a run is over with the span that it is named after
        self._remember(known)

    def _place(self, views: dict[str, SpanView]) -> dict[str, _Known]:
        """Find the run and the call of each span, parents first."""
        known: dict[str, _Known] = {}
        for span_id, view in views.items():
            above = view.parent_id or ""
            if above in known or above not in views:  # as most often
                if span_id not in known:
                    known[span_id] = _start(view, known.get(above) or self._before.get(above))
                continue
            path: list[SpanView] = []
            here: SpanView | None = view
            while here is not None and here.span_id not in known and len(path) <= len(views):
                path.append(here)
                here = views.get(here.parent_id or "")
            for each in reversed(path):
                if each.span_id not in known:  # a broken file may go round in a circle
                    around = each.parent_id or ""
                    outer = known.get(around) or self._before.get(around)
                    known[each.span_id] = _start(each, outer)
        return known

    def _remember(self, known: dict[str, _Known]) -> None:
        self._before.update(known)
        while len(self._before) > MAX_KNOWN:
            self._before.popitem(last=False)

    def _end(self, view: SpanView, known: _Known) -> list[Told]:
        reading = read(view)
        ending, call, _ = known
        said: list[Told] = []
        if reading is not None:
            run = ending.parent if reading.role is _AGENT else ending
            if own.RUN_ID in view.attributes:
                said = _own(view, reading, run)
            elif tells(reading, ending.id, call, view.reference[1]) and run is not None:
                for seen in self._asked.take(run.id, reading, view):
                    said.append(_told(run, seen, reading.dialect))
        if view.span_id == ending.id:
            said.append(Told(ending.id, None, ending.agent, ""))
        return said


def _own(view: SpanView, reading: Reading, run: Run | None) -> list[Told]:
    """A span that a hook of ours has told of, to the run that hears of it, if any."""
    if run is None or not reading.sightings:
        return []
    seen = own.told(view, reading.sightings[-1])
    return [] if seen is None else [_told(run, seen, "loopguard")]


def _told(run: Run, seen: Sighting, dialect: str) -> Told:
    if run.parent is not None:
        seen = seen._replace(parent=run.parent.id)
    return make(Told, (run.id, seen, run.agent, dialect))


def _user_turn(run: Run, view: SpanView) -> Told:
    seen = Sighting(
        Kind.USER, "user", Source.MESSAGES, start_ns=view.start_ns, end_ns=view.start_ns,
        span=view.reference,
    )  # fmt: skip
    return _told(run, seen, "loopguard")


def _start(view: SpanView, parent: _Known | None) -> _Known:
    """What a span is part of, by what it says and by its parent, if that is known."""
    # To read them by name takes longer.
    title, _, trace_id, span_id, parent_id, scope_name, _, _, _, attributes, _, is_remote, _ = view
    start = starts(title, scope_name, attributes)
    outer, around, depth = None, None, 0
    if parent_id is None or is_remote:
        pass
    elif parent is not None:
        outer, around, depth = parent
        depth += 1
    else:
        outer = Run(trace_id, scoped=False)  # as where the parent has ended already
    scope = outer if outer is not None and outer.scoped else None
    call = met_call(start, view.reference[1], around)
    if own.RUN_ID in attributes:
        run = _own_run(str(attributes[own.RUN_ID]), view, start, outer, scope)
        if call is not None and start is not None and start.role is not _AGENT:
            call.told = True  # by our hook
        return _Known(run, call, depth)
    if start is not None and opens_run(start, outer):
        run = Run(span_id, start.name, foreign=True, parent=scope)
    else:
        run = outer or Run(span_id, scoped=False)
    return make(_Known, (run, call, depth))


def _own_run(
    said: str, view: SpanView, start: Start | None, outer: Run | None, scope: Run | None
) -> Run:
    """The run that a span names."""
    if outer is not None and outer.id == said:
        return outer
    if start is not None and start.role is _AGENT:
        return Run(said, start.name, parent=scope)
    return Run(said, name(view.attributes, "gen_ai.agent.name"), parent=scope)
