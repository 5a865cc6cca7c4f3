"""The forms of two settings about tool calls: what is declared of tools, and who is asked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, cast

from otel_loopguard.core.traits import Traits
from otel_loopguard.settings.forms import Form, MalformedError, number, read_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from otel_loopguard.breaking.questions import Request

_FLAGS: Final = ("poll", "idempotent", "irreversible")
_LIMIT: Final = "max_repeats"
_TIMES: Final = number(1)
MAX_TOOLS_TEXT: Final = 20_000
_WHERE: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def _traits(words: object) -> Traits:
    """What is declared of one tool: `poll,max_repeats=5`, or a mapping of the same."""
    if isinstance(words, dict):
        given = list(cast("dict[object, object]", words).items())
    else:
        parts = [word.partition("=") for word in read_text(words).split(",") if word.strip()]
        given = [(name, number if sign else True) for name, sign, number in parts]
    said: dict[str, Any] = {}
    for key, value in given:
        name = read_text(key)
        if name in _FLAGS and isinstance(value, bool):
            said[name] = value
        elif name == _LIMIT:
            said[name] = _TIMES.read(value)
        else:
            raise MalformedError
    if not said:
        raise MalformedError
    return Traits(**said).check()


def _read_tools(raw: object) -> Mapping[str, Traits]:
    """For each tool what is declared: `status:poll;pay:irreversible`, or a mapping."""
    if isinstance(raw, dict):
        given = list(cast("dict[object, object]", raw).items())
    else:
        text = read_text(raw, MAX_TOOLS_TEXT)
        parts = [part.rpartition(":") for part in text.split(";") if part.strip()]
        given = [(name, words) for name, _, words in parts]
    read: dict[str, Traits] = {}
    for key, words in given:
        name, traits = read_text(key), _traits(words)
        if not name:
            raise MalformedError
        read[name] = read[name].and_also(traits) if name in read else traits
    if raw and not read:
        raise MalformedError
    return read


def _show_tools(value: object) -> str:
    tools = cast("Mapping[str, Traits]", value or {})
    return ";".join(f"{name}:{_show(traits)}" for name, traits in tools.items()) or "unset"


def _show(traits: Traits) -> str:
    words = [name for name in _FLAGS if getattr(traits, name)]
    if traits.max_repeats is not None:
        words.append(f"{_LIMIT}={traits.max_repeats}")
    return ",".join(words)


@dataclass(frozen=True, slots=True)
class Named:
    """Who is asked, by name: loaded when first asked. What fails then is no answer, so a no."""

    where: str

    async def __call__(self, request: Request, /) -> object:
        """Ask."""
        module, _, name = self.where.partition(":")
        return await getattr(import_module(module), name)(request)


def _read_asker(raw: object) -> object:
    if callable(raw) and not isinstance(raw, type):
        return raw
    text = read_text(raw)
    if not _WHERE.fullmatch(text):
        raise MalformedError
    return Named(text)


def _show_asker(value: object) -> str:
    if isinstance(value, Named):
        return value.where
    return "unset" if value is None else "the other one"


TOOLS: Final = Form(
    "`tool:what` with semicolons between; what: any of poll, idempotent, irreversible, "
    "max_repeats=NUMBER, with commas between",
    _read_tools,
    _show_tools,
)
ASKER: Final = Form(
    "`module:name` of an async function; in code the function", _read_asker, _show_asker
)
