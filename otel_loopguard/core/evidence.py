"""What a run has learned and what it has only repeated: its calls, its tools, their results.

Evidence comes before counts. An equal call with an equal result is a repeat and a changed result is
progress. A repeat counts less when other things were learned since, when the results are equal but
for volatile values, when it came after a wait, and when its result was not captured. What changed
something (a new call that was only acknowledged) begins a new epoch: repeats count from there on.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from otel_loopguard.core.cycles import MAX_ROUND
from otel_loopguard.core.declared import alters
from otel_loopguard.core.model import FAILED, Outcome
from otel_loopguard.core.names import changes
from otel_loopguard.core.records import CallRecord, Moment, Once, Recent
from otel_loopguard.core.returned import Returned
from otel_loopguard.core.streaks import Tools, is_bare
from otel_loopguard.core.tours import Tours
from otel_loopguard.core.tuples import make
from otel_loopguard.core.weighing import MAX_ROUNDS, compare, weigh
from otel_loopguard.core.weights import LONG_WEIGHT

if TYPE_CHECKING:
    from otel_loopguard.core.cycles import Cycle
    from otel_loopguard.core.model import Step

MAX_CALLS: Final = 256
MAX_RESULTS: Final = 256
MAX_SKETCHES: Final = 8

# Before Python 3.12 it takes long to read a member from its enum.
_EMPTY: Final = Outcome.EMPTY
_OK: Final = Outcome.OK
_NOTHING_NEW: Final = FAILED | {Outcome.PENDING}


class Evidence:
    """The records of one run's calls and tools, and how much it has learned.

    Attributes:
        calls, results: the calls that came, and what each tool came to.
        tools: how often in a row each tool came to the same end.
        progress: how many steps brought something new, or changed something.
        moved: whether the newest call is one of them.
        epoch: how many steps changed something.
        changed: whether the newest call is one of them.
        alike: whether the newest call's result is nearly one that it gave before.
        loose: the record of the calls nearly the same as the newest, if there were some before.
        replays: how often the provider played something again.
        prompted: the first round since a model worked.
        vague: whether the newest call's result is one that its tool did not give before.
        tour: the long cycle of which the newest call begins another lap, other steps or not.
    """

    __slots__ = (
        "_heard", "_round", "_settled", "_settled_epoch",
        "_sketched", "_tours", "alike", "calls", "changed", "epoch", "loose", "moved", "progress",
        "prompted", "replays", "results", "tools", "tour", "vague",
    )  # fmt: skip

    def __init__(self) -> None:
        self.progress = self.epoch = 0
        self.moved = self.changed = self.vague = False
        self.replays = 0
        self.loose: CallRecord | None = None
        self.alike = False
        self._heard = 0
        self.prompted = -1
        self._tours: Tours | None = None
        self.tour: Cycle | None = None
        self._sketched: deque[CallRecord] = deque()
        self._settled = self._settled_epoch = 0
        self._round: list[tuple[str, str] | None] = []
        self.calls: Recent[tuple[str, str], CallRecord | Once] = Recent(MAX_CALLS)
        self.tools = Tools()
        self.results: Recent[tuple[str, str], bool] = Recent(MAX_RESULTS)

    def clear(self) -> None:
        """Forget the records: what comes next repeats nothing."""
        self._tours = None
        self._round.clear()
        self._sketched.clear()
        self.calls.clear()
        self.tools.clear()
        self.results.clear()

    def condense(self, limit: int) -> None:
        """Forget all but the newest records."""
        self._tours = None
        while self._sketched:
            self._sketched.pop().sketch = None
        self.calls.condense(limit)
        self.tools.condense(limit)
        self.results.condense(limit)

    def see_change(self) -> None:
        """Something else has changed the world."""
        self.progress += 1
        self.epoch += 1

    def earlier(self, action: str, args_key: str | None) -> CallRecord | Once | None:
        """What is known of a call; None if it did not come yet, or is unknown."""
        if args_key is None:
            return None
        return self.calls.get((action, args_key))

    def gave(self, action: str, result_key: str) -> bool:
        """Whether a tool has come to a result before."""
        return (action, result_key) in self.results

    def take_fresh(
        self, step: Step, key: tuple[str, str], end: tuple[str, str], now: Moment, model_ns: int
    ) -> Once:
        """What `count_call` comes to for a call that is new, as its result is, and opens a round.

        Its result says enough to be news, so that none of the other questions arise. `key` is the
        call, `end` what it came to, `model_ns` that of `now`.
        """
        calls, results = self.calls, self.results
        if len(calls) >= MAX_CALLS:
            calls.condense(MAX_CALLS // 2)
        if len(results) >= MAX_RESULTS:
            results.condense(MAX_RESULTS // 2)
        if len(self._round) <= 1 and model_ns == self._heard:
            self.loose, self.tour, self._round = None, None, [key]
        else:
            self._begin(key, now, opens=True)
        self.moved = results[end] = True
        self.changed = changed = changes(key[0]) if step.traits is None else alters(step)
        self._settled = self.progress = progress = self.progress + 1
        self._settled_epoch = self.epoch = epoch = self.epoch + changed
        calls[key] = once = make(Once, (key[1], end[1], now, progress, epoch, self.replays))
        return once

    def count_call(self, step: Step, now: Moment, *, again: bool, opens: bool) -> CallRecord:
        """Take one call, which may be another attempt at the newest one (`again`).

        Returns its record. With `opens` it is the first of a round.
        """
        key = None if step.args_key is None else (step.action, step.args_key)
        self._begin(key, now, opens=opens)
        self.alike = False
        result_key = step.result_key
        self.vague = result_key is not None and (step.action, result_key) not in self.results
        call = self._count(key, step, now, again=again)
        loose = None
        if step.loose_key is not None:
            call.loose_key = step.loose_key
            loosely = (step.action, f"~{step.loose_key}")
            loose = self._count(loosely, step, now, again=again)
            self._join(loosely)
        self.loose = None if loose is None or loose.seen == 1 else loose
        self._learn(step, is_new=call.seen == 1 and (loose is None or loose.repeats == 1))
        self._settled, self._settled_epoch = self.progress, self.epoch
        for each in (call, loose):
            if each is not None:
                each.progress, each.epoch, each.replays = self.progress, self.epoch, self.replays
        return call

    def _begin(self, key: tuple[str, str] | None, now: Moment, *, opens: bool) -> None:
        """A call is taken: of a new round, or of the newest."""
        self.loose = self.tour = None
        if opens:
            if len(self._round) > 1:
                self._settle_round()
            self._round = []
        self._join(key)
        if now.model_ns != self._heard:
            self._heard, self.prompted = now.model_ns, now.iteration

    def _join(self, key: tuple[str, str] | None) -> None:
        if len(self._round) < MAX_ROUND:
            self._round.append(key)

    def _known(self, key: tuple[str, str]) -> CallRecord | None:
        """The record of a call, made from what is kept of one that came once."""
        call = self.calls.get(key)
        if isinstance(call, Once):
            call = self.calls[key] = call.record()
        return call

    def _count(
        self, key: tuple[str, str] | None, step: Step, now: Moment, *, again: bool
    ) -> CallRecord:
        calls = self.calls
        call = None if key is None else self._known(key)
        if call is None:
            seen, result_key, masked_key = 0 if again else 1, step.result_key, step.masked_key
            call = CallRecord(now, now, seen, 1, 1, 1.0, result_key, masked_key, result_key)
        else:
            self._recount(call, step, now, again=again)
        if key is not None:
            calls.put(key, call)
        return call

    def _settle_round(self) -> None:
        """The calls of one round come at once: what one learned did not come after the others."""
        for key in self._round:
            call = key and self._known(key)
            if call is not None and call.repeats == 1:
                call.progress, call.epoch = self._settled, self._settled_epoch

    def _recount(self, call: CallRecord, step: Step, now: Moment, *, again: bool) -> None:
        """Take another occurrence of a call that is known."""
        result_key, masked_key = step.result_key, step.masked_key
        weight = compare(self, call, step)
        self.vague = self.vague and weight != LONG_WEIGHT
        if not again:
            call.seen += 1
        if weight is None:
            by_itself = call.progress == self.progress and call.epoch == self.epoch
            call.revivals += by_itself and (call.same > 1 or not self.vague)
        if weight is None or not weight:
            call.same = 1
        if weight is None:
            call.restart(now)
            call.begun, call.returns = now, 1
            loosely = masked_key is not None or step.words is not None
            call.like = f"~{masked_key or result_key}" if loosely else result_key
        elif not again and call.latest.iteration != now.iteration:
            call.same += weight > 0.0
            if weight and (step.loose_key is None or call.loose_key is not None):
                self._go_round(call, step, now)
            weigh(self, call, step, now, weight)
        if result_key != call.result_key or masked_key is not None:
            call.masked_key = masked_key
        call.result_key = result_key
        call.latest = now

    def sketch(self, call: CallRecord) -> Returned:
        """The words of a call's results; those of the call that was looked at first are dropped."""
        if call.sketch is None:
            call.sketch = Returned()
            self._sketched.append(call)
            if len(self._sketched) > MAX_SKETCHES:
                self._sketched.popleft().sketch = None
        return call.sketch

    def _go_round(self, call: CallRecord, step: Step, now: Moment) -> None:
        """Take an equal result as a step of a long lap, if it says something."""
        far = now.iteration - call.latest.iteration > MAX_ROUNDS
        if far or call.epoch != self.epoch or is_bare(step) or now.waited(step, call.latest):
            call.begun, call.returns = now, 1
            return
        call.begun = call.begun or call.first
        tours = self._tours = self._tours or Tours()
        element = step.action, step.loose_key or step.args_key or "", call.like or ""
        self.tour = tours.take(call, element, now, self.epoch)

    def _learn(self, step: Step, *, is_new: bool) -> None:
        """Whether a step moved the run on, and whether it changed something.

        A result that is new to its tool is news. A new call whose result says little, or nothing at
        all, may have changed something; it surely has when other arguments got the same short
        answer, or when its name says so.
        """
        self.moved = self.changed = False
        result_key, outcome = step.result_key, step.outcome
        news = result_key is not None and self._is_new(step.action, result_key)
        if step.masked_key is not None:
            news = self._is_new(step.action, step.masked_key) and news
        if outcome in _NOTHING_NEW or self.alike:
            return
        self.moved = news
        if is_new:
            bare = outcome is _EMPTY or is_bare(step)
            self.moved = news or bare or result_key is None
            if bare and (outcome is not _OK or not news):
                self.changed = step.traits is None or not step.traits.idempotent
            elif self.moved:
                self.changed = alters(step)
        self.progress += self.moved
        self.epoch += self.changed

    def _is_new(self, action: str, result_key: str) -> bool:
        end = (action, result_key)
        known = end in self.results
        self.results.put(end, True)  # noqa: FBT003 - a set that knows its order
        return not known
