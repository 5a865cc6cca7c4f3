"""One task that is passed on from agent to agent, and nobody does it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from otel_loopguard.core.model import Kind
from otel_loopguard.core.sizes import SHORT
from otel_loopguard.core.tasks import ALIKE, MIN_WORDS

if TYPE_CHECKING:
    from otel_loopguard.core.model import Step
    from otel_loopguard.core.records import Moment
    from otel_loopguard.core.tasks import Task

# Before Python 3.12 it takes long to read a member from its enum.
_HANDOFF: Final = Kind.HANDOFF
_TOOL: Final = Kind.TOOL


class Passing(NamedTuple):
    """How a task is passed on.

    Attributes:
        key, task: the first instruction's digest, and what the newest asks for, if that was read.
        hops: how many agents in a row have passed it on.
        passer: who did so last.
        holder: who has it now; None until somebody acts.
        first: the first hop.
    """

    key: str
    task: Task | None
    hops: int
    passer: str | None
    holder: str | None
    first: Moment

    def is_(self, key: str, task: Task | None) -> bool:
        """Whether it is this one that is passed on: the same text, or nearly the same words."""
        if key == self.key:
            return True
        return task is not None and self.task is not None and task.same(self.task, ALIKE)


class Baton:
    """The task that is under way in one run and in those nested in it.

    Attributes:
        passed: the task that the newest step passed on; None if it did not.
    """

    __slots__ = ("_passing", "passed")

    def __init__(self) -> None:
        self.passed: Passing | None = None
        self._passing: Passing | None = None

    def drop(self) -> None:
        """Something is done about it, or it is void."""
        self._passing = None

    def may_pass(self, agent: str | None, size: int | None) -> bool:
        """Whether a call may pass the task on: by who has it, with no more than a short answer."""
        passing = self._passing
        if passing is None or (size or 0) > SHORT:
            return False
        return passing.holder == agent or (passing.holder is None and passing.passer != agent)

    def taken_by(self, agent: str) -> None:
        """An agent acts that it was passed on to."""
        if self._passing is not None:
            self._passing = self._passing._replace(holder=agent)

    def take(self, step: Step, now: Moment) -> None:
        """Take a step that may pass a task on.

        A hand-off by the one who has just passed it on is no other hop: it is how the first is seen
        a second time, whatever it says.
        """
        passing, key, agent = self._passing, step.args_key, step.agent
        if key is None or (step.kind is _TOOL and (step.size or 0) > SHORT):
            self._passing = None
        elif passing is not None and passing.holder == agent and passing.is_(key, step.task):
            passing = passing._replace(
                task=step.task or passing.task, hops=passing.hops + 1, passer=agent, holder=None
            )
            self._passing = passing
            if passing.task is not None and len(passing.task.words) >= MIN_WORDS:
                self.passed = passing
        elif passing is not None and self._is_seen_again(passing, step):
            self._passing = passing._replace(task=passing.task or step.task)
        else:
            self._passing = Passing(key, step.task, 1, agent, None, now)

    def _is_seen_again(self, passing: Passing, step: Step) -> bool:
        just_passed = passing.holder is None and passing.passer == step.agent
        return just_passed and step.kind is _HANDOFF
