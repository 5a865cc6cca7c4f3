"""reflection_paralysis: the agent talks and thinks, says the same again, and does nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final
from zlib import crc32

from otel_loopguard.core.detectors.base import found
from otel_loopguard.core.model import Pattern

if TYPE_CHECKING:
    from otel_loopguard.core.episode import Episode
    from otel_loopguard.core.model import Finding, Step
    from otel_loopguard.core.turns import Spell

_EVIDENCE: Final = {
    "chanting": "one text repeats a passage {} times, up to its end",
    "same": "{} turns in a row said nearly the same, and nothing new was done",
    "silent": "{} turns in a row said nothing and did nothing",
    "musing": "{} turns in a row mostly thought, said little and did nothing",
    "stale": "{} turns said what an earlier one had said, and nothing new was said or done",
    "circling": "{} turns in a dialogue came back to what was said, and nobody did anything",
    "replies": "{} answers in a row were nearly the same, whatever was said between",
}
_NEVER: Final = 10**9


@dataclass(frozen=True, slots=True)
class ReflectionParalysis:
    """Turns of a model that say the same, say nothing, or only think, with no action between.

    Sources: the monologue rules of OpenHands (3 turns), chanting rules of gemini-cli and OpenRouter
    (4 exact copies), and the cases of tests/cases.
    Catches: the same announcement three times, or a few in turn, nothing done; an answer that goes
    round among a few sentences up to its end. Leaves alone: equal texts between calls that bring
    news; tables, lists whose rows differ, labels such as "yes", answers to different questions.
    """

    only_repeats: ClassVar[bool] = True
    warning: int = field(default=3, metadata={"doc": "turns that say nothing new: warning"})
    critical: int = field(default=5, metadata={"doc": "turns that say nothing new: critical"})
    replies: int = field(default=4, metadata={"doc": "long equal answers: warning; 0 for never"})
    circling: int = field(default=4, metadata={"doc": "turns of agents: warning; 0 for never"})
    cycle: int = field(default=3, metadata={"doc": "turns said before: warning; 0 for never"})
    chant_warning: int = field(default=60, metadata={"doc": "characters of a chant: warning"})
    chant_critical: int = field(default=2000, metadata={"doc": "characters of a chant: critical"})

    def __call__(self, episode: Episode, step: Step, /) -> Finding | None:
        """See `Detector`."""
        if episode.talk is None or step.said is None:
            return None
        of = {"circling": episode.talk.dialogue}
        for name, evidence in _EVIDENCE.items():
            spell: Spell | None = getattr(of.get(name, episode.talk.turns), name, None)
            finding = spell and found(
                episode,
                step,
                Pattern.REFLECTION_PARALYSIS,
                key=f"{name}:{crc32(spell.key):x}",
                limits=self._limits(name),
                first=spell.first,
                repeats=spell.count,
                weight=spell.weight,
                evidence=evidence.format(spell.count),
                wasted_calls=spell.count - 1,
                doubt=name == "musing",
            )
            if finding:
                return finding
        return None

    def _limits(self, name: str) -> tuple[float, float]:
        if name == "chanting":
            return self.chant_warning, self.chant_critical
        turns = {"replies": self.replies, "circling": self.circling, "stale": self.cycle}
        if name in turns:
            return turns[name] or _NEVER, _NEVER
        return self.warning, _NEVER if name == "musing" else self.critical
