"""Which start of a driver a write belongs to, and the lock that keeps a second driver out."""

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from spark_jobs.contracts.layout import Layout
from spark_jobs.errors import JobLocked
from spark_jobs.sinks.json_files import read_json, write_json

FIRST_CHECKPOINT = "1"


@dataclass(frozen=True)
class Epoch:
    number: int
    checkpoint: str


def newest_epoch(layout: Layout) -> int:
    found = read_json(layout.epoch_file)
    return int(found["epoch"]) if found else 0


def current_checkpoint(layout: Layout) -> str:
    found = read_json(layout.epoch_file)
    return str(found["checkpoint"]) if found else FIRST_CHECKPOINT


def take_epoch(layout: Layout) -> Epoch:
    """The next epoch of the job, recorded before it is used; the checkpoint stays the one in use."""
    found = read_json(layout.epoch_file) or {"epoch": 0, "checkpoint": FIRST_CHECKPOINT}
    epoch = Epoch(found["epoch"] + 1, found["checkpoint"])
    write_json(layout.epoch_file, {"epoch": epoch.number, "checkpoint": epoch.checkpoint}, durable=True)
    return epoch


def lock_job(path: Path) -> IO[str]:
    """Hold the job's lock until the returned file is closed or the process ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("a+", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.seek(0)
        holder = file.read().strip() or "unknown"
        file.close()
        raise JobLocked(f"{path.parent.name} already runs as process {holder}; stop it first") from None
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file
