"""Traffic: a tally for each pane and dimension, and the windows of every grain that tallies add up to."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.contracts.windows import Calendar, Grain, Pane
from spark_jobs.transforms.measures import Groups, Measure

INSTANT = pa.timestamp("us", "UTC")
Key = tuple[int, int, tuple[str | None, ...]]
"""Number of the grain, start of the window, values of the dimensions."""


def pane_starts(event_at: npt.NDArray[np.int64], pane: Pane) -> npt.NDArray[np.int64]:
    return (event_at + pane.offset) // pane.size * pane.size - pane.offset


def tally_traffic(
    rows: pa.Table,
    event_at: npt.NDArray[np.int64],
    pane: Pane,
    dimensions: dict[str, str],
    measures: Sequence[Measure],
) -> pa.Table:
    """One row a pane and dimension: every measure's tally. Takes a batch of the stream or a part of the archive."""
    keys = {"pane_start": pa.chunked_array([pane_starts(event_at, pane)])}
    keys |= {name: rows[column] for name, column in dimensions.items()}
    numbers, firsts = _number_groups(list(keys.values()), rows.num_rows)
    groups = Groups(rows, numbers, len(firsts))
    columns = {name: values.take(firsts) for name, values in keys.items()}
    columns["pane_start"] = columns["pane_start"].cast(INSTANT)
    for measure in measures:
        for tallied, values in zip(measure.tally_fields, measure.tally(groups), strict=True):
            columns[tallied.name] = values
    return pa.table(columns)


def _number_groups(keys: list[pa.ChunkedArray], rows: int) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """A dense number for each row's combination of keys, and one row of each group."""
    codes = np.zeros(rows, dtype=np.int64)
    for key in keys:
        encoded = pc.dictionary_encode(key, null_encoding="encode").combine_chunks()
        combined = codes * max(len(encoded.dictionary), 1) + encoded.indices.to_numpy()
        codes = pc.dictionary_encode(pa.array(combined)).indices.to_numpy().astype(np.int64)
    count = int(codes.max()) + 1 if rows else 0
    firsts = np.empty(count, dtype=np.int64)
    firsts[codes[::-1]] = np.arange(rows - 1, -1, -1)
    return codes, pa.array(firsts)


@dataclass
class Window:
    """The merged tallies of one window, and the revision last written of it."""

    end: int
    states: list[Any]
    revision: int = 0


@dataclass
class TrafficWindows:
    """Every window that may still change. Windows are merged from tallies of earlier batches plus this one."""

    calendar: Calendar
    grains: Sequence[Grain]
    dimensions: Sequence[str]
    measures: Sequence[Measure]
    windows: dict[Key, Window] = field(default_factory=dict)

    def add(self, tallies: pa.Table) -> list[Key]:
        """Merge tallies; returns the windows they touched, in the order of grain, start and dimensions."""
        touched = set()
        panes = tallies["pane_start"].cast(pa.int64()).to_pylist()
        for pane, tally in zip(panes, tallies.to_pylist(), strict=True):
            place = tuple(tally[name] for name in self.dimensions)
            for number, grain in enumerate(self.grains):
                start, end = self.calendar.window(pane, grain)
                key = (number, start, place)
                window = self.windows.get(key)
                if window is None:
                    window = self.windows[key] = Window(end, [None] * len(self.measures))
                for index, measure in enumerate(self.measures):
                    window.states[index] = measure.merge(window.states[index], tally)
                touched.add(key)
        return sorted(touched, key=lambda key: (key[0], key[1], tuple(value or "" for value in key[2])))

    def revise(self, keys: Iterable[Key], batch: int) -> pa.Table:
        """The next revision of each window, as rows of `traffic_live`."""
        rows = []
        for key in keys:
            number, start, place = key
            window = self.windows[key]
            window.revision += 1
            values = [value for m, state in zip(self.measures, window.states, strict=True) for value in m.result(state)]
            rows.append((self.grains[number].name, start, window.end, *place, *values, window.revision, batch))
        return _table(rows, self.live_schema)

    @property
    def live_schema(self) -> pa.Schema:
        return pa.schema(
            [
                pa.field("grain", pa.string()),
                pa.field("window_start", INSTANT),
                pa.field("window_end", INSTANT),
                *(pa.field(name, pa.string()) for name in self.dimensions),
                *(live for measure in self.measures for live in measure.live_fields),
                pa.field("revision", pa.int64()),
                pa.field("batch", pa.int64()),
            ]
        )

    def resume(self, live: pa.Table) -> None:
        """Take over the revisions that `traffic_live` holds, so that the next ones are higher."""
        numbers = {grain.name: number for number, grain in enumerate(self.grains)}
        starts = live["window_start"].cast(pa.int64()).to_pylist()
        for start, row in zip(starts, live.to_pylist(), strict=True):
            number = numbers.get(row["grain"], -1)
            key = (number, start, tuple(row[name] for name in self.dimensions))
            if window := self.windows.get(key):
                window.revision = max(window.revision, row["revision"])

    def forget(self, horizon: int) -> None:
        """Drop the windows that ended at or before `horizon`: no live event can reach them."""
        for key in [key for key, window in self.windows.items() if window.end <= horizon]:
            del self.windows[key]


def _table(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    return pa.table([pa.array(column, live.type) for column, live in zip(columns, schema, strict=True)], schema=schema)
