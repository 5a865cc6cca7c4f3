"""The values that travel along the line: Sighting -> Step -> Observation (with Findings).

A `Sighting` is what somebody saw, content included; it lives for one call. A `Step` is the same
reduced to digests and numbers. A `Finding` is a verdict, an `Observation` the answer to one
sighting. Nobody changes them. Times are nanoseconds since the epoch, digests 16 hex digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from otel_loopguard.core.plans import Plan
    from otel_loopguard.core.ranges import Extent
    from otel_loopguard.core.said import Said
    from otel_loopguard.core.subject import Subject
    from otel_loopguard.core.tasks import Task
    from otel_loopguard.core.traits import Traits

SpanRef = tuple[int, int]
"""How a step names its span: trace id and span id, as numbers."""


class Missing(Enum):
    """The type of `MISSING`: a value that was not captured, as opposed to one that is None."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING
"""Not captured. It has no digest, so it is never equal to anything, not even to another one."""


class Word(str, Enum):
    """A word of ours, hashed as the text that it is: an enum's own hash takes far longer."""

    __hash__ = str.__hash__


class Kind(Word):
    """What kind of action a step is."""

    TOOL = "tool"
    MODEL = "model"
    AGENT = "agent"  # a sub-agent's whole invocation, as one step of its parent
    HANDOFF = "handoff"
    USER = "user"
    COMPACT = "compact"
    RETRY = "retry"  # the provider replayed the step before
    EFFECT = "effect"  # the world changed from outside


class Outcome(Word):
    """What came of a step; the value is what `loopguard.outcome` says."""

    OK = "ok"
    ERROR = "error"
    EMPTY = "empty"
    PENDING = "pending"
    ACK = "ack"  # a bare acknowledgement: done, saved, true
    REFUSED = "refused"
    UNKNOWN_TOOL = "unknown_tool"
    INVALID_ARGS = "invalid_args"
    TRUNCATED = "truncated"
    UNKNOWN = "unknown"  # the result was not captured


TURNED_DOWN: Final = frozenset({Outcome.REFUSED, Outcome.UNKNOWN_TOOL, Outcome.INVALID_ARGS})
"""Outcomes of a call that was not let through."""
FAILED: Final = TURNED_DOWN | {Outcome.ERROR}
"""Outcomes that say that the action did not do what was asked."""


class Source(Word):
    """Who saw a step. One call may be seen by several; it counts once."""

    HOOK = "hook"  # a wrapper around the execution, or a decorator
    MESSAGES = "messages"  # a result that a model request carries
    SPAN = "span"  # a span that someone else made
    FILE = "file"  # a recorded trace


class Pattern(Word):
    """The deadlock patterns; the value is what `loopguard.pattern` says."""

    HARD_LOOP = "hard_loop"
    TOOL_OSCILLATION = "tool_oscillation"
    RESULT_STAGNATION = "result_stagnation"
    RETRY_STORM = "retry_storm"
    TOOL_HALLUCINATION = "tool_hallucination"
    GUARDRAIL_LOOP = "guardrail_loop"
    REFLECTION_PARALYSIS = "reflection_paralysis"
    CONTEXT_ROT = "context_rot"
    TRUNCATION_LOOP = "truncation_loop"
    CONSTRAINT_DRIFT = "constraint_drift"
    DELEGATION_LOOP = "delegation_loop"
    ITERATION_BUDGET = "iteration_budget"


class Severity(IntEnum):
    """How bad: `info` never pages, `warning` may page by day, `critical` by night."""

    INFO = 1
    WARNING = 2
    CRITICAL = 3

    @property
    def label(self) -> str:
        """The lower-case word that telemetry carries."""
        return self.name.lower()


class Status(Word):
    """The health of a run; the value is what `loopguard.status` says."""

    HEALTHY = "healthy"
    REPEATING = "repeating"  # an equal call with an equal result again, or a second equal lap
    STAGNANT = "stagnant"  # a tool's third equal result in a row, whatever its arguments
    DEADLOCKED = "deadlocked"  # a warning or worse was spoken and the run has not recovered


class Recorded(NamedTuple):
    """The digests of a result and its size, as a `Step` has them, from when it was seen first."""

    result_key: str | None
    masked_key: str | None
    size: int | None


