"""Reads of parts of something: which parts were read before, so that reading them again is no news.

A call reads a part if two numbers among its arguments say from where and how far, whatever they are
called: a start and an end, an offset and a length, or a pair. All its other arguments name what is
read. Which of the two numbers is which shows by how they vary.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeGuard, cast

from otel_loopguard.core.model import FAILED, Outcome
from otel_loopguard.core.records import WAIT_WEIGHT, Moment, remember
from otel_loopguard.core.weighing import MAX_ROUNDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from otel_loopguard.core.evidence import Evidence
    from otel_loopguard.core.fingerprint import Fingerprinter
    from otel_loopguard.core.model import Step

MAX_SOURCES: Final = 8
MAX_READS: Final = 64
MAX_LINES: Final = 512
"""Lines of one result that are looked at."""
MAX_KNOWN: Final = 2_048
"""Different lines that are remembered, or half as many."""
MOSTLY: Final = 0.5
"""From which share on a part was read already."""
SEEN: Final = 0.8
"""From which share of its lines on a text says nothing new."""
FEW_LINES: Final = 3
"""A text of fewer lines does not show whether it is new."""
UNSEEN_WEIGHT: Final = 0.67
"""What a part counts that was read already, if the text does not show it."""
ASIDE_WEIGHT: Final = 0.5
"""What a part counts if it goes on beyond all others, or if other things were learned between."""
TILES: Final = 2
"""So many reads that went on where another one had ended show that the numbers are a range."""
SETTLED: Final = 8
"""From so many reads on what their numbers mean is no longer asked."""
ENDS: Final = 2
"""Two numbers that are a start and an end, in either order."""
_MAX_TEXT: Final = 65_536
_MAX_ARGS: Final = 2_000
_MIN_LINE: Final = 4
_BIG: Final = 1 << 53
_TWO_NUMBERS: Final = re.compile(r"[:\[]\s*\d{1,16}\s*,.*?[:,]\s*\d{1,16}\s*[,\]}]", re.DOTALL)
_NEUTRAL: Final = FAILED | {Outcome.PENDING}

Span = tuple[int, int]
"""From where and up to where, the latter excluded."""


class Extent(NamedTuple):
    """What part a call reads.

    Attributes:
        source: what it is a part of: the tool and its other arguments, as a digest.
        numbers: the two numbers.
        paired: whether they are one argument: a start and an end.
        lines: the lines of the result, as hashes; None if they are not known.
    """

    source: str
    numbers: tuple[int, int]
    paired: bool
    lines: frozenset[int] | None
    kind: Literal["extent"] = "extent"


def extent_of(printer: Fingerprinter, action: str, args: object, result: object) -> Extent | None:
    """Returns what part a call reads; None if it does not look like one that reads a part."""
    if type(args) is str and len(args) <= _MAX_ARGS and _TWO_NUMBERS.search(args) is not None:
        args = _parsed(args)
    if type(args) is not dict:
        return None
    given = cast("dict[str, Any]", args)
    singles: list[str] = []
    pairs: list[str] = []
    for key, value in given.items():
        if type(value) is int:
            singles.append(key)
        elif type(value) is list and len(cast("list[Any]", value)) == 2:
            pairs.append(key)
    if len(singles) != 2 and (singles or len(pairs) != 1):
        return None  # as most often
    names = sorted(map(str, singles)) or pairs
    first, second = (given.get(name) for name in names) if singles else given[names[0]]
    if not (_is_number(first) and _is_number(second)):
        return None
    rest = printer.of_args({key: value for key, value in given.items() if key not in names})
    if rest is None:
        return None
    source = " ".join((action, *names, rest))
    return Extent(source, (first, second), not singles, _lines(result))


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _is_number(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < _BIG


def _lines(result: object) -> frozenset[int] | None:
    """The lines of a text; of one that is a single line, what stands between its commas."""
    if type(result) is not str:
        return None
    text = result[:_MAX_TEXT].strip()
    parts = text.split("\n", MAX_LINES)
    if len(parts) == 1:
        parts = text.split(",", MAX_LINES)
    return frozenset(hash(part) for part in parts[:MAX_LINES] if len(part) >= _MIN_LINE)


@dataclass(slots=True)
class Again:
    """Parts of one source that were read again, with no new part between.

    `weight` is `count`, each graded by how good the evidence is; `doubtful` says that for some of
    it no text shows that it is not new.
    """

    first: Moment
    latest: Moment
    count: int = 0
    weight: float = 0.0
    doubtful: bool = False


class _Source:
    """What was read of one source since something was changed.

    Attributes:
        again: its parts that were read again.
        learned: what the run had learned after the newest read.
        last: the numbers of the newest read.
    """

    __slots__ = ("_layout", "_reads", "_tiles", "again", "last", "learned")

    def __init__(self) -> None:
        self.again: Again | None = None
        self.learned = 0
        self.last: tuple[int, int] | None = None
        self._layout: int | None = None
        self._reads: dict[tuple[int, int], Span] = {}
        self._tiles = 0

    def weigh(self, extent: Extent, seen: float | None) -> float | None:
        """What a read counts as one of a part that was read already; None if it brings news.

        `seen` is the share of its text's lines that is known; 0.0 counts neither way.
        """
        numbers = extent.numbers
        if len(self._reads) < SETTLED:
            self._lay_out([*self._reads, numbers], paired=extent.paired)
        layout, reads = self._layout, self._reads
        span = numbers if layout is None else _span(numbers, layout)
        before = list(reads.values())
        remember(reads, numbers, span, MAX_READS)
        if layout is None:
            return None
        if self._tiles < TILES:
            self._tiles += any(abs(end - span[0]) <= 1 for _, end in before)
        share = _covered(before, *span)
        if share < MOSTLY or (seen is not None and seen < MOSTLY):
            return None
        if seen is not None:
            beyond = span[1] > max(end for _, end in before)
            return (ASIDE_WEIGHT if beyond else 1.0) if seen >= SEEN else 0.0
        closer = before[-1][0] <= span[0] and span[1] <= before[-1][1]
        return UNSEEN_WEIGHT if share == 1.0 and self._tiles == TILES and not closer else 0.0

    def _lay_out(self, pairs: Sequence[tuple[int, int]], *, paired: bool) -> None:
        """Tell from how the numbers vary what they mean, as long as there are few."""
        layout = ENDS if paired else _layout(pairs)
        if layout is not None and layout != self._layout:
            self._reads = {pair: _span(pair, layout) for pair in self._reads}
        self._layout = layout


class Ranges:
    """The parts that one agent has read.

    Attributes:
        again: the parts of the newest read's source that were read again, if that read is one.
    """

    __slots__ = ("_epoch", "_known", "_older", "_sources", "_stale", "again")

    def __init__(self) -> None:
        self.again: Again | None = None
        self._sources: dict[str, _Source] = {}
        self._known: set[int] = set()
        self._older: set[int] = set()
        self._epoch = self._stale = 0

    def take(self, step: Step, extent: Extent, now: Moment, learned: Evidence) -> None:
        """Take a read, of which `learned` knows already what else was learned by it."""
        self.again = None
        if step.outcome in _NEUTRAL:
            return
        if learned.epoch != self._epoch:
            self._sources.clear()
            self._epoch = learned.epoch
        source = self._sources.get(extent.source) or _Source()
        remember(self._sources, extent.source, source, MAX_SOURCES)
        weight = source.weigh(extent, self._seen(extent.lines))
        news = learned.progress - self._stale
        if extent.numbers != source.last:
            self._count(source, step, now, weight, aside=news - learned.moved > source.learned)
        self._stale += learned.moved and self.again is not None
        source.learned = learned.progress - self._stale
        source.last = extent.numbers

    def _count(
        self, source: _Source, step: Step, now: Moment, weight: float | None, *, aside: bool
    ) -> None:
        """Count a read: None is one of a new part, 0.0 one that says nothing either way."""
        again = source.again
        if weight is None or (again and now.iteration - again.latest.iteration > MAX_ROUNDS):
            source.again = again = None
        if not weight:
            return
        doubtful = weight == UNSEEN_WEIGHT
        if again is None:
            again = source.again = Again(now, now)
        elif now.waited(step, again.latest):
            weight *= WAIT_WEIGHT
        again.count += 1
        again.weight += weight * (ASIDE_WEIGHT if aside else 1.0)
        again.doubtful = again.doubtful or doubtful
        again.latest = now
        self.again = again

    def _seen(self, lines: frozenset[int] | None) -> float | None:
        """Which share of a text's lines was read before; None if it does not show."""
        if lines is None or len(lines) < FEW_LINES:
            return None
        new = lines - self._known - self._older
        if len(self._known) + len(new) > MAX_KNOWN // 2:
            self._older, self._known = self._known, set()
        self._known |= lines
        return 1 - len(new) / len(lines)


def _layout(pairs: Sequence[tuple[int, int]]) -> int | None:
    """Which of two numbers says where a part starts, or `ENDS`; None if it is not clear."""
    varying = [len({pair[at] for pair in pairs}) for at in (0, 1)]
    start = int(varying[1] > varying[0])
    if 2 * varying[1 - start] <= varying[start] and any(pair[1 - start] > 1 for pair in pairs):
        pages = any(abs(b[start] - a[start]) == 1 for a, b in pairwise(pairs))
        return None if pages else start
    ordered = all(a <= b for a, b in pairs) or all(a >= b for a, b in pairs)
    return ENDS if ordered else None


def _span(numbers: tuple[int, int], layout: int) -> Span:
    """The part that two numbers mean."""
    if layout == ENDS:
        return min(numbers), max(numbers) + 1
    return numbers[layout], numbers[layout] + max(1, numbers[1 - layout])


def _covered(spans: Iterable[Span], low: int, high: int) -> float:
    """Which share of a part others cover."""
    covered, upto = 0, low
    for start, end in sorted([each for each in spans if each[0] < high and each[1] > low]):
        more = min(end, high) - max(start, upto)
        if more > 0:
            covered, upto = covered + more, min(end, high)
    return covered / (high - low)
