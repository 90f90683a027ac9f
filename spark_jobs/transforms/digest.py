"""One batch of rows becomes what each table gets of it. No clock, no table, no Spark: same rows, same digest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.contracts.events import EVENT_FIELDS, Arrival, Fault, Reason
from spark_jobs.contracts.windows import DAY, Calendar
from spark_jobs.settings import JobSpec
from spark_jobs.transforms.classify_arrival import TOO_LATE, Classified, SeenIds, classify_arrival
from spark_jobs.transforms.hot_items import tally_item_views
from spark_jobs.transforms.measures import Measure
from spark_jobs.transforms.traffic import INSTANT, tally_traffic

TEXTS = {name: pa.string() for name in EVENT_FIELDS if name not in ("event_at", "properties")}
EVENT_TYPES = {"event_at": INSTANT, **TEXTS, "properties": pa.map_(pa.string(), pa.string())}
ORDINAL_BITS = 33
"""`monotonically_increasing_id` holds the partition above these bits and the row's ordinal in it below."""


@dataclass(frozen=True)
class Places:
    """Where rows stand in their source: the number of a block for each row, and what the blocks are."""

    block: npt.NDArray[np.int64]
    position: npt.NDArray[np.int64]
    sources: list[str]
    starts: list[int]
    header: npt.NDArray[np.bool_]
    delivered: int  # rows that the source numbered, header lines included

    def source(self) -> pa.DictionaryArray:
        names = list(dict.fromkeys(self.sources))
        numbers = np.array([names.index(source) for source in self.sources] or [0], dtype=np.int32)
        return pa.DictionaryArray.from_arrays(numbers[self.block], pa.array(names, pa.string()))


def place_rows(rows: pa.Table) -> Places:
    """Only the first row of a block tells its place: first byte, whether its file has a header, file."""
    ordinal = rows["row"].to_numpy() & ((1 << ORDINAL_BITS) - 1)
    block = np.cumsum(ordinal == 0) - 1
    places = [text.split(" ", 2) for text in rows["place"].drop_null().to_pylist()]
    starts = np.array([int(start) for start, _, _ in places], dtype=np.int64)
    headed = np.array([header == "1" for _, header, _ in places], dtype=bool)
    position = starts[block] + ordinal if places else ordinal
    header = headed[block] & (position == 0) if places else np.zeros(0, dtype=bool)
    last = np.flatnonzero(np.diff(block, append=len(places)))
    delivered = int(ordinal[last].sum()) + len(last)
    return Places(block, position, [source for _, _, source in places], starts.tolist(), header, delivered)


