"""How values of plain JSON types are written in the canonical form."""

from __future__ import annotations

import json
from typing import Final

BIG: Final = 1 << 14_000
"""Whole numbers from here on are written in hexadecimal, which takes linear time."""

encode: Final = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, sort_keys=True, separators=(",", ":")
).encode
"""Writes plain JSON types, whole floats aside, in the canonical form."""


class UnknownValueError(Exception):
    """The value has no stable content, or reading it would take more work than allowed."""
