"""Print the settings as the Markdown table of the README: `python -m otel_loopguard.settings`."""

from __future__ import annotations

import sys

from otel_loopguard.settings import rows

sys.stdout.write("| variable | value | default | meaning |\n|---|---|---|---|\n")
sys.stdout.writelines(
    f"| `{row.variable}` | {row.allowed} | {row.default} | {row.meaning} |\n" for row in rows()
)
