"""What `otel-loopguard doctor` says is wrong."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    """Something between the agent and the page.

    Attributes:
        id: its name, for scripts.
        what: what is the case.
        why: why that matters.
        fix: what to set or to run.
        is_problem: whether a deadlock does not get through; if not, it is worth knowing.
    """

    id: str
    what: str
    why: str
    fix: str
    is_problem: bool = True


class CannotRunError(Exception):
    """The doctor could not look; says why."""
