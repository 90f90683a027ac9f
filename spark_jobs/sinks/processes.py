"""Which process is meant: a pid is given again, a pid with its start time is not."""

import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def start_ticks(pid: int) -> int | None:
    """When the process started, in clock ticks since boot; None where none lives or it only waits to be buried."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def started_at(ticks: int) -> datetime:
    booted = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime"))
    return datetime.fromtimestamp(int(booted.split()[1]) + ticks / os.sysconf("SC_CLK_TCK"), UTC)


def identity(pid: int, fingerprint: str) -> dict[str, Any]:
    """What `process.json` says of a living driver."""
    ticks = start_ticks(pid) or 0
    return {
        "pid": pid,
        "started": ticks,
        "started_at": started_at(ticks).isoformat(),
        "host": socket.gethostname(),
        "fingerprint": fingerprint,
    }


def stop_id(pid: int, started: int | None) -> str:
    """The id of the one request to stop that a process can get."""
    return f"stop-{pid}-{started}"
