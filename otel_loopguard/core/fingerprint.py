"""Keyed digests of arguments and results: equal digests mean equal content, and say nothing else.

All digests are 16 hex digits of BLAKE2b under a key that never leaves the process, so that short or
guessable content cannot be looked up from its digest.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeGuard, cast

from otel_loopguard.core.canonical import (
    MAX_CHARS,
    MAX_DEPTH,
    MAX_NODES,
    Form,
    flat_form,
    form_of,
    plain_form,
    read_form,
)
from otel_loopguard.core.masking import is_clock, mask_parts
from otel_loopguard.core.model import MISSING
from otel_loopguard.core.returned import loose_form, words_of
from otel_loopguard.core.subject import MAX_FIELDS, words_in
from otel_loopguard.core.texts import sample

if TYPE_CHECKING:
    from hashlib import _Hash as Hash  # pyright: ignore[reportPrivateUsage] - hashlib has no name

    from otel_loopguard.core.subject import Subject

_DIGEST_BYTES: Final = 8
_decode: Final = json.JSONDecoder(strict=False).raw_decode


_LOOSE_CHARS: Final = 2_000
_COSMETIC: Final = frozenset(
    {
        *("taskprogress", "timeout", "timeoutms", "timeoutseconds", "verbose", "nonce"),
        *("requestid", "display", "displayname"),
    }
)
_TELLING: Final = frozenset({"reason", "description", "explanation", "label"})
_SAYING: Final = frozenset({"title", "note", "comment", "thought", "thoughts"})


Printed = tuple["str | None", "int | None"]
"""The digest of a result and its length in characters; both None when unknown.

