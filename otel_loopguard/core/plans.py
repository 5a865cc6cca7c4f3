"""Lists of what is to do, as an agent writes them down: whether they move on.

A plan is a list of items in a call's arguments, each with one longer text and some short fields.
Which of those is a status, and which word means done, is not known; nor does it matter: an item
that comes into a state in which it was not before moves on.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast

from otel_loopguard.core.model import FAILED, Outcome
from otel_loopguard.core.records import remember
from otel_loopguard.core.sizes import SHORT
from otel_loopguard.core.turns import Spell, longer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from otel_loopguard.core.evidence import Evidence
    from otel_loopguard.core.model import Step
    from otel_loopguard.core.records import Moment

MAX_TOOLS: Final = 4
MAX_ITEMS: Final = 64
MAX_STATES: Final = 5
"""An item that was in so many states is in another one without moving on."""
ASIDE_WEIGHT: Final = 0.5
"""What a plan counts that does not move on, though something else was learned since."""
_NEUTRAL: Final = FAILED | {Outcome.PENDING}
_MAX_STATE: Final = 24
_STATELESS: Final = hash(())
_MAX_ARGS: Final = 16_384


class Plan(NamedTuple):
    """A list of items, each as a hash of its text, and the hash of its state."""

    states: dict[int, int]
    kind: Literal["plan"] = "plan"

    @property
    def is_untouched(self) -> bool:
        """Whether all its items are in one and the same state: nothing is begun."""
        return len({*self.states.values()} | {_STATELESS}) == 2


def plan_of(args: object) -> Plan | None:
    """Returns the plan that a call writes down; None if its arguments hold no such list."""
    if type(args) is str and '":' in args[: _MAX_STATE * 2] and len(args) <= _MAX_ARGS:
        args = _parsed(args) if "{" in args[1:] else None
    if type(args) is not dict:
        return None
    for value in cast("dict[str, Any]", args).values():
        items = cast("list[Any]", value) if type(value) is list else ()
        if 2 <= len(items) <= MAX_ITEMS and all(type(each) is dict for each in items):
            return _plan(items)
    return None


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _plan(items: Sequence[dict[str, Any]]) -> Plan | None:
    """The plan of items that have one field in common that is the longest text."""
    lengths: dict[str, int] = {}
    for item in items:
        for key, value in item.items():
            if type(value) is str:
                lengths[key] = lengths.get(key, 0) + len(value)
    if not lengths:
        return None
    name = max(lengths, key=lambda key: lengths[key])
    states: dict[int, int] = {}
    for item in items:
        text = item.get(name)
        if type(text) is not str:
            return None
        rest = [(key, value) for key, value in item.items() if key != name and _is_short(value)]
        states[hash(" ".join(text.casefold().split()))] = hash(tuple(sorted(rest, key=str)))
    return Plan(states)


def _is_short(value: object) -> bool:
    return (type(value) is str and len(value) <= _MAX_STATE) or type(value) in (int, bool)


class _Written:
    """What one tool wrote down of one list of items."""

    __slots__ = ("epoch", "latest", "learned", "newest", "spell", "states")

    def __init__(self, plan: Plan, now: Moment) -> None:
        self.states = {item: {state} for item, state in plan.states.items()}
        self.spell: Spell | None = None
        self.latest = now
        self.newest: dict[int, int] | None = None
        self.learned = self.epoch = 0

    def moves_on(self, plan: Plan) -> bool:
        """Take the states of the items; whether one of them is in another one than ever."""
        moved = False
        for item, state in plan.states.items():
            known = self.states[item]
            if state not in known and len(known) < MAX_STATES:
                known.add(state)
                moved = True
        return moved


class Plans:
    """The plans that one agent wrote down.

    Attributes:
        stuck: the newest plan and those before it that did not move on; None if it did.
    """

    __slots__ = ("_own_changes", "_own_news", "_written", "stuck")

    def __init__(self) -> None:
        self.stuck: Spell | None = None
        self._written: dict[str, _Written] = {}
        self._own_changes = self._own_news = 0

    def take(self, step: Step, plan: Plan, now: Moment, learned: Evidence) -> None:
        """Take a plan, of which `learned` knows already what was learned by writing it down."""
        self.stuck = None
        if step.outcome in _NEUTRAL:
            return
        self._own_changes += learned.changed
        self._own_news += learned.moved
        news, epoch = learned.progress - self._own_news, learned.epoch - self._own_changes
        written = self._written.get(step.action)
        if written is None or written.states.keys() != plan.states.keys():
            written = _Written(plan, now)
        elif written.newest != plan.states:
            says = learned.moved and (step.size or 0) > SHORT
            if written.moves_on(plan) or says or written.epoch != epoch:
                written.spell = None
            else:
                self.stuck = written.spell = longer(written.spell or Spell(written.latest), now)
                self.stuck.weight -= ASIDE_WEIGHT * (written.learned != news)
        remember(self._written, step.action, written, MAX_TOOLS)
        written.learned, written.epoch = news, epoch
        written.latest, written.newest = now, plan.states
