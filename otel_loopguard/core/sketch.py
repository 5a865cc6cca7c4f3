"""Texts reduced to features: how long, of what kind, in which words, with what chant.

Texts are compared by the hashes of their word triples, of which a bounded sample is kept: the
smallest ones, so that the samples of two texts hold the same triples where the texts do. Numbers in
prose are told apart from the words; case counts in none. In a text without spaces between its words
each character counts as a word.
"""

from __future__ import annotations

from array import array
from enum import Enum
from itertools import islice
from typing import Final, NamedTuple
from zlib import crc32

from otel_loopguard.core.patterns import Pattern

MAX_HASHES: Final = 64
SHORT_WORDS: Final = 12
NOTE_WORDS: Final = 40
ALMOST: Final = 0.95
"""How alike two texts are at most that are not the same."""
MOVED_ON: Final = 0.4
"""How alike two notes are at most in which words and numbers differ, as in reports on progress."""
END_CHARS: Final = 2_048
"""Of a text longer than twice this only the two ends are read."""
CHANT_CHARS: Final = 8_000
CHANT_COPIES: Final = 4
CHANT_MIN: Final = 60
CHANT_SHARE: Final = 0.2
CHANT_MUCH: Final = 600
ENDED_CHARS: Final = (200, 900)
"""How much may come after a chant that is still one; what it says is not known."""
ENDED_MUCH: Final = 1_200
ENDED_COPIES: Final = 10
ROUND_CHARS: Final = (1_800, 900)
"""Of so many characters at the end of a text the last third may say nothing new."""
ROUND_BYTES: Final = 20
"""Sentences shorter than this on average are labels, which batches of answers are full of."""
_PROBE: Final = 16
_PROBES: Final = 8
_SPACELESS: Final = 12
"""Words longer than this on average are no words."""

_ALIKE: Final = bytes.maketrans(b"123456789", b"000000000")
_NUMBER: Final = Pattern(r"(?<![0-9])[0-9]{1,15}")
_LETTERS: Final = Pattern(r"[^\W\d_]")
_CODE: Final = "{};=<>[]"
_CODE_MARKS: Final = 6
_STOPS: Final = str.maketrans(dict.fromkeys(".!?\u2026\u3002\uff01\uff1f", "\n"))


class Form(Enum):
    """What kind of text a text is; what makes two texts nearly equal depends on it."""

    PROSE = "prose"
    CODE = "code"
    DATA = "data"  # JSON, a table


class Sketch(NamedTuple):
    """The words of a text.

    Attributes:
        hashes: the smallest hashes of its word triples, at most 64, as an `array` in bytes.
        words: how many words were read.
        size: its length in characters.
        form: its kind.
        numbers: those in prose of at most 40 words, no more than eight.
    """

    hashes: bytes
    words: int
    size: int
    form: Form
    numbers: tuple[int, ...] = ()


def sketch(text: str) -> Sketch | None:
    """Returns the sketch of a text; None for a blank one."""
    if not text:
        return None
    size = len(text)
    if size > 2 * END_CHARS:
        text = f"{text[:END_CHARS]} {text[-END_CHARS:]}"
    form = form_of(text)
    plain = text.lower()
    data = plain.encode("utf-8", "surrogatepass")
    if form is Form.PROSE:
        data = data.translate(_ALIKE)
        while b"00" in data:
            data = data.replace(b"00", b"0")
    words = data.split()
    if not words:
        return None
    if len(words) * _SPACELESS < len(text):
        words = [char.encode("utf-8", "surrogatepass") for char in plain if not char.isspace()]
    triples = zip(words, islice(words, 1, None), islice(words, 2, None), strict=False)
    hashes = set(map(crc32, map(b" ".join, triples))) or {crc32(b" ".join(words))}
    numbers: tuple[int, ...] = ()
    if form is Form.PROSE and len(words) <= NOTE_WORDS:
        numbers = tuple(int(each) for each in _NUMBER.findall(plain)[:8])
    kept = array("I", sorted(hashes)[:MAX_HASHES])
    return Sketch(kept.tobytes(), len(words), size, form, numbers)