class Sighting(NamedTuple):
    """One action of a run as somebody saw it, content included. Lives for one call only.

    Attributes:
        kind, action, source: what kind of action, its tool's, model's or agent's name, who saw it.
        args: the arguments: a mapping, any object, or JSON text as models write it.
        args_key: their digest, where the seer has made it already (a tool may change them).
        result: what the action gave back, for a model its text; of a failure its text, if known.
        error: the class of the failure (an exception's qualified name, or "error"); None if fine.
        outcome: set where the seer knows more than the values tell (an unknown tool, say).
        call_id, round: the ids that attempts of a call share, and calls of one model response.
        agent, span: the agent's name; the span that shows the action.
        start_ns, end_ns: when it started and ended; 0 if unknown.
        tokens: input plus output tokens of a model call; what a compaction began with.
        thought, finish: a model's reasoning, as far as shown; why it stopped, in its own word.
        output_tokens: how many of `tokens` the model wrote; of a compaction's, how many it left.
        recorded: the result's digests, where they were made already: for a span of ours in a file.
        acts, parent: whether a response asks for a tool; the run around this one, if any.
    """

    kind: Kind
    action: str
    source: Source = Source.HOOK
    args: object = MISSING
    args_key: str | None = None
    result: object = MISSING
    error: str | None = None
    outcome: Outcome | None = None
    call_id: str | None = None
    round: str | None = None
    agent: str | None = None
    start_ns: int = 0
    end_ns: int = 0
    tokens: int = 0
    span: SpanRef | None = None
    thought: object = MISSING
    finish: str | None = None
    output_tokens: int = 0
    recorded: Recorded | None = None
    acts: bool = False
    parent: str | None = None


@dataclass(slots=True)  # a tuple's fields take longer to read, a frozen class longer to make
class Step:
    """A sighting without its content: all that a run remembers of it.

    A key is None where nothing was captured. `masked_key` and `words` are of another result of the
    call, `loose_key` is a weaker `args_key`, `subject` what a call names that brought no news.
    `fresh`: call and result are new, as far as was known, and the result says enough to be news.
    """

    kind: Kind
    action: str
    source: Source
    args_key: str | None
    result_key: str | None
    masked_key: str | None = None
    outcome: Outcome = Outcome.UNKNOWN
    error: str | None = None
    call_id: str | None = None
    round: str | None = None
    agent: str | None = None
    start_ns: int = 0
    end_ns: int = 0
    tokens: int = 0
    size: int | None = None
    span: SpanRef | None = None
    said: Said | None = None
    target: str | None = None
    task: Task | None = None
    loose_key: str | None = None
    words: tuple[int, ...] | None = None
    gist: Extent | Plan | None = None
    traits: Traits | None = None
    subject: Subject | None = None
    fresh: bool = False


class Finding(NamedTuple):
    """What a detector says about a run at one step.

    Attributes:
        pattern, severity: which deadlock, and how bad it is by now.
        identity: what makes this loop the same loop later on (the same calls in any rotation).
        period, repeats: how many steps one lap has, and how many laps there were so far.
        evidence: one sentence without any content.
        suggested_action: what helps first, as a word of the recovery table.
        first_span, first_iteration: those of the first step (one that begins anew is a relapse).
        action, args_key: the tool and the arguments that come again, where they are the same.
        wasted_calls, wasted_tokens, wasted_seconds: calls that brought nothing (all but the first
            lap); tokens spent since the first repeat; wall time since the end of the first lap.
        covers: the calls that go on with it: action (`*` for any), digest of the arguments or None.
    """

    pattern: Pattern
    severity: Severity
    identity: str
    period: int
    repeats: int
    evidence: str
    suggested_action: str
    first_span: SpanRef | None = None
    first_iteration: int = 0
    action: str | None = None
    args_key: str | None = None
    wasted_calls: int = 0
    wasted_tokens: int = 0
    wasted_seconds: float = 0.0
    covers: frozenset[tuple[str, str | None]] = frozenset()


class Utterance(NamedTuple):
    """One time that a finding speaks: one event, one increment of the counter, exported once."""

    finding: Finding
    finding_id: str
    report_no: int
    iteration: int


class Stuck(NamedTuple):
    """The worst that is wrong with a run right now: where the gauge of stuck runs counts it."""

    pattern: Pattern
    severity: Severity
    agent: str | None


class StuckChange(NamedTuple):
    """A run got stuck, worse, recovered or went away: `before` leaves the gauge, `after` enters."""

    run: str
    before: Stuck | None
    after: Stuck | None


class RunEnd(NamedTuple):
    """A run that is over; `reason` is answer, closed, error, expired, evicted or exit."""

    run: str
    agent: str | None
    iterations: int
    reason: str
    stuck: Stuck | None


@dataclass(slots=True)
class Observation:
    """What the guard answers to one sighting.

    Attributes:
        step, counted: its digests; whether it was a step of its own, not seen before or an attempt.
        iteration, consecutive_same_tool: 1-based: its tool round in the run, the tool's streak.
        same_args_seen, repeat_count: whether its call was there before; how often with its result.
        status, utterances: the run's health after this step; findings that speak now.
        changes, ended: runs that moved within the gauge of stuck runs; those that are over.
    """

    step: Step
    counted: bool
    iteration: int
    consecutive_same_tool: int
    same_args_seen: bool
    repeat_count: int
    status: Status
    utterances: tuple[Utterance, ...] = ()
    changes: tuple[StuckChange, ...] = ()
    ended: tuple[RunEnd, ...] = ()
