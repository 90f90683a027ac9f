"""Upkeep between batches: a stream that runs for months stays as fast as on its first day.

Small files of similar size are folded into one, again and again, so that each row is rewritten only a few times.
Folding keeps what readers see: tallies of one key are merged, superseded revisions dropped, other rows kept.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from spark_jobs.contracts.tables import HOT_ITEMS_LIVE, ITEM_TALLIES, TRAFFIC_LIVE, TRAFFIC_TALLIES
from spark_jobs.sinks.append_once import DataFile, LiveTable
from spark_jobs.transforms.measures import Measure

Fold = Callable[[pa.Table], pa.Table]

EVERY_BATCHES = 50
VACUUM_EVERY_BATCHES = 1_000
FILES_A_TIER = 16
SMALLEST = 64 << 10
LARGEST = 128 << 20
"""Files of this size are left alone."""


def folds(dimensions: Sequence[str], measures: Sequence[Measure]) -> dict[str, Fold]:
    """How each table's rows may be folded; a table that is not named keeps every row."""
    return {
        TRAFFIC_TALLIES: lambda rows: fold_traffic_tallies(rows, dimensions, measures),
        ITEM_TALLIES: fold_item_tallies,
        TRAFFIC_LIVE: lambda rows: newest_revisions(rows, ["grain", "window_start", *dimensions]),
        HOT_ITEMS_LIVE: lambda rows: newest_revisions(rows, ["window_end"]),
    }


def fold_item_tallies(rows: pa.Table) -> pa.Table:
    grouped = rows.group_by(["pane_start", "item_id"]).aggregate([("page_views", "sum"), ("batch", "max")])
    return grouped.rename_columns(["pane_start", "item_id", "page_views", "batch"])


def fold_traffic_tallies(rows: pa.Table, dimensions: Sequence[str], measures: Sequence[Measure]) -> pa.Table:
    """One row a pane and dimension. Columns of measures that the spec no longer has are kept as they are."""
    keys = ["pane_start", *dimensions]
    known = {field.name for measure in measures for field in measure.tally_fields} | {*keys, "batch"}
    if not set(rows.column_names) <= known:
        return rows
    merged: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows.to_pylist():
        key = tuple(row[name] for name in keys)
        entry = merged.setdefault(key, {"batch": -1, "states": [None] * len(measures)})
        entry["batch"] = max(entry["batch"], row["batch"])
        entry["states"] = [m.merge(state, row) for m, state in zip(measures, entry["states"], strict=True)]
    folded = [
        dict(zip(keys, key, strict=True))
        | {"batch": entry["batch"]}
        | {name: v for m, s in zip(measures, entry["states"], strict=True) for name, v in m.store(s).items()}
        for key, entry in merged.items()
    ]
    return pa.Table.from_pylist(folded, schema=rows.schema)


def newest_revisions(rows: pa.Table, keys: list[str]) -> pa.Table:
    """The rows of the highest revision of each key."""
    places = list(zip(*(rows[key].to_pylist() for key in keys), strict=True))
    revisions = rows["revision"].to_pylist()
    newest: dict[tuple[Any, ...], int] = {}
    for place, revision in zip(places, revisions, strict=True):
        newest[place] = max(newest.get(place, 0), revision)
    keep = [newest[place] == revision for place, revision in zip(places, revisions, strict=True)]
    return rows.filter(pa.array(keep, pa.bool_()))


def tidy(table: LiveTable, fold: Fold | None) -> None:
    """Fold every tier of a partition that has many files into one file each."""
    tiers: defaultdict[tuple[str, int], list[DataFile]] = defaultdict(list)
    for file in table.files():
        if file.size < LARGEST:
            tiers[file.folder, _tier(file.size)].append(file)
    for files in tiers.values():
        if len(files) >= FILES_A_TIER:
            rows = table.read_files(files)
            table.replace_files(files, fold(rows) if fold else rows)


def _tier(size: int) -> int:
    return 0 if size < SMALLEST else 1 + int(math.log(size / SMALLEST, 16))


def sweep(table: LiveTable) -> None:
    """Delete files that folding left behind once no reader can still want them, and log entries past retention."""
    table.refuse_if_stale()
    table.delta.vacuum(retention_hours=1, dry_run=False, enforce_retention_duration=False)
    table.delta.cleanup_metadata()