def likeness(one: Sketch, other: Sketch) -> float:
    """Which share of the word triples of two texts both have, from 0 to 1.

    It is 1 only if all words are the same, and, where there are more than are kept, the length. A
    short text of which one word is another is another one, and so is a note in which a number has
    moved on: they may tell of the next of many things. A number that counts up by one may not.
    """
    if one.hashes == other.hashes:
        whole = one.words == other.words and (one.words <= MAX_HASHES or one.size == other.size)
        return _counted(one.numbers, other.numbers) if whole else ALMOST
    if min(one.words, other.words) < SHORT_WORDS:
        return 0.0
    mine, others = set(memoryview(one.hashes).cast("I")), memoryview(other.hashes).cast("I")
    if mine.isdisjoint(others):  # as most often
        return 0.0
    its = set(others)
    both = mine & its
    smallest = sorted(mine | its)[:MAX_HASHES]
    most = ALMOST if _counted(one.numbers, other.numbers) else MOVED_ON
    return min(sum(each in both for each in smallest) / len(smallest), most)


def _counted(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    """Whether numbers are the same but for one that counts up by one, as attempts do."""
    if one == other:
        return 1.0
    return float(len(one) == len(other) == 1 and abs(one[0] - other[0]) == 1)


def form_of(text: str) -> Form:
    """Returns the kind of a text, told from its marks."""
    stripped = text.strip()
    if stripped[:1] in ("{", "[") and stripped[-1:] in ("}", "]"):
        return Form.DATA
    if text.count("|") * 12 > len(text) or text.count("\t") * 12 > len(text):
        return Form.DATA
    marks = sum(map(text.count, _CODE))
    is_code = "```" in text or (marks >= _CODE_MARKS and marks * 16 > len(text))
    return Form.CODE if is_code else Form.PROSE


def chant(text: str) -> tuple[int, int]:
    """Looks for a passage that a text repeats again and again, up to its end or nearly so.

    It repeats it exactly, or goes round among the same sentences in whatever order, for longer; one
    that came to an end took even longer. A text that repeats a passage without letters (a line, a
    divider, an empty table) is none, nor are list items or table rows that differ, nor a refrain
    at the end of a far longer text.

    Returns:
        How many characters are repetitions, and the length of the passage; zeros if these are
        fewer than four or shorter than 60 characters.
    """
    if len(text) < CHANT_MIN:
        return 0, 0
    found = _exact(text[-CHANT_CHARS:], min(CHANT_SHARE * len(text), CHANT_MUCH))
    if found == (0, 0):  # its last words were said before
        found = _round(text[-CHANT_CHARS:])
    for rest in ENDED_CHARS if not (found and found[0]) and len(text) > ENDED_MUCH else ():
        length, passage = _exact(text[:-rest][-CHANT_CHARS:], ENDED_MUCH) or (0, 0)
        if length > ENDED_COPIES * passage:
            return min(length, ROUND_CHARS[0]), passage
    return found or (0, 0)


def _exact(tail: str, much: float) -> tuple[int, int] | None:
    """What a text repeats exactly up to its end, if that is much; None if not even its end is."""
    size = len(tail)
    probe, end = tail[-_PROBE:], size - 1
    for _ in range(_PROBES):
        found = tail.rfind(probe, 0, end)
        if found < 0:
            break
        period = size - _PROBE - found
        end = found + _PROBE - 1
        length = _periodic(tail, period)
        if length < max(CHANT_COPIES * period, CHANT_MIN):
            continue
        if length >= much and _speaks(tail[-period:]):
            return length, period
        break
    return (0, 0) if end < size - 1 else None


def _round(tail: str) -> tuple[int, int]:
    """The characters at the end of a text that only go round, and those of one round.

    They do if the last third has no sentence that was not said before, each four times on average.
    """
    for chars in ROUND_CHARS:
        part = tail[-chars:] if len(tail) >= chars else ""
        lines = map(str.strip, part.lower().translate(_STOPS).split("\n"))
        said = [line for line in lines if line][1:-1]  # which may be cut off
        before, known = set(said[: len(said) * 2 // 3]), set(said)
        much, once = sum(map(len, said)), sum(map(len, known))
        if once * CHANT_COPIES <= much and known == before and _tells(said, part):
            return much, once
    return 0, 0


def _tells(said: list[str], part: str) -> bool:
    """Whether what is said is prose in sentences: no code, no labels, no items of a list."""
    size = sum(len(line.encode("utf-8", "surrogatepass")) for line in said)
    items = sum(not line[0].isalpha() for line in said)
    prose = form_of(part) is Form.PROSE and "|" not in part and items * 2 < len(said)
    return prose and size >= ROUND_BYTES * len(said)


def _speaks(passage: str) -> bool:
    return _LETTERS.search(passage) is not None and "|" not in passage


def _periodic(text: str, period: int) -> int:
    """How many characters at the end of a text repeat with a period."""
    low, high = period, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if text[-middle:-period] == text[len(text) - middle + period :]:
            low = middle
        else:
            high = middle - 1
    return low
