"""What the arguments of a call name: another thing than those before, or the same in other words.

Whoever works through a list names another thing each time, and is told much the same each time:
done, not found, nothing wrong. Whoever asks again names the same things in other words. Needed only
where a result says nothing new, so it is made there and not before.
"""

from __future__ import annotations

import re
from typing import Final

from otel_loopguard.core.patterns import Pattern
from otel_loopguard.core.words import COUNTERS

Subject = tuple[tuple[int, tuple[int, ...]], ...]
"""The fields of arguments, each its name and its words: numbers that hold within this process, and
whose last two bits say of which kind a word is. Zero is of words without a letter or digit."""

MAX_FIELDS: Final = 16
MAX_WORDS: Final = 64
MAX_KNOWN: Final = 256
ALIKE: Final = 1 / 3
"""From this share of common words on, two texts are of one subject."""

MANY_WORDS: Final = 10
MOSTLY: Final = 2 / 3
"""The same share for texts of many words: any two of a language have some in common."""
FORM_WORDS: Final = 2
LARGE: Final = 100
"""A smaller number in a text may count up."""
STEP: Final = 5
"""Numbers that differ by a multiple of this may be limits, or places in a list of pages."""
ALONE_WORDS: Final = 2
"""A name that stands alone in its field is put down without its counts, and as a whole."""
_NAMED, _NUMBER = 1, 2
_DATE: Final = _NUMBER | _NAMED  # or whatever else has several numbers

_WORD: Final = Pattern(r"['\"`]?[^\s\"'`{}\[\](),:;=<>|&?]+")
_QUOTES: Final = "'\"`"
_COUNTS: Final = re.compile(r"(?<!\d)(?!0\d)\d{1,2}(?!\d)")  # with more digits a word is an id
_MARKS: Final = re.compile(r"\w[./_@\\#-]+\w|\d")
_JOINTS: Final = "-./_"
_DIGITS: Final = 18
_UNSPACED: Final = "\u2e80"  # from here on scripts put no spaces between words


_COUNTERS: Final = frozenset(map(hash, COUNTERS))
_SLEEP: Final = frozenset({hash("sleep") << 2, hash("start-sleep") << 2 | _NAMED})


def words_in(text: str) -> tuple[int, ...]:
    """The words of a text, in order: without digits and case; of unspaced scripts, pairs."""
    words: list[int] = []
    for found in _WORD.findall(text.casefold()):
        word = found.lstrip(_QUOTES)
        if word[0] >= _UNSPACED:
            words += [hash(word[at : at + 2]) << 2 for at in range(max(1, len(word) - 1))]
        else:
            words.append(_word_of(word, quoted=word is not found))
        if len(words) >= MAX_WORDS:
            break
    if len(words) == 1 and not words[0] & _NUMBER and any(map(str.isdecimal, text)):
        words.append(hash(text) << 2 | _DATE)  # of a name that stands alone the digits count too
    return tuple(words[:MAX_WORDS])


def _word_of(word: str, *, quoted: bool) -> int:
    bare = _COUNTS.sub("", word).strip(_JOINTS)
    if any(map(str.isalpha, bare)):
        return hash(bare) << 2 | (_NAMED if quoted or _MARKS.search(word) is not None else 0)
    word = word.strip(_JOINTS)
    if word.isdecimal() and len(word) <= _DIGITS:
        return int(word) << 2 | _NUMBER
    return hash(word) << 2 | _DATE if any(map(str.isdecimal, word)) else 0


def sleeps(subject: Subject) -> bool:
    """Whether arguments tell a shell to let time pass."""
    return any(not _SLEEP.isdisjoint(words) for _, words in subject)


def _wordy(words: tuple[int, ...]) -> tuple[int, ...]:
    """Words of which those without a letter are all the same."""
    return tuple(0 if word & _NUMBER else word for word in words)


class Named:
    """The things that the calls of one streak named. Of fixed size."""

    __slots__ = ("_known", "_last", "_slots")

    def __init__(self, first: Subject | None) -> None:
        self._last = first
        self._known: set[int] = set()
        self._slots: list[tuple[int, int]] = []
        self._know(first or ())

    def another(self, subject: Subject, *, in_form: bool = False, by_number: bool = False) -> bool:
        """Take the next call's; whether it names another thing than all before.

        It does not if nothing but numbers differ: whoever counts up may be asking the same again.
        But with `by_number` another number that is no count may stand for another thing.
        With `in_form` a field of more than two words names another thing only as a form does.
        """
        last, self._last = self._last, subject
        before, self._slots = self._slots, []
        found = False
        if last is not None and [name for name, _ in last] == [name for name, _ in subject]:
            found = by_number and self._is_numbered(last, subject)
            for field, ((_, was), (_, now)) in enumerate(zip(last, subject, strict=True)):
                old, new = _wordy(was), _wordy(now)
                if old != new and self._is_fresh(old, new):
                    found = found or self._is_apart(old, new, in_form=in_form)
                    found = found or self._fills(field, old, new)
            found = found or (len(before) > 0 and self._slots == before)
        self._know(subject)
        return found

    def _is_numbered(self, last: Subject, subject: Subject) -> bool:
        """Whether nothing but numbers differ, which were not there before and are no counts."""
        changed: list[tuple[int | None, int, int]] = []
        for (name, old), (_, new) in zip(last, subject, strict=True):
            if len(old) != len(new):
                return False
            is_alone = len(new) == ALONE_WORDS and old[1] & new[1] & _DATE == _DATE
            pairs = [(old[1], new[1])] if is_alone else zip(old, new, strict=True)
            field = name if all(word & _NUMBER for word in new) else None
            changed += [(field, was, word) for was, word in pairs if was != word]
        return bool(changed) and all(self._is_thing(*each) for each in changed)

    def _is_thing(self, field: int | None, was: int, word: int) -> bool:
        """Whether a word is a number that names a thing; in a `field` that has nothing else."""
        if not was & word & _NUMBER or word in self._known:
            return False
        if field is not None:
            return field not in _COUNTERS
        if was & word & _NAMED:
            return True
        return word >> 2 >= LARGE and ((word >> 2) - (was >> 2)) % STEP > 0

    def _know(self, subject: Subject) -> None:
        if len(self._known) < MAX_KNOWN:
            self._known.update(*(words for _, words in subject))

    def _is_fresh(self, old: tuple[int, ...], new: tuple[int, ...]) -> bool:
        """Whether what is in a field now and was not before is in most parts all new."""
        come = set(new) - {0, *old}
        return bool(come) and len(come & self._known) <= ALIKE * len(come)

    def _is_apart(self, old: tuple[int, ...], new: tuple[int, ...], *, in_form: bool) -> bool:
        """Whether two texts have next to nothing in common."""
        before, now = set(old) - {0}, set(new) - {0}
        fewest = min(len(before), len(now))
        share = ALIKE if fewest < MANY_WORDS else MOSTLY
        apart = len(before & now) < share * fewest or not before & now
        return apart and (not in_form or len(old) == len(new) <= FORM_WORDS)

    def _fills(self, field: int, old: tuple[int, ...], new: tuple[int, ...]) -> bool:
        """Whether a text is the one before with other names in it; the places are remembered.

        Any words will do in the places where the words of the text before were already others.
        """
        if len(old) != len(new):
            return False
        places = [at for at, (was, word) in enumerate(zip(old, new, strict=True)) if was != word]
        if len(places) == len(new):
            return False
        self._slots += [(field, at) for at in places]
        return all(new[at] & 1 for at in places)
