"""Guard: the runs of this process, and the one way in: `observe` a sighting, get an observation."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from otel_loopguard.core.action import Action
from otel_loopguard.core.advice import advise, answered
from otel_loopguard.core.alerts import said_in_round
from otel_loopguard.core.closing import Closing, close_all
from otel_loopguard.core.decision import GO, Decision, asked_about, let_stand
from otel_loopguard.core.declared import Call, Declared
from otel_loopguard.core.detectors.declared_limit import DeclaredLimit
from otel_loopguard.core.digest import digest
from otel_loopguard.core.model import (
    Finding,
    Kind,
    Observation,
    Pattern,
    Severity,
    Sighting,
    Status,
    Step,
    Stuck,
    StuckChange,
    Utterance,
)
from otel_loopguard.core.records import Alert, Spoken
from otel_loopguard.core.runs import Runs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from otel_loopguard.core.detectors.base import Detector
    from otel_loopguard.core.episode import Episode
    from otel_loopguard.core.fingerprint import Fingerprinter
    from otel_loopguard.core.handoffs import Handoffs
    from otel_loopguard.core.recovery import Remedy
    from otel_loopguard.core.traits import Traits

# Before Python 3.12 it takes long to read a member from its enum.
_TOOL: Final = Kind.TOOL
_DEADLOCKED: Final = Status.DEADLOCKED
_INFO: Final = Severity.INFO
_LIMIT: Final = DeclaredLimit()
_NOTHING: Final = Closing()


def _never(_: str | None) -> bool:
    return False


class Guard:
    """Keeps one `Episode` a run, runs the detectors, and decides which finding speaks now.

    Thread-safe. Bounded: beyond `max_runs` the run that was silent longest is dropped.

    Args:
        detectors, fingerprinter: what to look for; what makes the digests.
        max_runs, ttl_ns: how many runs are remembered at once; the silence that ends one.
        ignored_tools, muted: tools whose calls are no steps; patterns that are never reported.
        action, actions: what is done about a loop; the same for single patterns.
        tools: what is declared of tools, by their names.
    """

    def __init__(
        self,
        detectors: Sequence[Detector],
        fingerprinter: Fingerprinter,
        *,
        max_runs: int = 10_000,
        ttl_ns: int = 900_000_000_000,
        ignored_tools: frozenset[str] = frozenset(),
        muted: frozenset[Pattern] = frozenset(),
        action: Action = Action.OBSERVE,
        actions: Mapping[Pattern, Action] | None = None,
        tools: Mapping[str, Traits] | None = None,
    ) -> None:
        self.fingerprinter = fingerprinter
        self._detectors = tuple(detectors)
        self._unbidden = tuple(
            each for each in detectors if not getattr(each, "only_repeats", False)
        )
        self._ttl_ns = ttl_ns
        self._ignored, self._muted = ignored_tools, muted
        chosen = dict(actions or {})
        self._mode: Callable[[Pattern], Action] = lambda pattern: chosen.get(pattern, action)
        self.decides = action is not Action.OBSERVE or bool(chosen)
        self._declared = Declared(tools or {}, fingerprinter.of_text)
        self._watch_limits()
        self._runs = Runs(max_runs)
        self._lock = threading.RLock()  # a signal handler or finalizer may come in between

    def after_fork(self) -> None:
        """In a forked child: a lock that another thread held would never be released."""
        self._lock = threading.RLock()

    def declare(self, action: str, traits: Traits) -> bool:
        """Somebody declares something of a tool, each time that he calls it; whether it is new."""
        if self._declared.says(action, traits):
            return False
        with self._lock:
            self._declared.add(action, traits)
            self._watch_limits()
        return True

    def _watch_limits(self) -> None:
        if self._declared.limits and _LIMIT not in self._detectors:
            self._detectors, self._unbidden = (
                (*each, _LIMIT) for each in (self._detectors, self._unbidden)
            )

    def observe(self, run: str, sighting: Sighting, agent: str | None = None) -> Observation:
        """Take one sighting of a run, or a tuple of its fields; every step comes through here."""
        before = self._runs.awake(run) or self._runs.get(run)
        kind, action, parent = sighting[0], sighting[1], sighting[-1]  # by name it takes longer
        handoffs = self._shared(parent) if before is None else before.handoffs
        traits = None
        if kind is _TOOL:
            traits = self._declared.tools.get(action)
        else:
            self._declared.hear(run, kind)
        step = digest(self.fingerprinter, before, handoffs, traits, sighting, agent)
        with self._lock:
            if before is not None and self._runs.awake(run) is before:  # as most often
                self._runs.touch(run)
                episode, lost = before, None
            else:
                episode, lost = self._runs.wake(run, agent)
            if parent is not None and episode.handoffs is None:
                episode.handoffs = self._shared(parent)
            changes, ended = _NOTHING if lost is None else close_all([lost], "evicted")
            counted, spoken = False, ()
            if self._ignored and step.action in self._ignored and step.kind is _TOOL:
                episode.touch(step)
            else:
                stuck = episode.stuck
                counted = episode.add(step)
                if episode.repeats or self._unbidden or episode.standing is not None:
                    spoken = self._judge(episode, step, counted)
                if stuck is not None:
                    episode.recover()
                if episode.stuck is not stuck:
                    changes = (*changes, StuckChange(run, stuck, episode.stuck))
            call = episode.call
            seen, same = (0, 0) if call is None else (call.seen, call.same)
            return Observation(
                step, counted, episode.iteration, episode.consecutive, seen > 1, same,
                episode.health if episode.stuck is None else _DEADLOCKED, spoken, changes, ended,
            )  # fmt: skip

    def lets_go(self, run: str, action: str) -> bool:
        """Whether all calls of a tool are made right now: of most there is nothing to decide."""
        episode = self._runs.awake(run) or self._runs.get(run)
        if episode is not None and episode.standing is None and action in episode.asked:
            return action not in self._declared.tools  # as most often
        if action in self._ignored:
            return True
        stands = episode is not None and asked_about(episode, action) is not None
        return not stands and action not in self._declared.tools

    def decide(
        self,
        run: str,
        action: str,
        args_key: str | None,
        call_id: str | None = None,
        at_ns: int = 0,
        *,
        asks: bool = False,
    ) -> Decision:
        """What is to become of a tool call before it is made; O(1). See `Declared.decide`."""
        if not self.decides or self.lets_go(run, action):
            return GO
        episode, traits = self._runs.get(run), self._declared.tools.get(action)
        standing = None if episode is None else episode.standing
        call = Call(run, action, args_key, call_id)
        with self._lock:
            return self._declared.decide(call, traits, standing, self._mode, at_ns, asks=asks)

    def refuse(self, run: str, action: str, args_key: str | None, decision: Decision) -> None:
        """A human was asked about a call, and did not allow it."""
        with self._lock:
            self._declared.refuse(Call(run, action, args_key, None), decision)

    def advise(
        self, run: str, can: Callable[[], frozenset[Remedy] | None], *, asks: bool = False
    ) -> Decision:
        """What is to become of a model request before it is sent; O(1). See `advice.advise`.

        Args:
            run: the run.
            can: says what can be done about the request, None if it is to be let alone; it is asked
                only where a loop stands.
            asks: whether a human can be asked about what cannot be undone.
        """
        episode = self._runs.get(run) if self.decides else None
        if episode is None or episode.standing is None or not episode.standing.any:
            return GO
        if (able := can()) is None:
            return GO
        with self._lock:
            asked = self._declared.irreversible if asks else _never
            return advise(episode.standing, able, self._mode, asked)

    def answer(self, run: str, decision: Decision, *, allowed: bool) -> None:
        """A human was asked about a request: whether the run may go on."""
        episode = self._runs.get(run)
        if episode is not None and episode.standing is not None:
            with self._lock:
                answered(episode.standing, decision, allowed=allowed)

    def relent(self, run: str) -> None:
        """What stands in a run is over: its application brings it to an end by itself."""
        with self._lock:
            episode = self._runs.get(run)
            if episode is not None and episode.standing is not None:
                episode.standing.relent()

    def peek(self, run: str) -> Episode | None:
        """What is remembered of a run, to look at. Takes no lock."""
        return self._runs.get(run)

    def is_stuck(self, run: str) -> bool:
        """Whether a run is stuck right now. Takes no lock: each span that starts asks."""
        return (episode := self._runs.get(run)) is not None and episode.stuck is not None

    def end(self, run: str, reason: str, *, keep: bool = False) -> Closing:
        """A run is over; forget it.

        With `keep` it is over for now, but remembered until it expires: it may be gone on with.
        """
        with self._lock:
            if not keep:
                self._declared.forget(run)
            episode = self._runs.get(run) if keep else self._runs.pop(run)
            return close_all([episode] if episode else [], reason)

    def expire(self, now_ns: int) -> Closing:
        """Forget the runs that have been silent for longer than the time to live."""
        with self._lock:
            return close_all(self._runs.expire(now_ns, self._ttl_ns), "expired")

    def _shared(self, parent: str | None) -> Handoffs | None:
        """What is handed over in a run concerns those that are nested in it too."""
        outer = None if parent is None else self._runs.get(parent)
        if outer is None:
            return None
        with self._lock:
            return outer.hand_over()

    def _judge(self, episode: Episode, step: Step, counted: bool) -> tuple[Utterance, ...]:  # noqa: FBT001 - a name takes time
        spoken: tuple[Utterance, ...] = ()
        if not counted and episode.call is None:
            return spoken
        held: list[Finding] = []
        for detector in self._detectors if episode.repeats else self._unbidden:
            finding = detector(episode, step)
            if finding is None or finding.severity is _INFO or finding.pattern in self._muted:
                continue
            episode.good = 0
            held.append(finding)
            utterance = self._speak(episode, finding, step)
            if utterance is not None:
                spoken = (*spoken, utterance)
        if self.decides:
            let_stand(episode, step, held)
        return spoken

    def _speak(self, episode: Episode, finding: Finding, step: Step) -> Utterance | None:
        """A finding speaks when it is new, gets worse, relapses, or has doubled its repeats."""
        alerts = episode.told(finding.identity)
        said = alerts.get(finding.identity)
        if said is None:
            finding_id = self.fingerprinter.of_text(f"{episode.run}:{finding.identity}")
            said = Alert(finding_id, finding.severity, finding.repeats, finding.first_iteration)
            alerts.put(finding.identity, said)
        else:
            relapse = finding.first_iteration > said.first_iteration
            worse = finding.severity > said.severity
            if not (relapse or worse or finding.repeats >= 2 * said.repeats):
                return None
            said.relapsed = said.relapsed or relapse
            said.severity, said.repeats = finding.severity, finding.repeats
            said.first_iteration = finding.first_iteration
        if episode.stuck is None or finding.severity > episode.stuck.severity:
            episode.stuck = Stuck(finding.pattern, finding.severity, episode.agent or step.agent)
        if said_in_round(episode.spoken.get(finding.pattern), episode.iteration, finding):
            return None
        said.report_no += 1
        episode.spoken[finding.pattern] = Spoken(
            episode.iteration, finding.severity, finding.identity
        )
        return Utterance(finding, said.finding_id, said.report_no, episode.iteration)
