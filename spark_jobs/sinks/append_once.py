"""Appends to a Delta table that are safe to repeat and refuse to serve a driver of an older epoch.

Spark computes; every commit goes through delta-rs, which puts a version only if it is absent. Each commit carries a
transaction number made of epoch and batch, so a repeated batch is skipped where it is already there.
"""

import json
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction

from spark_jobs.contracts.tables import TableContract
from spark_jobs.errors import SpecError, StaleEpoch

EPOCH_BITS = 40
HANDLE_COMMITS = 100
"""A handle is opened anew after this many commits: one that lives long becomes slow."""

FENCE_ATTEMPTS = 100
"""A driver that is being shut out may commit between the look and the fence, at most once a batch of its own."""

PROPERTIES = {
    "delta.logRetentionDuration": "interval 1 days",
    "delta.deletedFileRetentionDuration": "interval 1 hours",
    "delta.checkpointInterval": "100",
}

_TYPES = {
    "timestamp": pa.timestamp("us", "UTC"),
    "string": pa.string(),
    "long": pa.int64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "map": pa.map_(pa.string(), pa.string()),
}


def encode(epoch: int, batch: int) -> int:
    """The transaction number of a batch; `batch` -1 stands for a table that holds none yet."""
    return (epoch << EPOCH_BITS) + batch


def decode(number: int) -> tuple[int, int]:
    """Epoch and batch of a transaction number."""
    epoch, after = divmod(number + 1, 1 << EPOCH_BITS)
    return epoch, after - 1


def table_schema(contract: TableContract, own: Sequence[pa.Field] = ()) -> pa.Schema:
    """The contract's columns with the spec's own ones in their place."""
    before = [pa.field(name, _TYPES[kind]) for name, kind in contract.before]
    after = [pa.field(name, _TYPES[kind]) for name, kind in contract.after]
    return pa.schema([*before, *own, *after])


@dataclass(frozen=True)
class DataFile:
    """A Parquet file of a table, by its path inside the table."""

    path: str
    size: int

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]


