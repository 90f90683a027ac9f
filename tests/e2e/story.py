"""A short stream with every kind of row, and all that must be equal however often its driver dies."""

import json
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from include.serving.warehouse import Warehouse
from spark_jobs.contracts.tables import LEDGER, STREAM_TABLES
from spark_jobs.settings import JobSpec
from spark_jobs.sinks.live_tables import NOTHING, Cut
from spark_jobs.sources.files import local_path
from tests.harness import CLICKS, exact, land_lines, make_spec, rows

JOB = "clicks"
TABLES = tuple(STREAM_TABLES)
IN_A_BATCH = (
    "after offsets",
    "before batch record",
    "after batch record",
    *(f"{when} {table}" for table in TABLES for when in ("before", "after")),
    "before commit log",
)
BETWEEN_LOGS = ("after source log", "after commit log")
"""Moments inside Spark's own bookkeeping, where no code of ours runs; `rewind` brings the disk into their state."""

FIRST_SECOND = 1_600_000_000
FILE_SECONDS = 150


def spec_of_story() -> JobSpec:
    """Windows so short, and lateness so small, that every class of row and every table occurs within a few files."""
    source = CLICKS | {
        "schema": "id STRING, user_id BIGINT, item_id BIGINT, behavior STRING, ts BIGINT",
        "event": {
            "event_at": "timestamp_seconds(ts)",
            "visitor_id": "cast(user_id AS string)",
            "item_id": "cast(item_id AS string)",
            "action": "CASE behavior WHEN 'pv' THEN 'view' ELSE behavior END",
            "event_id": "id",
        },
    }
    return make_spec(
        source,
        time={"allowed_lateness": "10 minutes", "deduplicate_within": "10 minutes"},
        metrics={
            "traffic": {"measures": {"buyers": exact("visitor_id", "action = 'buy'")}},  # visitors stay a sketch
            "hot_items": {"length": "10 minutes", "slide": "5 minutes", "top": 4},
        },
    )


def land_story(home: Path, seed: int, files: int, rows_a_file: int = 40) -> None:
    """Clicks in rising time; some late or too late, some sent twice, some that no rule accepts."""
    chance = random.Random(seed)
    sent: list[str] = []
    landed = []
    for number in range(files):
        start = FIRST_SECOND + number * FILE_SECONDS
        lines = []
        for row in range(rows_a_file):
            fate = chance.random()
            if fate < 0.06 and sent:
                lines.append(chance.choice(sent[-3 * rows_a_file :]))
                continue
            if fate < 0.10:
                lines.append(chance.choice(["cut off, ", "e,1,2,stare,1600000000", "e,1,2,pv,4000000000", ""]))
                continue
            behind = 0
            if fate < 0.25:
                behind = chance.randrange(60, 560)
            elif fate < 0.30:
                behind = chance.randrange(1_000, 4_000)
            at = start + chance.randrange(FILE_SECONDS) - behind
            action = chance.choices(["pv", "buy", "cart"], [8, 1, 1])[0]
            lines.append(f"s{seed}-{number}-{row},{chance.randrange(12)},{chance.randrange(7)},{action},{at}")
            sent.append(lines[-1])
        landed.append(lines)
    land_lines(home, landed)


class Trap:
    """Springs once, when `point` is reached for the nth time; commits run in threads, so it counts under a lock."""

    def __init__(self, point: str, nth: int, spring: Callable[[], None]) -> None:
        self.point, self.sprung = point, False
        self._left, self._spring = nth, spring
        self._lock = threading.Lock()

    def __call__(self, point: str) -> None:
        with self._lock:
            if self.sprung or point != self.point:
                return
            self._left -= 1
            if self._left:
                return
            self.sprung = True
        self._spring()


def checkpoint_of(home: Path) -> Path:
    return home / "jobs" / JOB / "checkpoints" / "1"


def newest_entry(folder: Path) -> int:
    return max((int(file.name) for file in folder.glob("*") if file.name.isdigit()), default=-1)


