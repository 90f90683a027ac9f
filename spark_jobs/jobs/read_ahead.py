"""Spark reads the next batch while the one before is written: no core waits for the other's work.

Spark's log of finished batches is therefore ahead of the tables by at most one. The tables decide: `step_back` brings
the log in line with them at every start.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pyarrow as pa
from pyspark.sql import DataFrame

from spark_jobs.jobs.live_batches import LiveBatches
from spark_jobs.transforms.digest import EVENT_TYPES, ORDINAL_BITS

DELIVERED = (
    "* EXCEPT (__block, __header, __source)",
    "monotonically_increasing_id() AS row",
    f"CASE WHEN monotonically_increasing_id() & {(1 << ORDINAL_BITS) - 1} = 0"
    " THEN concat_ws(' ', __block, __header, __source) END AS place",
)
"""In one call: each that Python makes to Spark costs a small batch a millisecond."""


class ReadAhead:
    """The body of `foreachBatch`, and the one batch that is being written behind it."""

    def __init__(self, batches: LiveBatches, reached: Callable[[str], None]) -> None:
        self._batches, self._reached = batches, reached
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="batch")
        self._in_hand: Future[None] | None = None
        self._begun: dict[int, int] = {}
        self._is_stopping = False
        self.is_reading = False

    def __call__(self, frame: DataFrame, batch: int) -> None:
        if self._is_stopping:
            return  # Spark notes it as done, the tables do not hold it: the next start brings it again
        self.is_reading = True
        try:
            self._take(frame, batch)
        finally:
            self.is_reading = False

    def _take(self, frame: DataFrame, batch: int) -> None:
        self._reached("after offsets")
        started = self._begun[batch] = _now()
        rows = collect(frame)
        self.finish()
        self._begun[batch] = _now()  # waiting for the batch before is not its own time
        self._batches.refuse_if_stale()
        self._in_hand = self._writer.submit(self._write, rows, batch, started)
        self._reached("before commit log")

    def _write(self, rows: pa.Table, batch: int, started: int) -> None:
        self._batches.write(rows, batch, started)
        del self._begun[batch]

    @property
    def in_hand_since(self) -> int | None:
        """When the oldest batch that is not whole yet was begun."""
        return min(self._begun.values(), default=None)

    @property
    def has_failed(self) -> bool:
        return self._in_hand is not None and self._in_hand.done() and self._in_hand.exception() is not None

    def finish(self) -> None:
        """Wait for the batch in hand; its fault is raised here."""
        if self._in_hand is not None:
            self._in_hand.result()

    def stop(self) -> None:
        """Leave all batches that have not come yet to the next start; the one that is being read is read to its end."""
        self._is_stopping = True
        while self.is_reading:
            time.sleep(0.01)

    def close(self) -> None:
        self._writer.shutdown()


def collect(frame: DataFrame) -> pa.Table:
    """All rows of the batch as Arrow, each with its partition and ordinal; the first of a block tells its place.

    Fields that no source declares do not cross from Spark; they are NULL.
    """
    rows = frame.selectExpr(*DELIVERED).toArrow()
    for name, kind in EVENT_TYPES.items():
        if name not in rows.column_names:
            rows = rows.append_column(name, pa.nulls(rows.num_rows, kind))
    return rows


def _now() -> int:
    return time.time_ns() // 1_000
