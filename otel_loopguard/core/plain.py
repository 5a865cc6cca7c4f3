"""How values of plain JSON types are written in the canonical form."""

from __future__ import annotations

import json
from json.encoder import encode_basestring as quote
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

BIG: Final = 1 << 14_000
"""Whole numbers from here on are written in hexadecimal, which takes linear time."""


def writer(make_encoder: Callable[..., Any] | None) -> Callable[[object], str]:
    """Returns what writes plain JSON types, whole floats aside, in the canonical form.

    Args:
        make_encoder: makes the encoder in C that `json` makes anew for each value; None where there
            is none.
    """
    encoder = json.JSONEncoder(
        ensure_ascii=False, check_circular=False, sort_keys=True, separators=(",", ":")
    )
    if make_encoder is None:
        return encoder.encode
    write = make_encoder(
        markers=None,
        default=encoder.default,
        encoder=quote,
        indent=None,
        key_separator=encoder.key_separator,
        item_separator=encoder.item_separator,
        sort_keys=True,
        skipkeys=False,
        allow_nan=True,
    )
    return lambda value: "".join(write(value, 0))


encode: Final = writer(getattr(json.encoder, "c_make_encoder", None))
"""Writes plain JSON types, whole floats aside, in the canonical form."""


class UnknownValueError(Exception):
    """The value has no stable content, or reading it would take more work than allowed."""
