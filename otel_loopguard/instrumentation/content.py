"""Content for spans, only where the official setting asks for it."""

from __future__ import annotations

from typing import Final

from otel_loopguard.core.canonical import canonical

MAX_CHARS: Final = 32_768


def as_text(value: object) -> str | None:
    """A value as the conventions want it on a span: text as it is, anything else as JSON.

    Cut at 32,768 characters; None if there is nothing that could be written.
    """
    text = value if isinstance(value, str) else canonical(value, named=True)
    return None if text is None else text[:MAX_CHARS]
