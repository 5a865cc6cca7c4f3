"""What somebody knows of a tool beforehand."""

from __future__ import annotations

from typing import NamedTuple


class Traits(NamedTuple):
    """What is known of a tool beforehand.

    Attributes:
        poll: it asks how far something is: equal results are waiting.
        idempotent: to call it again is harmless and changes nothing: it reads.
        irreversible: what it does cannot be undone: it pays, sends, deletes.
        max_repeats: how often it may be called with the same arguments in one run until the user
            speaks; None for no limit.
    """

    poll: bool = False
    idempotent: bool = False
    irreversible: bool = False
    max_repeats: int | None = None

    def check(self) -> Traits:
        """Return it, if it can be.

        Raises:
            ValueError: it contradicts itself, or the limit is below 1.
        """
        if self.idempotent and self.irreversible:
            raise ValueError("what only reads is not irreversible: declare one of the two")
        limit = self.max_repeats
        if limit is not None and (type(limit) is not int or limit < 1):
            raise ValueError("max_repeats has to be a whole number from 1 on, or None")
        return self

    def and_also(self, other: Traits) -> Traits:
        """Both together; the other's limit comes first, and what cannot be undone is no read."""
        irreversible = self.irreversible or other.irreversible
        return Traits(
            self.poll or other.poll,
            (self.idempotent or other.idempotent) and not irreversible,
            irreversible,
            self.max_repeats if other.max_repeats is None else other.max_repeats,
        )
