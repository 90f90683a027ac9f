"""Another process that asks for the numbers of the last minutes, again and again, and notes when it read what.

Run as `python -m benchmarks.paced.reader HOME PRODUCED.PARQUET SEEN.PARQUET`. It ends once it has read everything that
the producer's record names, or some time after.
"""

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from benchmarks.stream_job import JOB
from include.serving.warehouse import Warehouse
from spark_jobs.contracts.tables import BATCHES, TRAFFIC_LIVE
from spark_jobs.sinks.live_tables import Cut

PAUSE_SECONDS = 0.005
PATIENCE_SECONDS = 60
LOOKS_BACK_SECONDS = 120
INSTANT = pa.timestamp("us", "UTC")


class Sighting(NamedTuple):
    """At `read_at` (epoch seconds) the reader held this number of the minute in its hands."""

    read_at: float
    minute: int
    page_views: int


def read_minutes(warehouse: Warehouse, cut: Cut, since: float) -> dict[int, int]:
    """Page views of the minutes from `since` on, each at its highest revision, as of the cut."""
    recent = pa.scalar(int(since * 1_000_000), pa.int64()).cast(INSTANT)
    where = (ds.field("grain") == "1 minute") & (ds.field("window_start") >= recent)
    found = warehouse.table(TRAFFIC_LIVE, cut).to_pyarrow_dataset()
    rows = found.to_table(columns=["window_start", "revision", "page_views"], filter=where).to_pylist()
    rows.sort(key=lambda row: row["revision"])
    return {int(row["window_start"].timestamp()): row["page_views"] for row in rows}


def watch(warehouse: Warehouse, produced: Path) -> Iterator[Sighting]:
    """What is read after each commit to `batches`, until all that was produced is seen or patience ends."""
    seen: dict[int, int] = {}
    for cut in _new_cuts(warehouse, partial(_is_over, produced, seen)):
        found = read_minutes(warehouse, cut, time.time() - LOOKS_BACK_SECONDS)
        read_at = time.time()
        seen.update(found)
        yield from (Sighting(read_at, minute, page_views) for minute, page_views in found.items())


def _new_cuts(warehouse: Warehouse, is_over: Callable[[], bool]) -> Iterator[Cut]:
    """Each cut as it appears. Looking at the age of the log is cheap: asking for the cut all the time would slow the
    stream on the same cores.
    """
    log = warehouse.folder / BATCHES / "_delta_log"
    read_change = 0
    while not is_over():
        if (change := log.stat().st_mtime_ns) == read_change:
            time.sleep(PAUSE_SECONDS)
            continue
        read_change = change
        yield warehouse.cut()


def _is_over(produced: Path, seen: dict[int, int]) -> bool:
    if not produced.exists():
        return False
    if time.time() > produced.stat().st_mtime + PATIENCE_SECONDS:
        return True
    return all(seen.get(minute, 0) >= views for minute, views in _minute_totals(produced).items())


def _minute_totals(produced: Path) -> dict[int, int]:
    totals = pq.read_table(produced).group_by("minute").aggregate([("page_views", "max")])
    return dict(zip(totals["minute"].to_pylist(), totals["page_views_max"].to_pylist(), strict=True))


def main(home: str, produced: str, target: str) -> None:
    sightings = list(watch(Warehouse(Path(home), JOB), Path(produced)))
    pq.write_table(pa.Table.from_pylist([sighting._asdict() for sighting in sightings]), target)


if __name__ == "__main__":
    main(*sys.argv[1:])
