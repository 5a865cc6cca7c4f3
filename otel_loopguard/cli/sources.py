"""The files that are read: plain or gzip, JSON lines or one document, of any size."""

from __future__ import annotations

import gzip
import io
import json
import sys
import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple, cast

from otel_loopguard.cli.decoding import Piece, split
from otel_loopguard.dialects import archives
from otel_loopguard.dialects.documents import LONGEST, Document
from otel_loopguard.dialects.otlp import MALFORMED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from otel_loopguard.dialects.archives import Form

STDIN: Final = "-"
STRIDE: Final = 1_000_000
"""Bytes after which progress is told again."""
_GZIP: Final = b"\x1f\x8b"
_TORN: Final = (OSError, EOFError, zlib.error)
"""What reading a file raises that is not there, or whose end is missing."""


class Case(NamedTuple):
    """A line with the steps of one case."""

    line: int
    held: Mapping[str, object]


class Broken(NamedTuple):
    """A place that could not be read; `line` is 0 for a whole file."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        where = f"{self.file}, line {self.line}" if self.line else self.file
        return f"{where}: {self.reason}"


class Share(NamedTuple):
    """Which part of the work is done here: one of so many."""

    part: int = 0
    of: int = 1

    def has(self, number: int) -> bool:
        """Whether a thing with this number belongs to this part."""
        return number % self.of == self.part


ALL: Final = Share()


class Source:
    """One file, or the standard input under the name `-`.

    Args:
        name: its path.
        form: the shape of what is in it; by content if None.
        share: which cases are wanted, and which broken lines. Spans are all given.
        tick: hears now and then of how many more bytes of the file were read.
    """

    def __init__(
        self,
        name: str,
        form: Form | None = None,
        share: Share = ALL,
        tick: Callable[[int], object] | None = None,
    ) -> None:
        self.name = name
        self._form: Form | None = form
        self._share = share
        self._tick = tick
        self._raw: BinaryIO | None = None
        self._told = 0

    def read(self) -> Iterator[Case | list[Piece] | Broken]:
        """All that is in the file; what cannot be read is named and passed over."""
        try:
            with ExitStack() as stack:
                for item in self._read(self._open(stack)):
                    self._tell()
                    yield item
        except _TORN as fault:
            if self._share.has(0):
                said = fault.strerror if isinstance(fault, OSError) else None
                yield Broken(self.name, 0, said or f"not read to its end ({fault})")

    def _tell(self) -> None:
        if self._tick is None or self._raw is None:
            return
        position = self._raw.tell()
        if position - self._told >= STRIDE:
            self._tick(position - self._told)
            self._told = position

    def _open(self, stack: ExitStack) -> io.BufferedReader:
        if self.name == STDIN:
            raw = sys.stdin.buffer
        else:
            raw = self._raw = stack.enter_context(Path(self.name).open("rb"))  # noqa: SIM115 - it is one
        buffered = cast("io.BufferedReader", raw)
        if buffered.peek(2)[:2] != _GZIP:
            return buffered
        unpacked = stack.enter_context(gzip.GzipFile(fileobj=buffered))
        return io.BufferedReader(cast("io.RawIOBase", unpacked))

    def _read(self, lines: io.BufferedReader) -> Iterator[Case | list[Piece] | Broken]:
        number, line = 0, b"\n"
        while line and not line.strip():
            number, line = number + 1, lines.readline(LONGEST)
        if line and _begins_document(line, lines.peek(1)[:1]):
            yield from self._document(line, lines)
            return
        while line:
            if len(line) == LONGEST:
                while line and not line.endswith(b"\n"):
                    line = lines.readline(LONGEST)
                yield from self._broken(number, f"longer than {LONGEST} bytes")
            elif line.strip() and (self._form != "steps" or self._share.has(number)):
                yield from self._line(line, number)
            number, line = number + 1, lines.readline(LONGEST)

    def _broken(self, number: int, reason: str) -> Iterator[Broken]:
        if self._share.has(number):
            yield Broken(self.name, number, reason)

    def _line(self, line: bytes, number: int) -> Iterator[Case | list[Piece] | Broken]:
        pieces = split(line, number) if self._form == "otlp" else None
        if pieces is not None:
            yield pieces
            return
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as fault:
            yield from self._broken(number, f"no JSON ({fault})")
            return
        try:
            yield self._value(value, number, len(line))
        except MALFORMED as fault:
            yield from self._broken(number, f"no {self._form or 'known'} line ({named(fault)})")

    def _value(self, value: object, number: int, size: int) -> Case | list[Piece]:
        form = self._form or archives.form_of(value)
        if form is None:
            raise ValueError("neither steps nor spans of OTLP, Jaeger or the SDK")
        self._form = form
        if form == "steps":
            case = cast("Mapping[str, object]", value)
            if not isinstance(case["steps"], list):
                raise ValueError("its steps are no list")
            return Case(number, case) if self._share.has(number) else []
        found = list(archives.found(value, form))
        size = size // len(found) if found else 0
        return [Piece(archives.trace_of(each.held), each, size, number) for each in found]

    def _document(self, first: bytes, rest: io.BufferedReader) -> Iterator[list[Piece] | Broken]:
        text = io.TextIOWrapper(cast("BinaryIO", _Joined(first, rest)), "utf-8-sig")
        document = Document(text.read)
        try:
            for found in document.spans():
                try:
                    trace = archives.trace_of(found.held)
                except MALFORMED as fault:  # noqa: PERF203 - each is named
                    yield from self._broken(document.line, f"no span ({named(fault)})")
                else:
                    yield [Piece(trace, found, document.size, document.line)]
        except ValueError as fault:
            yield from self._broken(document.line, f"no JSON ({fault})")


class _Joined(io.RawIOBase):
    """What was read already, then the rest."""

    def __init__(self, first: bytes, rest: io.BufferedReader) -> None:
        self._first = first
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        into = memoryview(cast("bytearray", buffer))
        data = self._first[: len(into)] or self._rest.read1(len(into))
        self._first = self._first[len(data) :]
        into[: len(data)] = data
        return len(data)


def named(fault: Exception) -> str:
    """What went wrong: what we say ourselves as it is, else with the kind of fault."""
    return str(fault) if type(fault) is ValueError else f"{type(fault).__name__}: {fault}"


def _begins_document(line: bytes, after: bytes) -> bool:
    """Whether a first line that is no JSON by itself is where a longer document begins."""
    if len(line) < LONGEST and line.strip() not in (b"{", b"[") and after in (b"{", b""):
        return False
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return True
    return False
