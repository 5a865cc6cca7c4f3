"""Rows come with the framework."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from otel_loopguard.instrumentation.table import Row

ROWS: tuple[Row, ...] = ()
