"""What is done about a loop."""

from __future__ import annotations

from otel_loopguard.core.model import Word


class Action(Word):
    """What the guard does about a loop, besides telling of it."""

    OBSERVE = "observe"
    SHADOW = "shadow"  # decide, and only say what would have been done
    NUDGE = "nudge"  # answer the repeated call with a note
    BREAK = "break"  # the same, and stop the run where notes do not help
