"""What happens to a batch of the live stream, from the rows that Spark delivered to the row in `batches`."""

import hashlib
import json
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from spark_jobs.contracts.layout import Layout
from spark_jobs.contracts.tables import (
    BATCHES,
    EVENTS,
    HOT_ITEMS_LIVE,
    ITEM_TALLIES,
    LEDGER,
    QUARANTINE,
    TRAFFIC_LIVE,
    TRAFFIC_TALLIES,
)
from spark_jobs.contracts.windows import DAY, micros, to_instant
from spark_jobs.errors import LedgerError, OutOfStep, SourceError, StaleEpoch
from spark_jobs.settings import JobSpec
from spark_jobs.sinks.batch_record import BatchRecord, BatchRecords
from spark_jobs.sinks.epochs import Epoch, newest_epoch
from spark_jobs.sinks.live_tables import Cut, LiveTables, finish_appends
from spark_jobs.sinks.upkeep import EVERY_BATCHES, VACUUM_EVERY_BATCHES, folds, sweep, tidy
from spark_jobs.sources.files import archive, local_path, planned_files
from spark_jobs.transforms.classify_arrival import SeenIds
from spark_jobs.transforms.digest import Recipe, Sorted, in_landing_order, sort_rows, tally_rows
from spark_jobs.transforms.hot_items import HotItems
from spark_jobs.transforms.traffic import INSTANT, TrafficWindows

Files = dict[Path, tuple[int, int]]
"""When each file of a batch arrived (microseconds), and its size."""


@dataclass(frozen=True)
class BatchReport:
    """What a finished batch tells the people who watch."""

    cut: Cut
    counts: dict[str, int]
    files: int
    started: int
    ended: int
    waited: int  # microseconds from the arrival of the batch's oldest file to the commit


def ignore(point: str) -> None:
    """Nobody waits at this point."""