class LiveTable:
    """One table of a stream, and the only writer of it."""

    def __init__(self, path: Path, app: str, contract: TableContract, schema: pa.Schema) -> None:
        self.path, self.contract, self.schema = path, contract, schema
        self._app = app
        self._commits = 0
        self._epoch: int | None = None  # set by the fence
        if not DeltaTable.is_deltatable(str(path)):
            DeltaTable.create(
                str(path),
                Schema.from_arrow(schema),
                mode="ignore",
                partition_by=list(contract.partition_by),
                configuration=PROPERTIES | {"delta.dataSkippingStatsColumns": ",".join(contract.indexed)},
            )
        self._delta = DeltaTable(str(path))
        self._take_new_columns()

    @property
    def version(self) -> int:
        return int(self._delta.version())

    @property
    def delta(self) -> DeltaTable:
        """The table as it is now."""
        self._delta.update_incremental()
        return self._delta

    def _take_new_columns(self) -> None:
        """Columns that the spec gained are added, NULL in old rows; one that changed its type is refused."""
        have = {field.name: field.type for field in Schema.from_arrow(self._delta.schema()).fields}
        want = {field.name: field for field in Schema.from_arrow(self.schema).fields}
        for name, wanted in want.items():
            if name in have and have[name] != wanted.type:
                raise SpecError(
                    f"column {name!r} of {self.path.name} holds {have[name].type}, the spec now says "
                    f"{wanted.type.type}; give the new number a new name"
                )
        if missing := [field for name, field in want.items() if name not in have]:
            self._delta.alter.add_columns(missing)
            self._delta = DeltaTable(str(self.path))

    def recorded(self) -> int | None:
        """The transaction number of the newest batch or fence."""
        self._delta.update_incremental()
        found = self._delta.transaction_version(self._app)
        return None if found is None else int(found)

    def _look(self, epoch: int | None) -> int | None:
        """What is recorded, on the handle that the next commit uses; the record of a newer epoch ends this driver."""
        recorded = self.recorded()
        if recorded is not None and epoch is not None and decode(recorded)[0] > epoch:
            raise StaleEpoch(
                f"{self.path.name} belongs to epoch {decode(recorded)[0]}, this driver to {epoch}: a newer driver or a "
                "restore took over; nothing was written, this process ends"
            )
        return recorded

    def refuse_if_stale(self) -> None:
        """Raise StaleEpoch if a newer driver or a restore has fenced the table since this writer did."""
        self._look(self._epoch)

    def fence(self, epoch: int) -> None:
        """Shut out every older epoch: from now on its commits are refused, also those of a driver that slept."""
        self._epoch = epoch
        for attempt in range(1, FENCE_ATTEMPTS + 1):
            recorded = self._look(epoch)
            try:
                self._commit([], encode(epoch, -1 if recorded is None else decode(recorded)[1]))
                return
            except CommitFailedError:
                if attempt == FENCE_ATTEMPTS:
                    raise

    def append_once(self, rows: pa.Table, epoch: int, batch: int, reached: Callable[[str], None]) -> None:
        """Add the rows as `batch`, unless the table has them already."""
        number = encode(epoch, batch)
        recorded = self._look(epoch)
        if recorded is not None and recorded >= number:
            return
        reached(f"before {self.path.name}")
        if rows.num_rows:
            self._commit([*self._write(rows)], number)
        reached(f"after {self.path.name}")

    def append_between(self, rows: pa.Table) -> None:
        """Add rows that belong to no batch, between two batches."""
        recorded = self._look(self._epoch)
        self._commit([*self._write(rows)], recorded)

    def files(self) -> list[DataFile]:
        """The files of the table as it is now."""
        actions = pa.table(self.delta.get_add_actions())
        return [DataFile(row["path"], row["size_bytes"]) for row in actions.select(["path", "size_bytes"]).to_pylist()]

    def read_files(self, files: Sequence[DataFile]) -> pa.Table:
        """The rows of some files of one partition, with its columns and those that the spec no longer has."""
        whole = pa.schema(self._delta.schema())
        inside = pa.schema([field for field in whole if field.name not in self.contract.partition_by])
        rows = ds.dataset([str(self.path / file.path) for file in files], schema=inside, format="parquet").to_table()
        for name in self.contract.partition_by:
            value = files[0].folder.removeprefix(f"{name}=").removesuffix("/")
            constant = pa.array([value] * rows.num_rows, pa.string()).cast(whole.field(name).type)
            rows = rows.append_column(name, constant)
        return rows.select(whole.names)

    def replace_files(self, files: Sequence[DataFile], rows: pa.Table) -> None:
        """Put the rows in the place of some files of one partition: readers see the same table before and after."""
        recorded = self._look(self._epoch)
        adds = self._write(rows, data_change=False)
        now = time.time_ns() // 1_000_000
        values = adds[0].partition_values if adds else {}
        removes = [RemoveAction(file.path, False, now, file.size, dict(values)) for file in files]
        self._commit([*removes, *adds], recorded)

    def _commit(self, actions: list[AddAction | RemoveAction], number: int | None) -> None:
        """Every commit carries the table's transaction, also one that adds no batch: without it delta-rs would accept
        what a driver decided before a newer one fenced the table."""
        transactions = [] if number is None else [Transaction(self._app, number)]
        try:
            self._delta.create_write_transaction(
                actions,
                "append",
                self._delta.schema(),
                partition_by=list(self.contract.partition_by),
                commit_properties=CommitProperties(app_transactions=transactions),
            )
        except CommitFailedError:
            self._look(None if number is None else decode(number)[0])
            raise
        self._commits += 1
        if self._commits % HANDLE_COMMITS == 0:
            self._delta = DeltaTable(str(self.path))
        else:
            self._delta.update_incremental()

    def _write(self, rows: pa.Table, data_change: bool = True) -> list[AddAction]:
        """Parquet files for the rows, one a partition, not yet part of the table."""
        adds = []
        for values, part in _partitions(rows, self.contract.partition_by):
            folder = "".join(f"{name}={value}/" for name, value in values.items())
            name = f"{folder}{uuid.uuid4()}.parquet"
            target = self.path / name
            target.parent.mkdir(exist_ok=True)
            kept = part.drop_columns(list(values)) if values else part
            pq.write_table(
                kept, target, compression="zstd", compression_level=1, write_statistics=True, store_schema=False
            )
            adds.append(
                AddAction(
                    path=name,
                    size=target.stat().st_size,
                    partition_values={key: str(value) for key, value in values.items()},
                    modification_time=time.time_ns() // 1_000_000,
                    data_change=data_change,
                    stats=_statistics(kept, self.contract.indexed),
                )
            )
        return adds


def _partitions(rows: pa.Table, by: tuple[str, ...]) -> list[tuple[dict[str, Any], pa.Table]]:
    if not by:
        return [({}, rows)]
    (name,) = by
    values = pc.unique(rows[name]).to_pylist()
    if len(values) == 1:
        return [({name: values[0]}, rows)]
    return [({name: value}, rows.filter(pc.equal(rows[name], pa.scalar(value)))) for value in sorted(values)]


def _statistics(rows: pa.Table, columns: tuple[str, ...]) -> str:
    """What readers skip files by, in Delta's own JSON."""
    bounds = {name: pc.min_max(rows[name]).as_py() for name in columns}
    return json.dumps(
        {
            "numRecords": rows.num_rows,
            "minValues": {name: _plain(found["min"]) for name, found in bounds.items() if found["min"] is not None},
            "maxValues": {name: _plain(found["max"]) for name, found in bounds.items() if found["max"] is not None},
            "nullCount": {name: rows[name].null_count for name in columns},
        }
    )


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, date | Decimal):
        return str(value)
    return value
