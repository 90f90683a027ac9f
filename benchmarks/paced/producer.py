"""Clicks at a steady pace, a small file every tick, and a record of what each file added to which minute.

Run as `python -m benchmarks.paced.producer PACE.JSON LANDING PRODUCED.PARQUET`; the record appears when all is landed.
"""

import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.paced.pace import Pace
from include.producer.clicks import BEHAVIORS, Clicks, ClickShape, Floats, draw_clicks
from include.producer.landing import Landing
from include.producer.lines import to_bytes, to_lines

VIEW = BEHAVIORS.index("pv")
SEED = 1


def produce(pace: Pace, landing: Landing) -> pa.Table:
    """Land every file at its time; one row for each file and minute."""
    numbers = np.arange(pace.events)
    clicks = draw_clicks(np.random.default_rng(SEED), ClickShape(), pace.made_at(numbers).astype(np.int64), 0)
    lines = to_lines(clicks, None)
    landed_at = np.empty(pace.files)
    for file in range(pace.files):
        content = to_bytes(lines.slice(file * pace.rows_per_file, pace.rows_per_file))
        time.sleep(max(0.0, pace.lands_at(file) - time.time()))
        with landing.file("clicks.csv") as out:
            out.write(content)
        landed_at[file] = time.time()
    return _record(pace, clicks, landed_at)


def _record(pace: Pace, clicks: Clicks, landed_at: Floats) -> pa.Table:
    """`page_views` is the minute's with this file and all before it; `first` and `events` name its rows in the file."""
    file = np.arange(pace.events) // pace.rows_per_file
    is_view = (clicks.behavior == VIEW).astype(np.int64)
    rows = pa.table({"file": file, "minute": clicks.ts // 60 * 60, "number": clicks.number, "views": is_view})
    pieces = (
        rows.group_by(["file", "minute"])
        .aggregate([("number", "min"), ("number", "count"), ("views", "sum")])
        .rename_columns(["file", "minute", "first", "events", "views"])
        .sort_by([("minute", "ascending"), ("file", "ascending")])
    )
    views, minute = pieces["views"].to_numpy(), pieces["minute"].to_numpy()
    total = np.cumsum(views)
    before = np.r_[0, total][np.searchsorted(minute, minute)]
    return pieces.append_column("page_views", pa.array(total - before)).append_column(
        "landed_at", pc.take(pa.array(landed_at), pieces["file"])
    )


def main(pace_file: str, directory: str, target: str) -> None:
    record = produce(Pace.load(Path(pace_file)), Landing(Path(directory)))
    draft = Path(target).with_suffix(".draft")
    pq.write_table(record, draft)
    draft.rename(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
