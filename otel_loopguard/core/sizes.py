"""How long a text is that says much."""

from __future__ import annotations

from typing import Final

BARE: Final = 32
"""Up to so many characters a result is no more than an acknowledgement, unless it is empty."""
SHORT: Final = 200
"""Up to so many characters a result or a text is short: that it is equal to another says little."""