def is_first_try(home: Path) -> bool:
    """Whether the batch that Spark planned last has not run before."""
    checkpoint = checkpoint_of(home)
    return not (checkpoint / "batches" / f"{newest_entry(checkpoint / 'offsets')}.json").exists()


def rewind(home: Path, moment: str) -> None:
    """Take back the newest plan of Spark, which died before its batch did anything: what a death at `moment` leaves."""
    checkpoint = checkpoint_of(home)
    folders = [checkpoint / "offsets"]
    if moment == "after commit log":
        folders.append(checkpoint / "sources" / "0")
    for folder in folders:
        newest = newest_entry(folder)
        (folder / str(newest)).unlink()
        (folder / f".{newest}.crc").unlink(missing_ok=True)


def cut_of(home: Path, batch: int) -> Cut:
    """The cut that the row of this batch in `batches` describes."""
    if batch < 0:
        return NOTHING
    (row,) = [row for row in rows(home, "batches") if row["id"] == batch and not row["drained"]]
    return Cut(row["epoch"], batch, False, None, {}, json.loads(row["versions"]))


def numbers_at(home: Path, cut: Cut | None = None) -> dict[str, list[Any]]:
    """All that readers can learn at a cut (the newest one if none is given), without times of work and revisions."""
    warehouse = Warehouse(home, JOB)
    at = cut or warehouse.cut()
    connection = warehouse.connect(at)

    def ask(sql: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = connection.sql(sql).to_arrow_table().to_pylist()
        return found

    ledger = ", ".join([*LEDGER, *(f"total_{name}" for name in LEDGER)])
    told = f"id <= {at.batch}" + ("" if at.drained else " AND NOT drained")
    found = {
        "events": ask("SELECT * EXCLUDE (seen_at) FROM events"),
        "quarantine": ask("SELECT * EXCLUDE (seen_at) FROM quarantine"),
        "traffic_tallies": ask("SELECT * FROM traffic_tallies"),
        "item_tallies": ask("SELECT * FROM item_tallies"),
        "traffic": ask("SELECT * EXCLUDE (revision) FROM traffic"),
        "hot_items": ask("SELECT * EXCLUDE (revision) FROM hot_items"),
        "batches": ask(f"SELECT id, drained, watermark_before, watermark_after, {ledger} FROM batches WHERE {told}"),
    }
    connection.close()
    for row in (*found["events"], *found["quarantine"]):
        row["source"] = local_path(row["source"]).name
    return {name: sorted(map(repr, table)) for name, table in found.items()}


def differences(found: dict[str, list[Any]], wanted: dict[str, list[Any]]) -> dict[str, tuple[list[Any], list[Any]]]:
    """For each table that is not as wanted: a few rows too many, a few rows missing."""
    unequal = [name for name in wanted if found[name] != wanted[name]]
    return {name: (_less(found[name], wanted[name])[:3], _less(wanted[name], found[name])[:3]) for name in unequal}


def _less(rows: list[Any], others: list[Any]) -> list[Any]:
    left = list(others)
    return [row for row in rows if row not in left or left.remove(row)]  # type: ignore[func-returns-value]


def open_books(home: Path) -> list[str]:
    """What is wrong with the books: a batch missing or told twice, a ledger that does not close."""
    faults = []
    told = sorted(rows(home, "batches"), key=lambda row: (row["id"], row["drained"]))
    ids = [row["id"] for row in told if not row["drained"]]
    if ids != list(range(len(ids))):
        faults.append(f"batches are {ids}")
    running = dict.fromkeys(LEDGER, 0)
    for row in told:
        running = {name: running[name] + row[name] for name in LEDGER}
        if row["read"] != sum(row[name] for name in LEDGER[1:]):
            faults.append(f"the ledger of batch {row['id']} does not close")
        if running != {name: row[f"total_{name}"] for name in LEDGER}:
            faults.append(f"the total ledger of batch {row['id']} is not the sum of those before")
    stored = running["on_time"] + running["late"] + running["too_late"]
    if len(rows(home, "events")) != stored or len(rows(home, "quarantine")) != running["quarantined"]:
        faults.append("events and quarantine do not hold what the ledger says")
    return faults
