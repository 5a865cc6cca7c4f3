"""What a repeat counts that is less than certain."""

from __future__ import annotations

from typing import Final

MASKED_WEIGHT: Final = 0.5
"""A result that is equal but for what changes by itself, as times and ids do."""
LONG_WEIGHT: Final = 0.75
"""The same for one of many words: all of them are equal."""
