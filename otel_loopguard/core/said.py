"""What a model said at one step, without its content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, cast

from otel_loopguard.core.sketch import Sketch, chant, sketch
from otel_loopguard.core.tuples import make

if TYPE_CHECKING:
    from otel_loopguard.core.model import Sighting

CUT: Final = frozenset({"length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_length"})
"""The words by which providers say that a response was cut off at its token limit."""
ASKING: Final = frozenset({"tool_calls", "tool_call", "tool_use", "function_call"})
"""The words by which providers say that a response asks for tools."""
_QUOTES: Final = " \t\n\"'"
_OPTION_CHARS: Final = 8


class Said(NamedTuple):
    """One utterance of a model.

    Attributes:
        sketch: of its text, or, where that is blank, of its reasoning; None if there is neither.
        blank: whether its text is blank.
        chant: how many characters at its end are one short passage again and again; 0 for none.
        passage: the length of that passage.
        thinks: whether more than half of what it wrote is reasoning, as far as both are known.
        acts: whether it asked for a tool.
        read: the tokens that it read; 0 if unknown.
        wrote: the tokens that it wrote; 0 if unknown.
    """

    sketch: Sketch | None
    blank: bool = False
    chant: int = 0
    passage: int = 0
    thinks: bool = False
    acts: bool = False
    read: int = 0
    wrote: int = 0


def said_by(sighting: Sighting) -> Said:
    """What a model call said; without sketch and not blank if that was not captured."""
    text, thought = sighting.result, sighting.thought
    text = text if type(text) is str else None
    thought = thought if type(thought) is str else None
    spoken = sketch(text) if text is not None else None
    length, passage = chant(text) if text is not None else (0, 0)
    if thought is not None and not length:
        length, passage = chant(thought)
    blank = text is not None and spoken is None
    if spoken is None and thought is not None:
        spoken = sketch(thought)
    wrote = sighting.output_tokens
    return make(
        Said,
        (
            spoken,
            blank,
            length,
            passage,
            text is not None and len(thought or "") > len(text),
            sighting.acts or sighting.finish in ASKING,
            max(0, sighting.tokens - wrote) if wrote else 0,
            wrote,
        ),
    )


def echoed(sighting: Sighting) -> Said | None:
    """What a command says that does nothing but to print its text, as if a model had said it.

    A command of one word and a text whose result is that text is one, whatever the word.
    """
    args, result = sighting.args, sighting.result
    if type(result) is not str or type(args) is not dict:
        return None
    printed = result.strip()
    for value in cast("dict[object, object]", args).values():
        if type(value) is str and 0 < len(printed) < len(value):
            text = value.strip(_QUOTES).partition(" ")[2].strip(_QUOTES)
            if text.endswith(printed) and len(text) <= len(printed) + _OPTION_CHARS:
                return Said(sketch(result))
    return None
