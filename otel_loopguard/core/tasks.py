"""What an agent is asked to do, reduced to what tells whether it is asked the same again.

Two instructions are the same task if they name the same things (numbers, quoted texts, paths,
names) and share most of their longer words. A work list that shrinks or grows names other things:
the next item is another task, however alike the sentences are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, cast

from otel_loopguard.core.patterns import Pattern

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_CHARS: Final = 4_000
"""How much of an instruction is looked at, from its start."""
MIN_WORDS: Final = 4
"""An instruction of fewer longer words says too little to be compared by its words."""
ALIKE: Final = 0.5
"""The share of words from which on two instructions that name the same things are the same."""
SPECIFIC: Final = 12
"""From so many longer words on an instruction says what to do, even if it names nothing."""
SHORTEST: Final = 2
"""A name of fewer characters may be in the name of any tool."""
_LONG: Final = 4
_ACRONYM: Final = 3

_QUOTED: Final = Pattern(
    r"(?<!\w)(?:'[^'\n]{1,80}'|\"[^\"\n]{1,80}\"|\u2018[^\u2019\n]{1,80}\u2019"
    r"|\u201c[^\u201d\n]{1,80}\u201d|\u00ab[^\u00bb\n]{1,80}\u00bb|`[^`\n]{1,80}`)(?!\w)"
)
_WORD: Final = Pattern(r"\w+")
_EDGES: Final = "'\".,:;!?()[]{}<>*`\u2018\u2019\u201c\u201d\u3001\u3002\uff0c\uff1a\uff01\uff1f"
_STOPS: Final = (".", "!", "?", ":", "\u3002", "\uff01", "\uff1f")
_JOINED: Final = str.maketrans(" -", "__")
_UNSPACED: Final = "\u2e80"  # from here on scripts put no spaces between words


class Task(NamedTuple):
    """An instruction without its content: hashes that hold within this process.

    Attributes:
        words: its longer words; of scripts without spaces, pairs of characters.
        names: what it names: numbers, quoted texts, paths, proper names.
    """

    words: frozenset[int]
    names: frozenset[int]

    @property
    def is_specific(self) -> bool:
        """Whether it can be told from "go on with the next one"."""
        return bool(self.names) or len(self.words) >= SPECIFIC

    @property
    def says_what(self) -> bool:
        """Whether it also says what to do: arguments that only name an agent may ask about it."""
        return self.is_specific and len(self.words) >= MIN_WORDS

    def same(self, other: Task, alike: float) -> bool:
        """Whether it is the same task: the same names, and the share `alike` of all words."""
        if self.names != other.names or min(len(self.words), len(other.words)) < MIN_WORDS:
            return False
        shared = len(self.words & other.words)
        return shared >= alike * (len(self.words) + len(other.words) - shared)


def task_of(value: object) -> Task | None:
    """The task that a text, or the texts in a mapping, give; None if there is no text."""
    # isinstance() would run a `__class__` of the value's own.
    texts = [part for part in values_of(value) if type(part) is str]
    text = "\n".join(texts)[:MAX_CHARS]
    if not text:
        return None
    quoted = _QUOTED.findall(text)
    names = {hash(each[1:-1].strip().lower()) for each in quoted}
    names.update(map(hash, _names(_QUOTED.sub(" ", text) if quoted else text)))
    words = frozenset(map(hash, _words(text.lower())))
    return Task(words, frozenset(names))


def values_of(args: object) -> Iterable[object]:
    """The values of a call's arguments, where they are plain."""
    if type(args) is dict:
        return cast("dict[object, object]", args).values()
    return (args,) if type(args) is str else ()


def _names(text: str) -> list[str]:
    """Words that name something: with a digit, a slash or an underscore, or a capital inside."""
    found: list[str] = []
    for line in text.splitlines():
        begins = True
        for raw in line.split():
            word = raw.strip(_EDGES)
            if any(map(str.isdigit, word)) or "_" in word or "/" in word[1:-1]:
                found.append(word.lower())
            elif word[:1].isupper() and not begins and not _is_acronym(word):
                found.append(word.partition("'")[0].partition("\u2019")[0].lower())
            begins = raw.endswith(_STOPS)
    return found


def _is_acronym(word: str) -> bool:
    """Such as a file format: a common word in capitals."""
    return len(word) <= _ACRONYM and word.isupper()


def _words(text: str) -> list[str]:
    found: list[str] = []
    for word in _WORD.findall(text):
        if word[0] >= _UNSPACED:
            found += [word[i : i + 2] for i in range(max(1, len(word) - 1))]
        elif len(word) >= _LONG:
            found.append(word)
    return found


def names(agent: str, action: str, words: Iterable[object]) -> bool:
    """Whether a call names an agent: as one of the arguments' values, or within the tool's name.

    However it is written: a tool `transfer_to_support_agent` names the `Support Agent`.
    """
    name, longest = _plain(agent), len(agent) + 1
    if any(type(word) is str and len(word) <= longest and _plain(word) == name for word in words):
        return True
    if len(name) < SHORTEST:
        return False
    action = _plain(action)
    start, end = action.find(name), action.find(name) + len(name)
    around = action[max(0, start - 1) : start] + action[end : end + 1]
    return start >= 0 and not any(map(str.isalnum, around))


def _plain(name: str) -> str:
    return name.removeprefix("@").lower().translate(_JOINED)
