"""Whether agents that talk to each other come back to what they said, and nobody acts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from otel_loopguard.core.records import remember
from otel_loopguard.core.sketch import likeness
from otel_loopguard.core.turns import Spell

if TYPE_CHECKING:
    from otel_loopguard.core.records import Moment
    from otel_loopguard.core.sketch import Sketch

MAX_SPEAKERS: Final = 4
MAX_TEXTS: Final = 32
ALIKE: Final = 0.2
"""From so much likeness on a turn asks or says again what an earlier one did, in other words."""
MIN_WORDS: Final = 6


class Speaker:
    """What one agent said: its newest texts, and the turns that were like an earlier one."""

    __slots__ = ("circling", "texts")

    def __init__(self) -> None:
        self.circling: Spell | None = None
        self.texts: list[Sketch] = []

    def hear(self, text: Sketch, now: Moment) -> None:
        """Take a turn."""
        if any(likeness(text, other) >= ALIKE for other in self.texts):
            if self.circling is None:
                self.circling = Spell(now)
            else:
                self.circling.count += 1
                self.circling.weight += 1.0
        self.texts.append(text)
        del self.texts[:-MAX_TEXTS]


class Dialogue:
    """What agents said to each other since somebody did something. Bounded.

    Attributes:
        circling: the turns of the agent that spoke last that were like an earlier one of its own.
    """

    __slots__ = ("_speakers", "circling")

    def __init__(self) -> None:
        self.circling: Spell | None = None
        self._speakers: dict[str, Speaker] = {}

    def hear(self, agent: str, text: Sketch, now: Moment) -> None:
        """Take a turn of one of them."""
        speaker = self._speakers.get(agent) or Speaker()
        remember(self._speakers, agent, speaker, MAX_SPEAKERS)
        if text.words >= MIN_WORDS:
            speaker.hear(text, now)
        self.circling = speaker.circling
