"""Stands for otel_loopguard where an app is to run without it."""

from __future__ import annotations

from typing import Any


def tool(function: Any = None, *, name: str | None = None) -> Any:
    """Leave the function as it is."""
    return function if function is not None else lambda function: function


agent = tool


class run:  # noqa: N801
    """Do nothing."""

    def __init__(self, name: str) -> None:
        pass

    def __enter__(self) -> run:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    async def __aenter__(self) -> run:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass
