"""Runs a script after `otel_loopguard.instrument()`, as a program would that sets up no SDK."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import otel_loopguard

script = sys.argv[1]
if hasattr(otel_loopguard, "instrument"):
    otel_loopguard.instrument()
sys.argv[:] = sys.argv[1:]
sys.path[0] = str(Path(script).parent)
runpy.run_path(script, run_name="__main__")
