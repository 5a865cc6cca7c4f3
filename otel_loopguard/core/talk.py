"""What the models of one run said, and what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from otel_loopguard.core.dialogue import Dialogue
from otel_loopguard.core.model import Kind, Outcome
from otel_loopguard.core.plans import Plan
from otel_loopguard.core.records import Streak
from otel_loopguard.core.streaks import is_bare
from otel_loopguard.core.turns import Turns
from otel_loopguard.core.window import CAP, Window

if TYPE_CHECKING:
    from otel_loopguard.core.model import Step
    from otel_loopguard.core.records import CallRecord, Moment, Once

_COMPACT: Final = Kind.COMPACT
_MODEL: Final = Kind.MODEL
_TRUNCATED: Final = Outcome.TRUNCATED


class Talk:
    """The utterances of one run's models and what fits into their window.

    Attributes:
        turns: what they said.
        window: what was cut off and compacted; None before anything was.
        dialogue: what agents said to each other since one handed over; None if somebody acted.
        failures: how often in a row the models did not answer at all; None after an answer.
    """

    __slots__ = ("dialogue", "failures", "turns", "window")

    def __init__(self) -> None:
        self.turns = Turns()
        self.window: Window | None = None
        self.dialogue: Dialogue | None = None
        self.failures: Streak | None = None

    def take(self, step: Step, now: Moment) -> bool:
        """Take a step that is no call; whether it goes on with anything."""
        if step.kind is _MODEL:
            return self._hear(step, now)
        if step.kind is _COMPACT:
            self.turns.compacted()
            self.window = self.window or Window()
            return self.window.compacted(step, now)
        self.turns.interrupted(step.start_ns)
        self.dialogue = (self.dialogue or Dialogue()) if step.kind is Kind.HANDOFF else None
        if step.kind is Kind.USER:
            self.failures = None
            if self.window is not None:
                self.window.start_over()
        return False

    def _hear(self, step: Step, now: Moment) -> bool:
        if step.error is not None:
            return self._fail(step, now)
        self.failures = None
        said = step.said
        if step.outcome is _TRUNCATED or (said is not None and said.wrote >= CAP):
            self.window = self.window or Window()
        cut = self.window is not None and self.window.answered(step, now)
        if self.dialogue is not None and said is not None and said.sketch and step.agent:
            self.dialogue.hear(step.agent, said.sketch, now)
            cut |= self.dialogue.circling is not None
        return self.turns.take(step, said, now) or cut

    def _fail(self, step: Step, now: Moment) -> bool:
        """A model did not answer. Which one, and how the failure is worded, is all the same."""
        if self.failures is None:
            self.failures = Streak(now, now, "", 0, 0, 1, 1.0, (), ())
            return False
        self.failures.extend(step, now, 1.0, again=True)
        return True

    def called(self, step: Step, call: CallRecord | Once, now: Moment, *, moved: bool) -> bool:
        """Take a call; whether it goes on with anything.

        Args:
            step: the call.
            call: its record.
            now: when it is.
            moved: whether it brought something new, or may have.
        """
        lost = self.window is not None and self.window.called(step, call, now)
        if step.said is not None:  # it only printed what it was told to
            return self.turns.take(step, step.said, now) or lost
        if isinstance(step.gist, Plan) and step.gist.is_untouched and is_bare(step):
            return lost  # to say what is to be done is to do nothing yet
        self.turns.acted(moved=moved or self.turns.waited(step))
        self.dialogue = None
        return lost

    def condense(self) -> None:
        """Forget all texts but the newest."""
        self.turns.condense()
        self.dialogue = None
