"""Stuck runs in the processes of a Celery worker, whose broker is a folder.

`celery -A tests.e2e.celery_app worker` has one more stuck run with each task; `celery_app.py TASKS`
sends so many and prints the process ids of the workers that took them. FOLDER is the broker's.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from celery import Celery, group

from tests.e2e.workers import get_stuck

FOLDER = Path(os.environ["FOLDER"])

app = Celery("workers", broker="filesystem://", backend=f"file://{FOLDER}")
app.conf.broker_transport_options = {
    "data_folder_in": str(FOLDER),
    "data_folder_out": str(FOLDER),
    "control_folder": str(FOLDER),
}
app.conf.worker_prefetch_multiplier = 1
task = app.task(get_stuck, name="get_stuck")


def main() -> None:
    """Send the tasks."""
    print(*group(task.s() for _ in range(int(sys.argv[1]))).delay().get(timeout=60))


if __name__ == "__main__":
    main()
