"""What the results of a call that comes back have in common, by their words.

Needed only where a call returns with another result, so it is made there and not before.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from otel_loopguard.core.model import MISSING, Kind

if TYPE_CHECKING:
    from otel_loopguard.core.episode import Episode
    from otel_loopguard.core.fingerprint import Fingerprinter
    from otel_loopguard.core.model import Sighting
    from otel_loopguard.core.records import CallRecord, Once

MAX_WORDS: Final = 256
"""Words at the start of a result that are looked at."""
MAX_KNOWN: Final = 1_024
"""Different words of one call's results that are remembered."""
MANY: Final = 25
"""From so many words on, almost no new word means almost nothing new."""
NEW_SHARE: Final = 0.2
STEADY: Final = 2
"""How often in a row nothing but the same id may have changed before it is known as volatile."""
FEW: Final = 4
"""How many words next to an id have to stay the same."""
MOST: Final = 8
"""The same for numbers that only waver."""
SLIGHT: Final = 0.1
"""A number that goes up and down, each time by less than this share, only wavers."""

_WORD: Final = re.compile(r"[^\s\"'{}\[\](),:;=<>|]+")
_NUMBER: Final = re.compile(r"[+-]?\d[\d.,/]*(?:%|[A-Za-wyz]{1,3})?")
_NAME: Final = re.compile(r"\w+(?:[_-][iI][dD]|I[dD])")
_PLAIN, _ID, _COUNT, _ID_NAME, _WHOLE = range(5)
_KINDS: Final = 8
_LENGTHS: Final = 64
_DIGITS: Final = 15
_DOWN, _UP, _WAVERS, _STEEP = range(1, 5)


def words_of(text: str, more: int = 0) -> tuple[int, ...]:
    """Returns how long a text is, and its first 256 words.

    The length is in words, with `more` characters besides. A word is a number that says what it is
    and of which kind.
    """
    words: list[str] = _WORD.findall(text)
    return (len(words) + more, *map(_number_of, words[:MAX_WORDS]))


def _number_of(word: str) -> int:
    if word.isdecimal() and len(word) <= _DIGITS:
        return int(word) * _KINDS + _WHOLE
    return (hash(word) * _LENGTHS + min(len(word), _LENGTHS - 1)) * _KINDS + _kind(word)


def _kind(word: str) -> int:
    if word.isalpha() or not any(map(str.isdigit, word)):
        return _ID_NAME if _NAME.fullmatch(word) else _PLAIN
    return _COUNT if _NUMBER.fullmatch(word) else _ID


def loose_form(text: str) -> str:
    """Returns the words of a text without their order and case."""
    return "\0".join(sorted(_WORD.findall(text.casefold())))


def compare(
    printer: Fingerprinter,
    episode: Episode | None,
    sighting: Sighting,
    action: str,
    args_key: str | None,
    result_key: str | None,
    agent: str | None,
) -> tuple[bool, str | None, tuple[int, ...] | None, str | None]:
    """Whether a call returns; the masked digest and the words of another result; its weaker key."""
    earlier = None if episode is None else episode.earlier(action, args_key, agent)
    masked_key = words = loose_key = None
    other = earlier is not None and earlier.result_key not in (None, result_key)
    if other and sighting.recorded is None:
        masked_key, words = printer.of_returned(sighting.result)
    if sighting.kind is Kind.TOOL:
        loose_key = _loose_key_of(printer, episode, action, sighting.args, earlier, result_key)
    return earlier is not None, masked_key, words, loose_key


def _loose_key_of(
    printer: Fingerprinter,
    episode: Episode | None,
    action: str,
    args: object,
    earlier: CallRecord | Once | None,
    result_key: str | None,
) -> str | None:
    """The weaker key of a call that came back with another result, or with one that others got.

    Where results are unknown, any call may be one.
    """
    if args is MISSING or (earlier is not None and earlier.loose_key is not None):
        return None if earlier is None else earlier.loose_key
    if result_key is not None:
        if earlier is not None:
            returns = earlier.result_key != result_key
        else:
            returns = episode is not None and episode.deeds.evidence.gave(action, result_key)
        if not returns:
            return None
    return printer.of_loose(args)


class Returned:
    """The words of one call's results."""

    __slots__ = ("_known", "_last", "_longest", "_places", "_swings", "steady")

    def __init__(self) -> None:
        self._known: set[int] = set()
        self._last: list[int] = []
        self._places: list[int] = []
        self._swings: dict[int, int] = {}
        self._longest = 0
        self.steady = 0

    def take(self, measured: tuple[int, ...]) -> int:
        """Take another result; of how many in a row it is known now that they say nothing new.

        One that is longer than all before says more: a log that grows is news.
        """
        length, *words = measured
        known, all_words = self._known, set(words)
        new = all_words - known
        near = length <= self._longest and len(words) >= MANY
        near = near and len(new) <= NEW_SHARE * len(all_words)
        self._longest = max(length, self._longest)
        if len(known) + len(new) <= MAX_KNOWN:
            known |= new
        places = self._moving(words)
        if places is None:
            self.steady = 0
        else:
            self.steady = self.steady + 1 if places == self._places else 1
        self._last, self._places = words, places or []
        if places and self.steady == STEADY:
            return STEADY
        return int(near or self.steady > STEADY)

    def _moving(self, words: list[int]) -> list[int] | None:
        """Where ids stand that have changed; None if anything else has but numbers that waver.

        Several ids may be another thing each time, unless they stand under the names of ids.
        """
        last = self._last
        if len(words) != len(last):
            self._swings.clear()
            return None
        moved = [at for at, word in enumerate(words) if word != last[at]]
        rest = [at for at in moved if not self._wavers(at, last[at], words[at])]
        kept = len(words) - len(moved)
        if not moved or kept < (FEW if rest == moved else MOST):
            return None
        if not all(_are_ids(last[at], words[at]) for at in rest):
            return None
        named = all(at and words[at - 1] % _KINDS == _ID_NAME for at in rest)
        return rest if rest and (named or len(rest) == 1) else None

    def _wavers(self, at: int, old: int, new: int) -> bool:
        """Whether a number that has changed goes up and down, and never far."""
        if not old % _KINDS == new % _KINDS == _WHOLE:
            return False
        far = abs(new - old) > SLIGHT * max(new, old)
        swing = _STEEP if far else _DOWN if new < old else _UP
        self._swings[at] = swing = swing | self._swings.get(at, 0)
        return swing == _WAVERS


def _are_ids(old: int, new: int) -> bool:
    """Whether both are ids: of two that are equally long one may happen to have no digit."""
    kinds = {old % _KINDS, new % _KINDS}
    alike = old // _KINDS % _LENGTHS == new // _KINDS % _LENGTHS
    return kinds == {_ID} or (_ID in kinds and alike and kinds <= {_ID, _PLAIN, _ID_NAME})
