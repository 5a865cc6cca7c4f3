"""What the models of a run said since something was last done: who only talks, and says it again.

A turn is one utterance of a model. Turns add up while nothing happens between: an action that
brings something new, or that nobody sees the result of, starts over, and so does the user.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from otel_loopguard.core.records import WAIT_NS, WAIT_WEIGHT
from otel_loopguard.core.sketch import END_CHARS, SHORT_WORDS, Form, likeness

if TYPE_CHECKING:
    from otel_loopguard.core.model import Step
    from otel_loopguard.core.records import Moment
    from otel_loopguard.core.said import Said
    from otel_loopguard.core.sketch import Sketch

Likes = dict[int, float]

MAX_TEXTS: Final = 8
"""The longest cycle of texts that is seen."""
NEAR: Final = 3
"""To how many of the newest texts a text is compared word by word; to older ones as a whole."""
ALIKE: Final = {Form.PROSE: 0.5, Form.CODE: 0.9, Form.DATA: 0.9}
"""From which likeness on two texts say nearly the same."""
NEAR_WEIGHT: Final = 0.67
ACTED_WEIGHT: Final = 0.5
MIN_WORDS: Final = 4
"""A shorter text is a label or an answer, of which many are equal."""
REPLY_WORDS: Final = 6
BRIEF_WEIGHT: Final = 0.67
"""What a short text counts that was said before, and not just before."""
PAGE_WEIGHT: Final = 0.5
"""What a text counts that was said before, and is so long that it may be a page that is shown."""
PARTLY: Final = 0.2
"""From so much likeness on a text says in part what an earlier one said: it is not quite new."""
THOUGHT_WEIGHT: Final = 0.25
"""What a new thought counts that nothing is said with: it may go on from the one before."""
WORD_WEIGHT: Final = 0.5
"""The same where it says something short, and that is new too."""
FEW_WORDS: Final = 20
"""Beside its reasoning a turn of fewer words gives no answer."""


@dataclass(slots=True)
class Spell:
    """Turns of one sort in a row.

    Attributes:
        first: the first of them.
        count: how many.
        weight: `count`, each turn graded by how good the evidence is.
        key: the text that comes again, as its hashes.
        period: after how many turns it comes again.
    """

    first: Moment
    count: int = 1
    weight: float = 1.0
    key: bytes = b""
    period: int = 1


class Turns:
    """The newest utterances of one run.

    Attributes:
        same: turns in a row that say nearly the same.
        stale: turns in a row that say what earlier ones said; one that says it in part is none.
        silent: turns in a row without a text, without a thought and without an action.
        musing: turns in a row that mostly think, do nothing, and say little.
        replies: turns in a row that say nearly what one before did, whoever spoke between.
        chanting: the newest turn, if it repeats one passage up to its end.
    """

    __slots__ = (
        "_acted", "_agent", "_end_ns", "_pending", "_read", "_replies", "_texts", "_waited",
        "chanting", "musing", "replies", "same", "silent", "stale",
    )  # fmt: skip

    def __init__(self) -> None:
        self.same: Spell | None = None
        self.stale: Spell | None = None
        self.silent: Spell | None = None
        self.musing: Spell | None = None
        self.replies: Spell | None = None
        self.chanting: Spell | None = None
        self._texts: list[tuple[str | None, Sketch, Moment]] = []
        self._replies: list[Sketch] = []
        self._agent: str | None = None
        self._acted = self._pending = self._waited = False
        self._end_ns = self._read = 0

    def interrupted(self, at_ns: int = 0) -> None:
        """Somebody else spoke, or the world changed; `at_ns` is when, if known."""
        self._waited = 0 < self._end_ns <= at_ns - WAIT_NS
        self._texts.clear()
        self.same = self.stale = self.silent = self.musing = None
        self._acted = self._pending = False
        self._read = 0

    def _start_over(self) -> None:
        """Something was done: what was said before has led somewhere."""
        self.interrupted()
        self.replies = None
        self._replies.clear()

    def acted(self, *, moved: bool) -> None:
        """A tool was called; `moved` if that brought something new, or may have."""
        self.silent = self.musing = self.stale = self.replies = None
        self._replies.clear()
        self._pending, self._acted = False, True
        if moved:
            self._start_over()

    def waited(self, step: Step) -> bool:
        """Whether a call came long after what was said before it."""
        return 0 < self._end_ns <= step.start_ns - WAIT_NS

    def compacted(self) -> None:
        """The history was cut short: the next turn reads less."""
        self._read = 0

    def condense(self) -> None:
        """Forget all texts but the newest."""
        del self._texts[:-1]

    def take(self, step: Step, said: Said | None, now: Moment) -> bool:
        """Take a turn; whether it goes on with any spell.

        A turn that overlaps the one before is a branch beside it, not a next one; so is one that
        read less: it does not have the other in its history.
        """
        self.chanting = None
        if 0 < step.start_ns < self._end_ns:
            return False
        self._end_ns = step.end_ns
        known = said is not None and (said.blank or said.sketch is not None)
        if said is None or not known or self._pending or self._is_apart(step, said):
            self._start_over()
        if said is None or not known:
            return False
        if step.agent != self._agent:
            self.silent = self.musing = self.replies = None
            self._replies.clear()
        self._read, self._agent, self._pending = said.read, step.agent, said.acts
        if said.chant:
            count = said.chant // said.passage
            self.chanting = Spell(now, count, said.chant, period=said.passage)
        self._hear(said, now)
        self._acted = False
        return any((self.same, self.stale, self.silent, self.musing, self.replies, said.chant))

    def _is_apart(self, step: Step, said: Said) -> bool:
        return step.agent == self._agent and 0 < said.read < self._read

    def _hear(self, said: Said, now: Moment) -> None:
        """Take the turn into all spells."""
        text = said.sketch
        mute = text is None and said.blank and not said.acts
        self.silent = longer(self.silent, now) if mute else None
        if text is None:
            return
        fresh = True
        tells = text.words >= MIN_WORDS
        if tells:
            compared: Likes = {}  # the newest texts are often the newest answers too
            fresh = not self._compare(text, now, compared)
            self._answer(text, now, compared)
        little = said.blank or text.words < FEW_WORDS or not fresh
        muses = said.thinks and little and not said.acts
        weight = 1.0
        if fresh and (said.blank or tells):
            weight = THOUGHT_WEIGHT if said.blank else WORD_WEIGHT
        self.musing = longer(self.musing, now, weight=weight) if muses else None

    def _compare(self, text: Sketch, now: Moment, compared: Likes) -> bool:
        """Compare a text to those that its agent said before; whether one of them said the same."""
        texts = self._texts
        period, grade, partly = 0, 0.0, False
        for back, (agent, other, _) in enumerate(reversed(texts), 1):
            if agent != self._agent or (back > NEAR and text.hashes != other.hashes):
                continue
            alike = _like(text, other, compared)
            partly |= alike >= PARTLY
            if _grade(text, alike) > grade:
                period, grade = back, _grade(text, alike)
        if grade:
            before = texts[-period][2]
            period_so_far = max(period, _period(self.stale))
            self.stale = longer(self.stale, before, period_so_far, _weight(text))
            self._again(text, before, grade if period == 1 else 0)
        else:
            self.same, self.stale = None, self.stale if partly else None
        texts.append((self._agent, text, now))
        del texts[:-MAX_TEXTS]
        return grade > 0

    def _again(self, text: Sketch, before: Moment, grade: float) -> None:
        """Count a text that says what the one just before said (`grade` 0: what another said)."""
        if not grade:
            self.same = None
            return
        if self.same is None:
            self.same = Spell(before, key=text.hashes)
        self.same.count += 1
        self.same.weight += grade * (ACTED_WEIGHT if self._acted else 1.0)

    def _answer(self, text: Sketch, now: Moment, compared: Likes) -> None:
        """Compare a text of some length to those before it, whoever spoke between."""
        if text.words < REPLY_WORDS:
            return
        near = self._replies[-NEAR:]
        grades = [_grade(text, _like(text, other, compared)) for other in near]
        grade = 1.0 if text in self._replies else max(grades, default=0.0)
        if grade:
            replies = self.replies = self.replies or Spell(now, key=text.hashes)
            replies.count += 1
            replies.weight += grade * _weight(text) * (WAIT_WEIGHT if self._waited else 1.0)
        else:
            self.replies = None
        self._replies.append(text)
        del self._replies[:-MAX_TEXTS]


def _weight(text: Sketch) -> float:
    """What a text counts that was said before."""
    if text.words < SHORT_WORDS:
        return BRIEF_WEIGHT
    return PAGE_WEIGHT if text.size > END_CHARS else 1.0


def _like(text: Sketch, other: Sketch, compared: Likes) -> float:
    """How alike two texts are; `compared` holds what was found out already, by the other's id."""
    found = compared.get(id(other))
    if found is None:
        found = compared[id(other)] = likeness(text, other)
    return found


def _grade(text: Sketch, alike: float) -> float:
    """How much a text counts that is so much like another; 0 if it says something else.

    In steps: how near two long texts are is an estimate, on whose last digit nothing should hang.
    """
    if alike < 1.0:
        return NEAR_WEIGHT if alike >= ALIKE[text.form] else 0.0
    return 1.0


def _period(spell: Spell | None) -> int:
    return 0 if spell is None else spell.period


def longer(spell: Spell | None, now: Moment, period: int = 1, weight: float = 1.0) -> Spell:
    """Returns a spell that is one turn longer; a new one begins with `now`."""
    if spell is None:
        return Spell(now, weight=weight, period=period)
    spell.count += 1
    spell.weight += weight
    spell.period = period
    return spell
