"""What the responses on foreign spans have asked for: ties a call's other sightings to it."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from otel_loopguard.core.model import MISSING, Kind, Sighting
from otel_loopguard.core.tuples import make
from otel_loopguard.dialects.reading import Role

if TYPE_CHECKING:
    from collections.abc import Container

    from otel_loopguard.core.fingerprint import Fingerprinter
    from otel_loopguard.dialects.reading import Reading
    from otel_loopguard.dialects.view import SpanView

MAX_ASKED: Final = 1_000
NEAR: Final = 64
"""How many of the newest calls a tool span without a call id is compared with."""


_CALL_ID: Final = Sighting._fields.index("call_id")
_ROUND: Final = Sighting._fields.index("round")
_ARGS_KEY: Final = Sighting._fields.index("args_key")
_TOOL: Final = Kind.TOOL  # before Python 3.12 it takes long to read a member from its enum
_MODEL: Final = Role.MODEL


@dataclass(slots=True)
class _Ask:
    """A call that a response asked for; its arguments only until they are digested."""

    run_id: str
    round: str
    name: str
    asked_ns: int
    args: object
    args_key: str | None = None
    told: bool = False


class AskedCalls:
    """The newest 1,000 calls that responses asked for, by run and call id.

    Args:
        fingerprinter: makes the digests of their arguments.
        lazily: whether arguments are only digested when somebody asks for them, and at the latest
            by `settle`. Few do where spans show arguments themselves.
    """

    def __init__(self, fingerprinter: Fingerprinter, *, lazily: bool = False) -> None:
        self._fingerprinter = fingerprinter
        self._lazily = lazily
        self._unread: list[_Ask] = []
        self._asks: OrderedDict[tuple[str, str], _Ask] = OrderedDict()

    def take(self, run_id: str, reading: Reading, view: SpanView) -> list[Sighting]:
        """What a span tells that no other has told: its sightings, completed.

        Args:
            run_id: the run that hears of it.
            reading: what the span shows.
            view: the span.
        """
        carried_ns = view.start_ns if reading.role is _MODEL else None
        seen: list[Sighting] = []
        for each in reading.sightings:
            shown = self.complete(run_id, each, carried_ns)
            if shown is not None:
                seen.append(shown)
        if reading.asked:
            self.note(run_id, reading, view.span_id, view.end_ns)
        return seen

    def note(self, run_id: str, reading: Reading, round_id: str, now_ns: int) -> None:
        """Remember what a response asks for: a round of calls, and their arguments."""
        for asked in reading.asked:
            if asked.call_id is not None:
                key = run_id, asked.call_id
                ask = self._asks[key] = _Ask(run_id, round_id, asked.name, now_ns, asked.args)
                self._asks.move_to_end(key)
                self._unread.append(ask)
        if not self._lazily or len(self._unread) >= MAX_ASKED:
            self.settle()
        while len(self._asks) > MAX_ASKED:
            self._asks.popitem(last=False)

    def settle(self, over: Container[str] = ()) -> None:
        """Let go of all arguments. Of runs that are over nobody will ask for them any more."""
        for ask in self._unread:
            if ask.run_id in over:
                ask.args = MISSING
            self._args_key(ask)
        self._unread.clear()

    def complete(self, run_id: str, seen: Sighting, carried_ns: int | None) -> Sighting | None:
        """Add to a call what the response that asked for it has shown.

        Args:
            run_id: the run.
            seen: what a span shows.
            carried_ns: when the request started that carries the result; None for a span of the
                execution.

        Returns:
            None for a result that another span has shown already: a span of the execution, or
            another instrumentation's span of the same request.
        """
        if seen.kind is not _TOOL:
            return seen
        call_id = seen.call_id or self._find(run_id, seen)
        ask = self._asks.get((run_id, call_id)) if call_id else None
        if ask is None:
            return seen
        # An id that was given out again since then stands for another call by now.
        if carried_ns is not None and (ask.told or ask.asked_ns > carried_ns):
            return None
        ask.told = True
        shown = list(seen)  # `_replace` takes far longer
        shown[_CALL_ID] = call_id
        shown[_ROUND] = seen.round or ask.round
        if seen.args is MISSING:
            shown[_ARGS_KEY] = self._args_key(ask)
        return make(Sighting, shown)

    def _args_key(self, ask: _Ask) -> str | None:
        """The digest of the arguments, made when it is asked for first."""
        if ask.args is not MISSING:
            ask.args_key = self._fingerprinter.of_args(ask.args)
            ask.args = MISSING
        return ask.args_key

    def _find(self, run_id: str, seen: Sighting) -> str | None:
        """The id of the call that a span without one shows: of equal arguments, else the oldest."""
        waiting = [
            (call_id, ask)
            for (run, call_id), ask in islice(reversed(self._asks.items()), NEAR)
            if run == run_id and ask.name == seen.action and not ask.told
        ]
        args_key = self._fingerprinter.of_args(seen.args) if waiting else None
        equal = [each for each, ask in waiting if args_key and self._args_key(ask) == args_key]
        return (equal or [call_id for call_id, _ in waiting] or [None])[-1]
