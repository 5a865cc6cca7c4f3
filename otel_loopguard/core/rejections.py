"""How an agent's calls are turned down, in whatever words. Bounded, O(1) a step.

A call is turned down if it is refused, if its tool does not exist or if its arguments do not fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from otel_loopguard.core.model import TURNED_DOWN, Outcome
from otel_loopguard.core.records import WAIT_WEIGHT, remember
from otel_loopguard.core.subject import Named

if TYPE_CHECKING:
    from otel_loopguard.core.model import Step
    from otel_loopguard.core.records import Moment

MAX_TOOLS: Final = 16
NEAR: Final = 10
"""Beyond so many rounds the next rejection is a new story."""
ASKED_WEIGHT: Final = 0.5
"""What one counts that came after a wait, if a model was asked meanwhile: it did not only wait."""
LISTED_WEIGHT: Final = 0.5
"""What a refusal counts that is about another thing than those before."""
ANY: Final = "*"
"""Stands for all tools."""


@dataclass(slots=True)
class Rejected:
    """How often calls were turned down since the last that was not.

    Attributes:
        first, latest: the first and the newest time.
        times: how often; a parallel round counts once.
        weight: the same, less what came after a wait, and what was about another thing.
        same: how often in a row with the same text.
        text: the digest of that text.
        tools: how many tools it was about.
        named: what the arguments named.
        args_key, epoch: the newest one's arguments; how much the run had changed by then.
    """

    first: Moment
    latest: Moment
    times: int = 0
    weight: float = 0.0
    same: int = 0
    text: str | None = None
    tools: frozenset[str] = frozenset()
    named: Named | None = None
    args_key: str | None = None
    epoch: int = 0

    def is_over(self, step: Step, now: Moment, epoch: int) -> bool:
        """Whether this one is a new story: long after, or the same asked again after some work."""
        worked = step.outcome is Outcome.REFUSED and epoch != self.epoch
        asked_again = step.args_key is not None and step.args_key == self.args_key
        return now.iteration - self.latest.iteration > NEAR or (worked and asked_again)

    def add(self, step: Step, now: Moment) -> None:
        """Once more."""
        if self.times and self.latest.iteration == now.iteration:
            return
        self.times += 1
        weight = _weight(step, now, self.latest)
        if step.subject is not None and step.outcome is Outcome.REFUSED:
            self.named = self.named or Named(None)
            weight *= LISTED_WEIGHT if self.named.another(step.subject, in_form=True) else 1.0
        self.weight += weight
        text = step.masked_key or step.result_key
        self.same = self.same + 1 if text is not None and text == self.text else 1
        self.text, self.latest = text, now
        if len(self.tools) < MAX_TOOLS:
            self.tools |= {step.action}


def _weight(step: Step, now: Moment, latest: Moment) -> float:
    if not now.waited(step, latest):
        return 1.0
    return ASKED_WEIGHT if now.model_ns > latest.model_ns else WAIT_WEIGHT


class Rejections:
    """The rejections of one agent's calls by tool, and of all tools together.

    Attributes:
        like: those like the newest step's, of its tool and of any; None if it was not turned down.
    """

    OUTCOMES: ClassVar = TURNED_DOWN

    __slots__ = ("_known", "like")

    def __init__(self) -> None:
        self.like: tuple[Rejected, Rejected] | None = None
        self._known: dict[tuple[Outcome, str], Rejected] = {}

    def take(self, step: Step, now: Moment, *, moved: bool, epoch: int) -> None:
        """Take one call.

        Args:
            step: the call.
            now: when it is.
            moved: whether it brought something new.
            epoch: how many steps have changed something.
        """
        self.like = None
        if step.outcome in TURNED_DOWN:
            its_own, of_any = (self._add(step, now, tool, epoch) for tool in (step.action, ANY))
            self.like = its_own, of_any
            return
        failed = step.outcome is Outcome.ERROR  # in which words a gate says no is not always known
        for outcome in TURNED_DOWN - {Outcome.REFUSED} if failed else TURNED_DOWN:
            self._known.pop((outcome, step.action), None)
        if moved:
            self._known.pop((Outcome.REFUSED, ANY), None)

    def _add(self, step: Step, now: Moment, tool: str, epoch: int) -> Rejected:
        key = (step.outcome, tool)
        known = self._known.get(key)
        if known is None or known.is_over(step, now, epoch):
            known = Rejected(now, now)
        remember(self._known, key, known, 2 * MAX_TOOLS)
        known.add(step, now)
        known.args_key, known.epoch = step.args_key, epoch
        return known
