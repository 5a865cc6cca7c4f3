"""What the guard says of recorded runs: the guard of the process, with the settings in force."""

from __future__ import annotations

import json
import zlib
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from otel_loopguard.cli.judgeable import Seen
from otel_loopguard.cli.sources import ALL, Broken, Case, named
from otel_loopguard.core.model import Sighting
from otel_loopguard.core.tuples import make
from otel_loopguard.dialects.otlp import MALFORMED
from otel_loopguard.dialects.replay import Replay
from otel_loopguard.dialects.steps import sightings
from otel_loopguard.dialects.window import Window
from otel_loopguard.runtime import Runtime
from otel_loopguard.settings import from_env

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from otel_loopguard.cli.decoding import Piece
    from otel_loopguard.cli.sources import Share, Source
    from otel_loopguard.core.detectors import Detector
    from otel_loopguard.core.model import Observation, SpanRef, Step, Utterance
    from otel_loopguard.dialects.replay import Told
    from otel_loopguard.dialects.view import SpanView
    from otel_loopguard.settings import Settings

_BITS: Final = 64
_SPAN: Final = Sighting._fields.index("span")
MAX_TRACES: Final = 10_000
"""How many traces that came in pieces are remembered, so that one part gets all of them."""


class Report(NamedTuple):
    """All that was found in one case or run that is over; `id` is as the file has it."""

    id: object
    agent: str | None
    steps: int
    findings: tuple[dict[str, object], ...]
    not_judged: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        """As an object of `--json`."""
        return self._asdict()


class Totals(NamedTuple):
    """How many spans were read, by who made them, and how many steps they told of."""

    scopes: Counter[str]
    told: int


Item = Report | Broken | Totals


@dataclass(slots=True)
class _Tally:
    """What is kept of a run until it is over."""

    agent: str | None = None
    steps: int = 0
    newest_ns: int = 0
    findings: list[dict[str, object]] = field(default_factory=list["dict[str, object]"])
    seen: Seen = field(default_factory=Seen)


class Scan:
    """Reads sources, and gives a `Report` for each case or run as soon as it is over.

    Args:
        settings: those of the guard.
        share: which cases and runs are wanted.
        listen: hears of each step that was judged: the case or run, and its number in it.
        wrap: puts something around each detector.
    """

    def __init__(
        self,
        settings: Settings,
        share: Share = ALL,
        listen: Callable[[object, int, Observation], object] | None = None,
        wrap: Callable[[Detector], Detector] | None = None,
    ) -> None:
        self._guard = Runtime(settings, wrap).guard
        self._ttl_ns = int(settings.run_ttl_s * 1e9)
        self._share = share
        self._listen = listen
        self._tallies: OrderedDict[str, _Tally] = OrderedDict()
        self._window: Window[tuple[str, Piece]] = Window()
        self._replay = Replay(self._guard.fingerprinter)
        self._homes: OrderedDict[str, str] = OrderedDict()
        self._scopes: Counter[str] = Counter()
        self._steps = 0

    def read(self, sources: Iterable[Source]) -> Iterator[Item]:
        """Scan sources one after the other; the spans of one trace may lie in several."""
        add = self._window.add
        for source in sources:
            name = source.name
            for item in source.read():
                if isinstance(item, list):
                    for piece in item:
                        full = add(piece.trace, (name, piece), piece.size)
                        for trace, held in full:
                            yield from self._trace(trace, held)
                elif isinstance(item, Case):
                    yield from self.case(item, name)
                else:
                    yield item
        for trace, held in self._window.drain():
            yield from self._trace(trace, held)
        for run in tuple(self._tallies):
            yield self._over(run)
        yield Totals(self._scopes, self._steps)

    def case(self, case: Case, file: str) -> Iterator[Report | Broken]:
        """Scan one line of steps: its runs are judged each for itself, and reported together."""
        name = case.held.get("id", case.line)
        tally = _Tally()
        newest: dict[str, int] = {}
        try:
            for run, sighting in sightings(case.held, case.line):
                if sighting.start_ns - newest.get(run, sighting.start_ns) > self._ttl_ns:
                    self._guard.end(run, "expired")
                newest[run] = max(newest.get(run, 0), sighting.end_ns)
                _, number = sighting.span or (0, 0)
                seen = self._observe(run, sighting._replace(span=None), None, tally, number)
                self._tell(name, number, seen)
        except MALFORMED as fault:
            yield Broken(file, case.line, f"no steps ({named(fault)})")
        else:
            yield _report(name, tally)
        for run in newest:
            self._guard.end(run, "closed")

    def _trace(self, trace: str, held: list[tuple[str, Piece]]) -> Iterator[Item]:
        """A trace, or a piece of one."""
        if self._share.of > 1 and not self._is_ours(trace, held):
            return
        views: list[SpanView] = []
        for file, piece in held:
            try:
                views.append(piece.view())
            except MALFORMED as fault:  # noqa: PERF203 - each is named
                yield Broken(file, piece.line, f"no span ({named(fault)})")
        self._scopes.update([view.scope for view in views])
        for told in self._replay.play(views):
            if over := self._told(told):
                yield from over
        yield from self._expire(max((view.end_ns for view in views), default=0))

    def _is_ours(self, trace: str, held: list[tuple[str, Piece]]) -> bool:
        """Whether a trace falls into this share: all that name the same run fall into one.

        What ends last comes last, and is the nearest to the outermost agent.
        """
        home = self._homes.get(trace)
        if home is None:
            runs = (piece.run() for _, piece in reversed(held))
            home = self._homes[trace] = next(filter(None, runs), trace)
            if len(self._homes) > MAX_TRACES:
                self._homes.popitem(last=False)
        return self._share.has(zlib.crc32(home.encode()))

    def _told(self, told: Told) -> list[Report]:
        run, sighting, agent, _ = told
        over: list[Report] = []
        tally = self._tallies.get(run)
        if tally is not None and (
            sighting is None or _is_over(tally, sighting.start_ns, self._ttl_ns)
        ):
            over.append(self._over(run))
            tally = None
        if sighting is None:
            return over
        if tally is None:
            tally = self._tallies[run] = _Tally(agent)
        else:
            self._tallies.move_to_end(run)
        if sighting.end_ns > tally.newest_ns:  # noqa: PLR1730 - max() takes four times as long
            tally.newest_ns = sighting.end_ns
        self._steps += 1
        seen = self._observe(run, sighting, agent, tally, tally.steps + 1)
        if self._listen is not None:
            self._listen(run, tally.steps, seen)
        if seen.ended:
            over += [self._over(ended.run) for ended in seen.ended]
        return over

    def _observe(
        self, run: str, sighting: Sighting, agent: str | None, tally: _Tally, number: int
    ) -> Observation:
        """Show a step to the guard. Its number travels with the id of its span."""
        trace_id, span_id = sighting.span or (0, 0)
        shown = list(sighting)  # `_replace` takes far longer
        shown[_SPAN] = trace_id, number << _BITS | span_id
        seen = self._guard.observe(run, make(Sighting, shown), agent)
        tally.steps = number
        tally.seen.take(sighting, seen.step)
        if seen.utterances:
            tally.findings += [_finding(run, seen.step, spoken) for spoken in seen.utterances]
        return seen

    def _tell(self, name: object, number: int, seen: Observation) -> None:
        if self._listen is not None:
            self._listen(name, number, seen)

    def _expire(self, now_ns: int) -> Iterator[Report]:
        """Let go of the runs that have been silent for too long by then."""
        while self._tallies:
            run, tally = next(iter(self._tallies.items()))
            if not _is_over(tally, now_ns, self._ttl_ns):
                return
            yield self._over(run)

    def _over(self, run: str) -> Report:
        self._guard.end(run, "closed")
        return _report(run, self._tallies.pop(run))