def in_landing_order(rows: pa.Table, arrived: Mapping[str, int]) -> pa.Table:
    """Rows by the arrival of their file, then by position: of two rows with one id the first is the event."""
    places = place_rows(rows)
    if len(places.sources) < 2:
        return rows
    keys = [
        (arrived.get(source, 0), source, start) for source, start in zip(places.sources, places.starts, strict=True)
    ]
    rank = np.empty(len(keys), dtype=np.int64)
    rank[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    return rows.take(pa.array(np.argsort(rank[places.block], kind="stable")))


@dataclass(frozen=True)
class Sorted:
    """A batch's rows by where they go: events, quarantine, and those that live numbers count."""

    events: pa.Table
    quarantine: pa.Table
    live: pa.Table
    live_at: npt.NDArray[np.int64]
    counts: dict[str, int]  # the batch's ledger
    newest: int | None  # largest event time among the events


class BatchClock(Protocol):
    """The part of a batch's record that decides classes."""

    @property
    def batch(self) -> int: ...
    @property
    def now(self) -> int: ...
    @property
    def watermark(self) -> int | None: ...


@dataclass(frozen=True)
class Recipe:
    """What a spec asks of every batch."""

    spec: JobSpec
    faults: Sequence[Fault]
    dimensions: dict[str, str]
    measures: Sequence[Measure]


def sort_rows(rows: pa.Table, recipe: Recipe, record: BatchClock, seen: SeenIds | None) -> Sorted:
    """`rows` are as the source delivered them, header lines included."""
    places = place_rows(rows)
    if places.header.any():
        rows, places = _without(rows, places, places.header)
    time = recipe.spec.time
    classified = classify_arrival(rows, time, record.now, record.watermark, seen)
    stored, event_at = classified.stored, classified.event_at
    counted = stored & (classified.arrival != TOO_LATE)
    return Sorted(
        events=_events(rows, places, classified, time.calendar, record),
        quarantine=_quarantine(rows, places, classified, recipe.faults, record),
        live=rows if counted.all() else rows.filter(pa.array(counted)),
        live_at=event_at[counted],
        counts={"read": places.delivered} | classified.counts(),
        newest=int(event_at[stored].max()) if stored.any() else None,
    )


def tally_rows(found: Sorted, recipe: Recipe, batch: int) -> tuple[pa.Table, pa.Table]:
    """The batch's traffic tallies and item tallies."""
    metrics, dimensions, measures = recipe.spec.metrics, recipe.dimensions, recipe.measures
    traffic = tally_traffic(found.live, found.live_at, metrics.traffic.pane, dimensions, measures)
    items = tally_item_views(found.live, found.live_at, metrics.hot_items.action, recipe.spec.sliding.pane)
    return _of_batch(traffic, batch), _of_batch(items, batch)


def _without(rows: pa.Table, places: Places, mask: npt.NDArray[np.bool_]) -> tuple[pa.Table, Places]:
    keep = ~mask
    return rows.filter(pa.array(keep)), Places(
        places.block[keep],
        places.position[keep],
        places.sources,
        places.starts,
        places.header[keep],
        places.delivered - int(mask.sum()),
    )


def _of_batch(table: pa.Table, batch: int) -> pa.Table:
    return table.append_column("batch", _constant(batch, table.num_rows))


def _constant(value: int, rows: int) -> pa.Array:
    return pa.array(np.full(rows, value, dtype=np.int64))


def _days(event_at: npt.NDArray[np.int64], calendar: Calendar) -> pa.Array:
    """The day of each instant on the wall clock of the zone."""
    if not len(event_at):
        return pa.array([], pa.date32())
    found = pc.unique(pa.array(event_at // DAY))
    instants = [at for day in found.to_pylist() for at in (day * DAY, (day + 1) * DAY - 1)]
    days = sorted({calendar.day_of(at) for at in instants})
    starts = np.array([calendar.day_start(day) for day in days])
    return pa.array(days, pa.date32()).take(pa.array(np.searchsorted(starts, event_at, side="right") - 1))


def _events(rows: pa.Table, places: Places, classified: Classified, calendar: Calendar, record: BatchClock) -> pa.Table:
    stored = classified.stored
    event_at = classified.event_at[stored]
    kept = rows if stored.all() else rows.filter(pa.array(stored))
    names = pa.array([str(arrival) for arrival in Arrival])
    columns = {
        "event_at": pa.array(event_at).cast(INSTANT),
        **{name: kept[name].cast(kind) for name, kind in TEXTS.items()},
        "properties": kept["properties"],
        "arrival": pa.DictionaryArray.from_arrays(classified.arrival[stored], names),
        "day": _days(event_at, calendar),
        "batch": _constant(record.batch, len(event_at)),
        "seen_at": _constant(record.now, len(event_at)).cast(INSTANT),
        "source": places.source().filter(pa.array(stored)),
        "position": pa.array(places.position[stored]),
    }
    return pa.table(columns)


def _quarantine(
    rows: pa.Table,
    places: Places,
    classified: Classified,
    faults: Sequence[Fault],
    record: BatchClock,
) -> pa.Table:
    mask = classified.faulty | classified.future
    held = rows.filter(pa.array(mask))
    future = len(faults)  # one more kind than the parser knows
    numbers = pc.fill_null(held["fault"], future).cast(pa.int32())
    reasons = pa.array([*(str(fault.reason) for fault in faults), str(Reason.FUTURE)])
    details = pa.array([*(fault.detail for fault in faults), "event_at is later than the clock allows"])
    return pa.table(
        {
            "raw": held["raw"],
            "reason": reasons.take(numbers.combine_chunks()),
            "detail": details.take(numbers.combine_chunks()),
            "source": places.source().filter(pa.array(mask)),
            "position": pa.array(places.position[mask]),
            "seen_at": _constant(record.now, held.num_rows).cast(INSTANT),
            "batch": _constant(record.batch, held.num_rows),
        }
    )
