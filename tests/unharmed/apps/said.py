"""How the apps print what they get back: results, and exceptions with all that hangs on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


def show(label: str, function: Callable[[], Any]) -> None:
    """Print what a call gives back or raises."""
    try:
        result = function()
    except BaseException as error:
        _print(f"{label} raised {raised(error)}")
    else:
        _print(f"{label} gave {given(result)}")


async def ashow(label: str, function: Callable[[], Awaitable[Any]]) -> None:
    """Print what awaiting gives back or raises."""
    try:
        result = await function()
    except BaseException as error:
        _print(f"{label} raised {raised(error)}")
    else:
        _print(f"{label} gave {given(result)}")


def _print(line: str) -> None:
    print(line.encode("utf-8", "backslashreplace").decode(), flush=True)


def given(result: Any) -> str:
    """A value in one line: its type, and as much of it as is safe to look at."""
    kind = type(result)
    if kind in (str, bytes, list, dict, tuple) and len(result) > 200:
        return f"{kind.__name__} of length {len(result)}"
    if kind in (str, bytes, int, float, bool, type(None), list, dict, tuple):
        return f"{kind.__name__} {_safe(repr, result)}"
    return kind.__name__


def _safe(write: Callable[[Any], str], value: Any) -> str:
    try:
        return write(value)
    except BaseException as fault:
        return f"cannot be written: {type(fault).__name__}"


def raised(error: BaseException | None) -> str:
    """An exception: its type, its message, its cause, its context."""
    if error is None:
        return "nothing"
    kind = type(error)
    message = f"{_safe(BaseException.__repr__, error)} ({_safe(str, error)})"
    notes = getattr(error, "__notes__", [])
    return (
        f"{kind.__module__}.{kind.__qualname__}: {message} {notes} "
        f"cause ({raised(error.__cause__)}) context ({raised(error.__context__)}) "
        f"suppressed {error.__suppress_context__}"
    )
