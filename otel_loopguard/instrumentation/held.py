"""What stands in for a tool call that is not made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from otel_loopguard.core.decision import DeadlockError
    from otel_loopguard.instrumentation.drive import Scope


class Held:
    """A tool call that is held back: what it gives instead of a result, or raises.

    Args:
        instead: what is given back in place of the tool's result.
        error: what is raised instead, if the run is stopped.
    """

    __slots__ = ("error", "instead")

    def __init__(self, instead: object, error: DeadlockError | None) -> None:
        self.instead = instead
        self.error = error

    def settled(self) -> Scope | Held:
        """What has become of it: a call that is made after all, or one that is not."""
        return self

    async def settled_async(self) -> Scope | Held:
        """The same in async code, where it may take a while."""
        return self

    def give(self) -> Any:
        """End the call that was not made.

        Raises:
            DeadlockError: the run is stopped.
        """
        if self.error is not None:
            raise self.error
        return self.instead