The length of something that is no text is that of its canonical form.
"""

UNKNOWN: Final[Printed] = (None, None)


@dataclass(frozen=True, slots=True)
class Fingerprinter:
    """Makes the digests of one process. Safe to share between threads.

    Args:
        key: the secret of the digests, at least one byte.
        max_chars: how many characters of text are read; a longer text is sampled.
        max_nodes: how many values of a structure are visited; a larger one is unknown.
        max_depth: how many levels of a structure are entered; a deeper one is unknown.

    Raises:
        ValueError: the key is empty.
    """

    key: bytes = field(repr=False)
    max_chars: int = field(default=MAX_CHARS, kw_only=True)
    max_nodes: int = field(default=MAX_NODES, kw_only=True)
    max_depth: int = field(default=MAX_DEPTH, kw_only=True)
    _keyed: Hash = field(init=False, repr=False, compare=False)
    _formed: Hash = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.key:
            raise ValueError("the key of a Fingerprinter must not be empty")
        key = self.key
        if len(key) > blake2b.MAX_KEY_SIZE:
            key = blake2b(key).digest()
        # A copy of a hash that has its key already is cheaper than a new one.
        keyed = blake2b(digest_size=_DIGEST_BYTES, key=key)
        object.__setattr__(self, "_keyed", keyed)
        object.__setattr__(self, "_formed", keyed.copy())
        self._formed.update(b"=")

    def of_args(self, value: object) -> str | None:
        """Returns the digest of a call's arguments; None when unknown.

        JSON text of an object or array counts as what it says. An object without readable content
        inside of the arguments, such as a client, counts as its type's name.
        """
        kind = type(value)
        if kind is not dict and _is_text(value):
            value = self._parsed(value)
            if _is_text(value):
                return self.of_text(value)
        try:
            text = flat_form(value, self.max_chars, self.max_nodes, self.max_depth)
        except (LookupError, RuntimeError):
            return None
        if text is not None:
            digest = self._formed.copy()  # as `of_text` does, in fewer steps
            digest.update(text.encode())
            return digest.hexdigest()
        text = plain_form(value, self.max_chars, self.max_nodes, self.max_depth)
        if text is None:
            form = self._read(value, named=True)
            return form and self.of_text("=" + form.text)
        return self.of_text("=" + text)

    def of_result(self, value: object) -> Printed:
        """Returns digest and length of what a call gave back; text counts as it is."""
        if type(value) is str and len(value) <= self.max_chars and value.isascii():
            digest = self._keyed.copy()  # as `of_text` does, in fewer steps
            digest.update(value.encode())
            return digest.hexdigest(), len(value)
        if _is_text(value):
            return self.of_text(value), str.__len__(value)
        text = plain_form(value, self.max_chars, self.max_nodes, self.max_depth)
        if text is None:
            form = self._read(value, named=False)
            return (self.of_text("=" + form.text), form.size) if form else UNKNOWN
        return self.of_text("=" + text), len(text)

    def of_text(self, text: str) -> str:
        """Returns the digest of a text, such as an id or an identity."""
        if type(text) is str and len(text) <= self.max_chars and text.isascii():
            data = text.encode()
        else:
            data = sample(text, self.max_chars).encode("utf-8", "surrogatepass")
        digest = self._keyed.copy()
        digest.update(data)
        return digest.hexdigest()

    def of_masked(self, value: object) -> str | None:
        """Returns the digest of a result with volatile values hidden.

        None when nothing was hidden, so that the plain digest says all, or when it is unknown.
        """
        return self.of_returned(value)[0]

    def of_returned(self, value: object) -> tuple[str | None, tuple[int, ...] | None]:
        """Returns the masked digest of a result, as `of_masked`, and its words, masked as well."""
        text = self._text(value)
        if text is None:
            return None, None
        head, middle, tail = mask_parts(text)
        words = words_of(head, len(middle))
        if head + middle + tail == text or is_clock(text):
            return None, words
        return self.of_text(f"{head}\0{self.of_text(middle)}\0{tail}"), words

    def of_loose(self, value: object) -> str | None:
        """Returns the digest of arguments by their words, in any order and case.

        Fields that only tell or time the call are left out. None for long arguments, and when
        unknown.
        """
        kind = type(value)
        if kind is not dict and _is_text(value):
            value = self._parsed(value)
        text = self._text(_essential(value))
        if text is None or len(text) > _LOOSE_CHARS:
            return None
        return self.of_text("~" + loose_form(text))

    def of_subject(self, value: object) -> Subject:
        """Returns what arguments name, by field; not of fields that only tell calls apart."""
        kind = type(value)
        if kind is not dict and _is_text(value):
            value = self._parsed(value)
        fields = cast("dict[object, object]", value) if type(value) is dict else {"": value}
        named = ((_plain(name), inner) for name, inner in fields.items() if type(name) is str)
        kept = ((name, inner) for name, inner in named if name not in _COSMETIC)
        pairs = ((hash(name), words_in(self._text(inner) or "")) for name, inner in kept)
        return tuple(sorted(islice(pairs, MAX_FIELDS)))

    def _text(self, value: object) -> str | None:
        """What is masked of a result: a text as it is, of other values the texts in them bare."""
        if _is_text(value):
            return str.__getitem__(value, slice(None))
        if value is MISSING:
            return None
        form = form_of(value, self.max_chars, self.max_nodes, self.max_depth, named=False)
        return form and form.text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')

    def _read(self, value: object, *, named: bool) -> Form | None:
        """The form of a value that has no plain one."""
        if value is MISSING:
            return None
        return read_form(value, self.max_chars, self.max_nodes, self.max_depth, named=named)

    def _parsed(self, value: str) -> object:
        """What JSON text says, if it says an object or an array; any other text as it is."""
        if str.__len__(value) > self.max_chars:
            return value
        text = str.strip(value)
        if not text.startswith(("{", "[")):
            return value
        try:
            said, end = _decode(text)
        except (ValueError, RecursionError):
            return value
        return said if end == len(text) else value


def _is_text(value: object) -> TypeGuard[str]:
    return issubclass(type(value), str)  # isinstance() would run a `__class__` of the value's own


def _essential(value: object, depth: int = 3) -> object:
    """Arguments without the fields that time or name a call, or tell of it what others say."""
    if not depth or type(value) is not dict:
        return value
    kept: dict[object, object] = {
        name: _essential(inner, depth - 1)
        for name, inner in cast("dict[object, object]", value).items()
        if _plain(name) not in _COSMETIC
    }
    for fields, words in ((_TELLING, 1), (_SAYING, 2)):
        bare = {name: inner for name, inner in kept.items() if _plain(name) not in fields}
        kept = bare if _has_phrase(bare, words) else kept
    return kept


def _plain(name: object) -> str:
    return str.replace(name, "_", "").lower() if _is_text(name) else ""


def _has_phrase(value: object, words: int) -> bool:
    if type(value) is dict:
        inner = cast("dict[object, object]", value).values()
        return any(_has_phrase(each, words) for each in inner)
    return _is_text(value) and len(str.split(value, maxsplit=words)) >= words
