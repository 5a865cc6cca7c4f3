"""The best simple rules that we know, to compare with: an equal call so often of the last so many.

They see a case as one list of tool calls, whoever made them.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from otel_loopguard.core.masking import mask

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from tests.accuracy.suites import Case, Hits

Call = dict[str, Any]


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _call(step: Call) -> Hashable:
    return step["tool"], _text(step.get("args"))


def _masked(step: Call) -> Hashable:
    return step["tool"], mask(_text(step.get("args"))), mask(_text(step.get("result")))


@dataclass(frozen=True)
class Rule:
    """Speaks at a call that is at least the `count`th like it among the newest `window` calls."""

    name: str
    alike: Callable[[Call], Hashable]
    count: int
    window: int

    def hits(self, case: Case) -> Hits:
        """The steps at which it speaks."""
        newest: deque[Hashable] = deque(maxlen=self.window)
        found: Hits = []
        for at, step in enumerate(case["steps"], 1):
            if step["kind"] == "tool":
                newest.append(key := self.alike(step))
                if newest.count(key) >= self.count:
                    found.append(at)
        return found


RULES = (
    Rule("same call 5 of 20", _call, 5, 20),
    Rule("same call and result, masked, 5 of 30", _masked, 5, 30),
)
