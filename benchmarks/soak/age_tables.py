"""Tables that look back on many commits: a day of one a second, made in a minute.

An entry of a Delta log is one JSON file; one without actions but its own description is a valid, empty commit. Written
one by one through a client, a day of them would take hours.
"""

import json
import time
from pathlib import Path

from deltalake import DeltaTable

from spark_jobs.contracts.tables import STREAM_TABLES

CHECKPOINT_EVERY = 10_000


def age_tables(folder: Path, commits: int) -> None:
    """Add so many empty commits to every table in `folder`, one a second up to now, checkpointed as they go."""
    for name in STREAM_TABLES:
        _age(folder / name, commits)


def _age(path: Path, commits: int) -> None:
    first = DeltaTable(str(path)).version() + 1
    began = int(time.time()) - commits
    for number in range(commits):
        info = {"timestamp": (began + number) * 1_000, "operation": "WRITE", "operationParameters": {"mode": "Append"}}
        entry = path / "_delta_log" / f"{first + number:020d}.json"
        entry.write_text(json.dumps({"commitInfo": info}) + "\n", encoding="utf-8")
        if (number + 1) % CHECKPOINT_EVERY == 0 or number + 1 == commits:
            DeltaTable(str(path)).create_checkpoint()