class LiveBatches:
    """Everything a batch needs, rebuilt from the tables at every start."""

    def __init__(
        self,
        layout: Layout,
        recipe: Recipe,
        epoch: Epoch,
        reached: Callable[[str], None] = ignore,
        report: Callable[[BatchReport], None] = lambda report: None,
    ) -> None:
        self._layout, self._recipe, self._epoch = layout, recipe, epoch
        self._spec: JobSpec = recipe.spec
        self._reached, self._report = reached, report
        self._rules = _fingerprint(self._spec)
        self._checkpoint = layout.checkpoint(epoch.checkpoint)
        self._records = BatchRecords(self._checkpoint / "batches", self._spec.savepoints.retained_batches)
        dimensions = list(recipe.dimensions)
        self._traffic = TrafficWindows(
            self._spec.time.calendar, self._spec.metrics.traffic.all_grains, dimensions, recipe.measures
        )
        self._hot = HotItems(self._spec.sliding, self._spec.metrics.hot_items.top)
        self._tables = LiveTables(layout, dimensions, recipe.measures)
        self._tables.fence(epoch.number)
        self.cut = self._tables.cut()
        self._seen = SeenIds(micros(self._spec.time.remember_ids)) if self._spec.has_ids else None
        self._folds = folds(dimensions, recipe.measures)
        self._rebuild()

    def _rebuild(self) -> None:
        """Open windows, panes and ids from the tables, as they were after the last whole batch."""
        whole = ds.field("batch") <= self.cut.batch
        watermark = self.cut.watermark
        if watermark is None:
            return
        horizon = watermark - micros(self._spec.time.allowed_lateness)
        longest = max(grain.size for grain in self._traffic.grains)
        from_pane = _instant(horizon - longest - DAY // 8)  # a day may last longer than its name says
        self._traffic.add(self._tables.read(TRAFFIC_TALLIES, None, whole & (ds.field("pane_start") >= from_pane)))
        self._traffic.forget(horizon)
        self._traffic.resume(self._tables.read(TRAFFIC_LIVE, None, ds.field("window_start") >= from_pane))
        from_pane = _instant(horizon - self._spec.sliding.length)
        self._hot.add(self._tables.read(ITEM_TALLIES, None, whole & (ds.field("pane_start") >= from_pane)))
        self._hot.forget(horizon)
        ends = ds.field("window_end") > _instant(horizon)
        self._hot.resume(self._tables.read(HOT_ITEMS_LIVE, ["window_end", "revision"], ends))
        if self._seen is not None:
            oldest = _instant(watermark - micros(self._spec.time.remember_ids))
            held = self._tables.read(
                EVENTS,
                ["event_id", "event_at"],
                whole & (ds.field("event_at") >= oldest) & ds.field("event_id").is_valid(),
            )
            self._seen.remember(held["event_id"].to_pylist(), held["event_at"].cast(pa.int64()).to_numpy())

    def write(self, rows: pa.Table, batch: int, started: int) -> None:
        """Put a batch, as `collect` returns it, into all tables."""
        if batch == self.cut.batch:
            return  # whole already; only Spark's own commit was missing
        if batch != self.cut.batch + 1:
            raise OutOfStep(
                f"Spark delivers batch {batch}, the tables end with {self.cut.batch}: another driver wrote to the "
                "checkpoint, or it was lost; nothing was written (runbook: out of step)"
            )
        files = _files(self._checkpoint, batch)
        record = self._record(files, batch, started)
        if self._seen is not None:
            rows = in_landing_order(rows, _arrivals(rows, files))
        found = sort_rows(rows, self._recipe, record, self._seen)
        _check_ledger(found.counts)
        cut = self._commit(found, record, started)
        ended = _now()
        oldest = min([started, *(at for at, _ in files.values())])
        self._report(BatchReport(cut, found.counts, len(record.files), started, ended, ended - oldest))
        self._upkeep(batch)

    def refuse_if_stale(self) -> None:
        """Raise StaleEpoch if a newer driver took over; a look at one small file."""
        newest = newest_epoch(self._layout)
        if newest > self._epoch.number:
            raise StaleEpoch(
                f"job {self._layout.job} is in epoch {newest}, this driver in {self._epoch.number}: a newer driver or "
                "a restore took over; nothing was written, this process ends"
            )

    def _record(self, files: Files, batch: int, started: int) -> BatchRecord:
        """The batch's record; its clock is never behind the times of its own files."""
        proposed = BatchRecord(
            batch,
            self.cut.watermark,
            max([started, *(at for at, _ in files.values())]),
            self._rules,
            {str(path): size for path, (_, size) in files.items()},
        )
        self._reached("before batch record")
        record = self._records.settle(proposed)
        self._reached("after batch record")
        return record

    def _commit(self, found: Sorted, record: BatchRecord, started: int) -> Cut:
        """Events are written while tallies are made: Arrow's writer leaves Python free."""
        batch, before = record.batch, record.watermark
        pending = self._start({EVENTS: found.events, QUARANTINE: found.quarantine}, batch)
        traffic, items = tally_rows(found, self._recipe, batch)
        after = before
        if found.newest is not None:
            reached = found.newest - micros(self._spec.time.watermark_delay)
            after = reached if before is None else max(before, reached)
        pending += self._start({TRAFFIC_TALLIES: traffic, ITEM_TALLIES: items}, batch)
        touched = self._hot.add(items)
        revised = {
            TRAFFIC_LIVE: self._traffic.revise(self._traffic.add(traffic), batch),
            HOT_ITEMS_LIVE: self._hot.revise(self._hot.due(touched, before, after), True, batch),
        }
        finish_appends(pending + self._start(revised, batch))
        totals = {name: self.cut.totals[name] + found.counts[name] for name in LEDGER}
        cut = Cut(self._epoch.number, batch, False, after, totals, self._tables.versions())
        row = self._row(cut, before, found.counts, started)
        self._tables[BATCHES].append_once(row, self._epoch.number, batch, self._reached)
        self.cut = cut
        if after is not None:
            horizon = after - micros(self._spec.time.allowed_lateness)
            self._traffic.forget(horizon)
            self._hot.forget(horizon)
        return cut

    def _start(self, rows: dict[str, pa.Table], batch: int) -> list[Future[None]]:
        return self._tables.start_append(rows, self._epoch.number, batch, self._reached)

    def _row(self, cut: Cut, before: int | None, counts: dict[str, int], started: int) -> pa.Table:
        offsets = self._checkpoint / "offsets" / str(cut.batch)
        row: dict[str, Any] = {
            "epoch": cut.epoch,
            "id": cut.batch,
            "drained": cut.drained,
            "watermark_before": None if before is None else to_instant(before),
            "watermark_after": None if cut.watermark is None else to_instant(cut.watermark),
            **counts,
            **{f"total_{name}": total for name, total in cut.totals.items()},
            "offsets": offsets.read_text(encoding="utf-8") if offsets.exists() else None,
            "versions": json.dumps(cut.versions),
            "started_at": to_instant(started),
            "committed_at": to_instant(_now()),
        }
        return pa.Table.from_pylist([row], schema=self._tables[BATCHES].schema)

    def finish_drain(self) -> None:
        """Write the windows that are still open, so that a drained log shows all its numbers; the watermark stays."""
        if self.cut.drained or self.cut.batch < 0:
            return
        started = _now()
        rows = self._hot.revise(self._hot.open(self.cut.watermark), False, self.cut.batch)
        if rows.num_rows:
            self._reached("before open windows")
            self._tables[HOT_ITEMS_LIVE].append_between(rows)
            self._reached("after open windows")
        cut = replace(self.cut, epoch=self._epoch.number, drained=True, versions=self._tables.versions())
        row = self._row(cut, cut.watermark, dict.fromkeys(LEDGER, 0), started)
        self._tables[BATCHES].append_between(row)
        self._reached("after drained")
        self.cut = cut

    def _upkeep(self, batch: int) -> None:
        for path in self._records.forgotten():
            archive(Path(path), self._layout.home)
        if (batch + 1) % EVERY_BATCHES == 0:
            for name, table in self._tables.tables.items():
                tidy(table, self._folds.get(name))
                self._reached(f"after upkeep of {name}")
        if (batch + 1) % VACUUM_EVERY_BATCHES == 0:
            for table in self._tables.tables.values():
                sweep(table)

    def close(self) -> None:
        """Let go of threads and windows; Spark holds on to the callback itself."""
        self._tables.close()
        self._traffic.windows.clear()


def _files(checkpoint: Path, batch: int) -> Files:
    """The files of the batch, empty ones too."""
    try:
        states = {path: path.stat() for path in planned_files(checkpoint, batch)}
    except FileNotFoundError as error:
        raise SourceError(
            f"{error.filename} vanished after batch {batch} was planned; put it back and start again "
            "(runbook: a file changed or vanished)"
        ) from None
    return {path: (state.st_mtime_ns // 1_000, state.st_size) for path, state in states.items()}


def _arrivals(rows: pa.Table, files: Files) -> dict[str, int]:
    """When the file at each address in the rows arrived."""
    addresses = {text.split(" ", 2)[2] for text in rows["place"].drop_null().to_pylist()}
    return {name: files[path][0] for name in addresses if (path := local_path(name)) in files}


def _check_ledger(counts: dict[str, int]) -> None:
    classes = sum(counts[name] for name in LEDGER if name != "read")
    if counts["read"] != classes:
        raise LedgerError(f"read {counts['read']} rows, placed {classes}: {counts}; nothing of this batch was written")


def _fingerprint(spec: JobSpec) -> str:
    """What decides the class of a row: a batch replayed under another value would not be the same batch."""
    deciding = [
        *(source.model_dump(exclude={"intake"}) for source in spec.source),
        spec.time.model_dump(include={"by", "max_ahead", "allowed_lateness", "deduplicate_within"}),
    ]
    return hashlib.sha256(json.dumps(deciding).encode()).hexdigest()[:16]


def _instant(us: int) -> pa.Scalar:
    return pa.scalar(us, pa.int64()).cast(INSTANT)


def _now() -> int:
    return time.time_ns() // 1_000
