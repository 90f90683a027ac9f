"""The tables of one generation, and the row of `batches` that makes a batch exist for readers."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable

from spark_jobs.contracts.layout import FIRST_GENERATION, Layout
from spark_jobs.contracts.tables import BATCHES, LEDGER, STREAM_TABLES, TRAFFIC_LIVE, TRAFFIC_TALLIES
from spark_jobs.contracts.windows import from_instant
from spark_jobs.sinks.append_once import LiveTable, table_schema
from spark_jobs.sinks.json_files import write_json
from spark_jobs.transforms.measures import Measure

Rows = Mapping[str, pa.Table]


@dataclass(frozen=True)
class Cut:
    """What one row of `batches` says: the state of everything at the end of that batch."""

    epoch: int
    batch: int
    drained: bool
    watermark: int | None
    totals: dict[str, int]
    versions: dict[str, int]


NOTHING = Cut(0, -1, False, None, dict.fromkeys(LEDGER, 0), {})


def newest_cut(batches: DeltaTable) -> Cut:
    """The newest cut, found by file statistics: its cost does not grow with the number of batches."""
    actions = pa.table(batches.get_add_actions(flatten=True))
    if not actions.num_rows:
        return NOTHING
    newest = pc.max(actions["max.id"]).as_py()
    found = batches.to_pyarrow_dataset().to_table(filter=ds.field("id") == newest)
    row = max(found.to_pylist(), key=lambda row: (row["epoch"], row["drained"]))
    watermark = row["watermark_after"]
    return Cut(
        row["epoch"],
        row["id"],
        row["drained"],
        None if watermark is None else from_instant(watermark),
        {name: row[f"total_{name}"] for name in LEDGER},
        json.loads(row["versions"]),
    )


def finish_appends(pending: list[Future[None]]) -> None:
    """Wait for all; the first fault is raised once every one has ended."""
    for ended in [job.exception() for job in pending]:
        if ended is not None:
            raise ended


class LiveTables:
    """Every table of the generation that the stream writes."""

    def __init__(self, layout: Layout, dimensions: list[str], measures: Sequence[Measure]) -> None:
        texts = [pa.field(name, pa.string()) for name in dimensions]
        own = {
            TRAFFIC_TALLIES: [*texts, *(field for measure in measures for field in measure.tally_fields)],
            TRAFFIC_LIVE: [*texts, *(field for measure in measures for field in measure.live_fields)],
        }
        folder = _current_generation(layout)
        write_json(folder / "generation.json", {"dimensions": dimensions, "events": "own"})
        self.tables = {
            name: LiveTable(
                folder / name,
                f"{layout.job}/{folder.name}/{name}",
                contract,
                table_schema(contract, own.get(name, [])),
            )
            for name, contract in STREAM_TABLES.items()
        }
        self._pool = ThreadPoolExecutor(max_workers=len(self.tables), thread_name_prefix="commit")

    def __getitem__(self, name: str) -> LiveTable:
        return self.tables[name]

    def fence(self, epoch: int) -> None:
        for table in self.tables.values():
            table.fence(epoch)

    def start_append(self, rows: Rows, epoch: int, batch: int, reached: Callable[[str], None]) -> list[Future[None]]:
        """Begin to commit tables of a batch, each in a thread of its own."""
        return [
            self._pool.submit(self.tables[name].append_once, table, epoch, batch, reached)
            for name, table in rows.items()
        ]

    def versions(self) -> dict[str, int]:
        return {name: table.version for name, table in self.tables.items() if name != BATCHES}

    def cut(self) -> Cut:
        return newest_cut(self.tables[BATCHES].delta)

    def read(self, name: str, columns: list[str] | None, where: Any) -> pa.Table:
        return self.tables[name].delta.to_pyarrow_dataset().to_table(columns=columns, filter=where)

    def close(self) -> None:
        self._pool.shutdown()


def _current_generation(layout: Layout) -> Path:
    """The generation that `current` names; the first start of a job makes it."""
    if not layout.current.is_symlink():
        first = layout.generation(FIRST_GENERATION)
        first.mkdir(parents=True, exist_ok=True)
        draft = layout.warehouse / f".current.{os.getpid()}"
        draft.unlink(missing_ok=True)
        draft.symlink_to(Path("generations") / first.name)
        draft.replace(layout.current)
    return layout.warehouse / layout.current.readlink()
