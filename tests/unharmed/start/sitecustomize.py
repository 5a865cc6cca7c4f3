"""Starts OpenTelemetry as `opentelemetry-instrument` does, with faults in our package before that.

Python imports this module by itself when it starts, since it is in front of the module path.
"""

from __future__ import annotations

import os

if os.environ.get("FAULTS"):
    from tests.unharmed.faults import break_

    for name in os.environ["FAULTS"].split(","):
        break_(name)

if os.environ.get("AUTO", "on") == "on":
    from opentelemetry.instrumentation.auto_instrumentation import initialize

    initialize()
