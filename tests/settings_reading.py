"""Read settings and collect what is warned of."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from otel_loopguard.settings import Settings, from_env, rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PREFIX = "OTEL_LOOPGUARD_"
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
ENV_NAMES = [row.variable for row in rows()]


class Lines(logging.Handler):
    """The warnings that were logged, as text."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        assert record.levelno == logging.WARNING
        self.texts.append(record.getMessage())


@contextmanager
def logged() -> Iterator[list[str]]:
    lines, logger = Lines(), logging.getLogger("otel_loopguard")
    logger.addHandler(lines)
    try:
        yield lines.texts
    finally:
        logger.removeHandler(lines)


def read(environ: Mapping[str, str] | None = None, **overrides: object) -> Settings:
    """Read settings that nothing is wrong with."""
    with logged() as warnings:
        settings = from_env(environ or {}, **overrides)
    assert warnings == []
    return settings


def read_badly(
    environ: Mapping[str, str] | None = None, **overrides: object
) -> tuple[Settings, str]:
    """Read settings that one thing is wrong with."""
    with logged() as warnings:
        settings = from_env(environ or {}, **overrides)
    assert len(warnings) == 1, warnings
    return settings, warnings[0]
