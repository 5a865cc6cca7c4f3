"""Content for spans, only where the official setting asks for it."""

from __future__ import annotations

import json
from typing import Final

from otel_loopguard.core.model import MISSING

MAX_CHARS: Final = 32_768


def as_text(value: object) -> str:
    """A value as the conventions want it on a span: text as it is, anything else as JSON."""
    if value is MISSING:
        return ""
    if isinstance(value, str):
        return value[:MAX_CHARS]
    return json.dumps(value, default=repr, ensure_ascii=False, skipkeys=True)[:MAX_CHARS]