def scan(lines: Iterable[str], settings: Settings | None = None) -> Iterator[dict[str, object]]:
    """Scan lines of steps; gives one object a case, as `--json` does.

    Args:
        lines: one JSON object each, with its `steps`.
        settings: those of the guard; of the environment if None.

    Raises:
        ValueError: a line is not of the format.
    """
    scanning = Scan(settings or from_env())
    for number, line in enumerate(lines, 1):
        for found in scanning.case(Case(number, json.loads(line)), "lines"):
            if isinstance(found, Broken):
                raise ValueError(str(found))  # noqa: TRY004 - it is the line that is wrong
            yield found.as_json()


def _is_over(tally: _Tally, now_ns: int, ttl_ns: int) -> bool:
    return now_ns - tally.newest_ns > ttl_ns


def _report(name: object, tally: _Tally) -> Report:
    return Report(name, tally.agent, tally.steps, tuple(tally.findings), tally.seen.not_judged())


def _finding(run: str, step: Step, spoken: Utterance) -> dict[str, object]:
    """A finding as `--json` gives it; span ids are None where the step had no span."""
    finding = spoken.finding
    number, span_id = _place(step.span)
    first, first_span_id = _place(finding.first_span)
    return {
        "step": number,
        "severity": finding.severity.label,
        "pattern": finding.pattern.value,
        "period": finding.period,
        "repeats": finding.repeats,
        "first_step": first,
        "evidence": finding.evidence,
        "suggested_action": finding.suggested_action,
        "wasted_calls": finding.wasted_calls,
        "wasted_tokens": finding.wasted_tokens,
        "wasted_seconds": finding.wasted_seconds,
        "iteration": spoken.iteration,
        "finding_id": spoken.finding_id,
        "report_no": spoken.report_no,
        "run": run,
        "agent": step.agent,
        "tool": finding.action,
        "trace_id": f"{step.span[0]:032x}" if step.span and span_id else None,
        "span_id": span_id,
        "first_span_id": first_span_id,
    }


def _place(where: SpanRef | None) -> tuple[int | None, str | None]:
    """A step's number, and the id of its span."""
    if where is None:
        return None, None
    span_id = where[1] & (1 << _BITS) - 1
    return where[1] >> _BITS, f"{span_id:016x}" if span_id else None
