"""Hides volatile values in results by their shape: times, ids, durations, but never every number."""

from __future__ import annotations

import re
from typing import Final

HEAD: Final = 8_192
TAIL: Final = 2_048
_SIGN: Final = "~"

_KEYS: Final = (
    r"[A-Za-z-]*(?:request|trace|span|correlation|session|message|event|process|invocation)[_-]?[Ii][Dd]"
    r"|timestamp|ts|pid|nonce|(?:created|updated|generated|fetched|started|finished)[_-]?[Aa]t"
    r"|elapsed\w{0,12}|duration_\w{1,12}|durationMs|latency\w{0,12}|took\w{0,12}|response_?[Tt]ime\w{0,12}"
)
_VOLATILE: Final = re.compile(
    "|".join(
        (
            # a key whose value is volatile, with the value
            rf"(?<!\w)(?:{_KEYS})[\"']?[ \t]?[:=][ \t]?(?:\"[^\"\n]{{0,200}}\"?|'[^'\n]{{0,200}}'?|[^\s,;\"'\]}})&]{{1,200}})",
            # uuid
            r"(?<!\w)[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?!\w)",
            # date and time
            r"(?<!\w)\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?(?!\w)",
            # clock
            r"(?<![\w:.])\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?(?![\w:])",
            # epoch
            r"(?<![\w.-])1[4-9]\d{8}(?:\d{3})?(?:\.\d{1,9})?(?![\w.-])",
            # addresses and hex ids
            r"(?<!\w)0x[0-9a-fA-F]{6,16}(?!\w)",
            r"(?<!\w)(?=[0-9a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{8,64}(?!\w)",
            # durations
            r"(?<![\w.])(?!(?:1[89]|20)\d0s)\d{1,7}(?:\.\d{1,9})?[ ]?(?:ns|us|\u00b5s|ms|s|secs?|seconds?)(?!\w)",
            # processes
            r"(?<=[A-Za-z])\[\d{2,7}\](?=:)",
            r"(?<!\w)(?:pid|PID|[Pp]rocess)[ ]\d{2,7}(?!\w)",
            # temporary files
            r"(?<=[/\\])tmp(?:(?=[a-z_]*[0-9])[a-z0-9_]{4,12}|\.[A-Za-z0-9]{6,10})(?!\w)",
        )
    )
)


def mask(text: str) -> str:
    """Returns a text with its volatile values hidden; of a long one only head and tail."""
    if len(text) <= HEAD + TAIL:
        return _VOLATILE.sub(_SIGN, text)
    head, _, tail = mask_parts(text)
    return f"{head}\n\u2026\n{tail}"


def mask_parts(text: str) -> tuple[str, str, str]:
    """Returns masked head, middle as it is, masked tail. A text of up to 10 kB is all head."""
    if len(text) <= HEAD + TAIL:
        return _VOLATILE.sub(_SIGN, text), "", ""
    return (
        _VOLATILE.sub(_SIGN, text[:HEAD]),
        text[HEAD:-TAIL],
        _VOLATILE.sub(_SIGN, text[-TAIL:]),
    )
