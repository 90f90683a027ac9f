"""What is there to see of a job; looking changes nothing."""

import json
import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from include.lifecycle.incidents import read_incidents
from include.lifecycle.model import Desired, Ended, Heartbeat, Observation, Process, Wish
from spark_jobs.contracts.layout import Layout
from spark_jobs.sinks.processes import stop_id

IsAlive = Callable[[Process], bool]


def observe(layout: Layout, is_alive: IsAlive, lease: timedelta, refusal: str | None = None) -> Observation:
    """On another host a driver lives while its heartbeat is younger than `lease`: its pid says nothing here."""
    process, now = read_process(layout), datetime.now(UTC)
    heartbeat = _heartbeat(layout, process)
    is_elsewhere = process is not None and process.host not in ("", socket.gethostname())
    has_lease = heartbeat is not None and now - heartbeat.at < lease
    return Observation(
        now=now,
        desired=read_desired(layout),
        process=process,
        is_alive=process is not None and (has_lease if is_elsewhere else is_alive(process)),
        heartbeat=heartbeat,
        ended=_ended(layout, process),
        stop_asked_at=_stop_asked_at(layout, process),
        refusal=refusal,
        incidents=read_incidents(layout.incidents_file),
    )


def read_process(layout: Layout) -> Process | None:
    held = _read(layout.process_file)
    if "pid" not in held or "started" not in held:
        return None
    at = held.get("started_at") or datetime.fromtimestamp(layout.process_file.stat().st_mtime, UTC).isoformat()
    return Process(
        held["pid"], held["started"], datetime.fromisoformat(at), held.get("fingerprint", ""), held.get("host", "")
    )


def read_desired(layout: Layout) -> Desired:
    held = _read(layout.desired_file)
    if not held:
        return Desired()
    return Desired(
        Wish(held["state"]), held.get("reason", ""), _time(held.get("since")), _time(held.get("restart_before"))
    )


def _heartbeat(layout: Layout, process: Process | None) -> Heartbeat | None:
    """None for a heartbeat of an earlier process."""
    held = _read(layout.progress_file)
    at = _time(held.get("heartbeat_at"))
    if at is None or process is None or at < process.started_at:
        return None
    return Heartbeat(at, held.get("batch"), _time(held.get("in_hand_since")))


def _ended(layout: Layout, process: Process | None) -> Ended | None:
    held = _read(layout.ended_file)
    if process is None or (held.get("pid"), held.get("started")) != (process.pid, process.started):
        return None
    return Ended(datetime.fromisoformat(held["at"]), held["code"], held["reason"], held["finished"])


def _stop_asked_at(layout: Layout, process: Process | None) -> datetime | None:
    if process is None:
        return None
    name = f"{stop_id(process.pid, process.started)}.json"
    for folder in (layout.inbox, layout.outbox):
        try:
            return datetime.fromtimestamp((folder / name).stat().st_mtime, UTC)
        except FileNotFoundError:
            continue
    return None


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _read(path: Path) -> dict[str, Any]:
    """What the file holds; one that is absent or was damaged holds nothing."""
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return held if isinstance(held, dict) else {}
