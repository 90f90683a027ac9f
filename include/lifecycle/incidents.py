"""The history of a job in a file that outlives every database: one line an incident."""

import json
import os
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from include.lifecycle.model import Incident

KEPT = 1_000
"""Lines that are read; a job that has more of them is in trouble for other reasons."""


def append_incident(path: Path, incident: Incident) -> None:
    """In one write, so that lines of several processes do not mix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(asdict(incident) | {"at": incident.at.isoformat()}, ensure_ascii=False) + "\n"
    target = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(target, line.encode())
        os.fsync(target)
    finally:
        os.close(target)


def read_incidents(path: Path) -> tuple[Incident, ...]:
    """The newest incidents, oldest first; a line that was cut off by a crash is passed over."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[-KEPT:]
    except FileNotFoundError:
        return ()
    return tuple(found for line in lines if (found := _incident(line)))


def _incident(line: str) -> Incident | None:
    try:
        held = json.loads(line)
        return Incident(**(held | {"at": datetime.fromisoformat(held["at"])}))
    except (ValueError, TypeError, KeyError):
        return None
