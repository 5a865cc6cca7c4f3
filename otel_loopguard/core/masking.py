"""Hides volatile values in results by their shape: times, ids, durations; never every number.

A page number, a count, a price, a version, a line number or a percentage is progress when it
changes, so those stay. What is hidden becomes `~`.
"""

from __future__ import annotations

from typing import Final

from otel_loopguard.core.patterns import Pattern

HEAD: Final = 8_192
TAIL: Final = 2_048
"""Of a longer text only so many characters at its start and at its end are searched."""

CLOCK_CHARS: Final = 100

_SEAM: Final = "\n\u2026\n"
_WHOLE: Final = HEAD + TAIL + len(_SEAM)  # so that a text put together of head and tail is whole
_SIGN: Final = "~"
_KEY: Final = (
    r"(?:request|trace|span|correlation|session|message|invocation|process)[_ -]?[iI][dD]"
    r"|(?:created|updated|generated|fetched|started|finished)(?:_at|At)"
    r"|timestamp|nonce|pid|ts(?=[\"'=])"
    r"|(?:elapsed|duration|latency|took)(?:_(?:ns|us|ms|s|secs?|seconds)|Ms|Seconds)?"
)
_VALUE: Final = r"\"[^\"\n]*\"?|'[^'\n]*'?|[^\s,;\"'\[\](){}&]+"
_FRACTION: Final = r"(?:[.,]\d{1,9})?"

# Every shape begins where a word begins or ends, and with a set of characters, so that it fails at
# once almost everywhere. What a shape must not stand before or behind may itself have been hidden,
# hence the `~` there: hiding twice hides no more than hiding once.
_DIGIT_SHAPES: Final = (
    r"(?=\d*[a-f])[0-9a-f]{7,63}\b",  # hexadecimal id
    r"x[0-9a-fA-F]{6,16}\b",  # address
    rf"\d{{3}}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d{_FRACTION})?(?:Z|[+-]\d\d:?\d\d)?\b",
    rf"(?<![:.]\d)\d?:\d\d:\d\d{_FRACTION}\b(?!:)",  # clock time, to the second
    r"(?<![.-]1)(?<=1)[4-9]\d{8}(?:\d{3})?(?:\.\d{1,9})?\b(?![.-][\w~])",  # 2014 to 2033
    r"(?<!\.\d)(?!\d\d0s\b)\d{0,6}(?:\.\d{1,9})?[ ]?(?:ns|us|\u00b5s|ms|s|secs?|seconds?)\b",
)
_SHAPES: Final = (
    rf"(?:{_KEY})[\"']?[ \t]?[:=][ \t]?(?:{_VALUE})",
    r"[pP](?:id|ID|rocess [iI][dD])[ ]\d{2,7}\b",
    r"\[(?<=[A-Za-z]\[)\d{2,7}\](?=:)",  # the process in a line of a system log
    r"tmp(?<=[/\\]tmp)(?:(?=[a-z_]*[0-9])[a-z0-9_]{4,12}|\.[A-Za-z0-9]{6,10})\b",
    r"[0-9a-fA-F][0-9a-fA-F]{7}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b",
    r"[a-f](?=[a-f]*[0-9])[0-9a-f]{7,63}\b",
    rf"[0-9](?:{'|'.join(_DIGIT_SHAPES)})",
)
_VOLATILE: Final = Pattern(rf"\b(?:{'|'.join(_SHAPES)})")

_CLOCK: Final = Pattern(
    r"[\W_]{0,8}(?:[^\W\d]\w{0,24}(?: \w{1,12})?[\"']?[ ]?[:=][ ]?[\"']?)?"
    r"[\d.,/T -]{0,16}\d:\d\d[\d:.,/TZ +-]{0,24}(?:[A-Z]{2,5})?[\W_]{0,8}\Z"
)


def is_clock(text: str) -> bool:
    """Whether a text says what time it is, and nothing else: that is what was asked."""
    return len(text) <= CLOCK_CHARS and _CLOCK.match(text) is not None


def mask(text: str) -> str:
    """Returns a text with its volatile values hidden; of a long text only head and tail."""
    head, middle, tail = mask_parts(text)
    return f"{head}{_SEAM}{tail}" if middle else head


def mask_parts(text: str) -> tuple[str, str, str]:
    """Returns the masked head, the middle as it is, the masked tail.

    A text of up to 10,243 characters is all head.
    """
    if len(text) <= _WHOLE:
        return _VOLATILE.sub(_SIGN, text), "", ""
    head, tail = _VOLATILE.sub(_SIGN, text[:HEAD]), _VOLATILE.sub(_SIGN, text[-TAIL:])
    return head, text[HEAD:-TAIL], tail
