"""A progress bar on the terminal, for input that takes a while."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from types import TracebackType

    from typing_extensions import Self

LONG: Final = 20_000_000
"""Bytes from which on the input is long."""


class Progress:
    """How far the files have been read; shown only where somebody looks, and where it takes long.

    Args:
        names: the files.
    """

    def __init__(self, names: Sequence[str]) -> None:
        size = sum(path.stat().st_size for path in map(Path, names) if path.is_file())
        self._bar: Bar | None = None
        if size >= LONG and sys.stderr.isatty():
            console = Console(stderr=True)
            self._bar = Bar(
                BarColumn(),
                DownloadColumn(),
                TimeRemainingColumn(),
                console=console,
                transient=True,
            )
            self._task = self._bar.add_task("", total=size)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, count: int) -> None:
        """So many more bytes were read."""
        if self._bar is not None:
            self._bar.advance(self._task, count)

    @contextmanager
    def aside(self) -> Generator[None]:
        """Print something while the bar is out of the way."""
        if self._bar is not None:
            self._bar.stop()
        yield
        if self._bar is not None:
            self._bar.start()

    def say(self, text: str) -> None:
        """Print a line beside the results."""
        with self.aside():
            print(text, file=sys.stderr)
