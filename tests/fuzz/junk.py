"""Values that nobody expects, and how much memory an object holds."""

from __future__ import annotations

import gc
import sys
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from random import Random

TEXTS: Final = (
    *("", " ", "\n\n", "{}", "[]", "{", '{"a":', "null", "<REDACTED>", "\x00\x1b[31m", "\ud800"),
    *(
        "工具不存在",
        "🙃" * 50,
        "-1",
        "1e999",
        "NaN",
        "error",
        "Error: no",
        "done",
        "true",
        "a" * 9000,
    ),
    *("[" * 3000, '"' * 999, "2026-01-01T00:00:00Z", "0x7f3a2b1c", "still running", "~", "%s%n{}"),
)
NUMBERS: Final = (0, 1, -1, 2**31, 2**63 - 1, -(2**63), 10**30, 0.0, -0.5, 1e308, float("inf"))
PLAIN: Final = (*TEXTS, *NUMBERS, float("nan"), None, True, False)
_SHARED: Final = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)


def value(random: Random, depth: int = 3) -> Any:
    """Anything that JSON can say, more or less."""
    kind = random.randrange(8) if depth else 0
    if kind == 7:
        return [value(random, depth - 1) for _ in range(random.randrange(4))]
    if kind == 6:
        keys = (random.choice([*TEXTS[:12], "status", "error", "id"]) for _ in range(4))
        return {key: value(random, depth - 1) for key in keys}
    return random.choice(PLAIN)


def mangled(random: Random, text: str) -> str:
    """A text that was cut, doubled or disturbed."""
    at = random.randrange(len(text) + 1)
    return random.choice(
        [text[:at], text[at:], text * 2, text[:at] + random.choice(TEXTS[:20]) + text[at:]]
    )


def weight(root: object) -> int:
    """The bytes that an object and all that it refers to take up, code left out."""
    seen: set[int] = set()
    queue, total = [root], 0
    while queue:
        each = queue.pop()
        if id(each) in seen or isinstance(each, _SHARED):
            continue
        seen.add(id(each))
        total += sys.getsizeof(each)
        queue += gc.get_referents(each)
    return total
