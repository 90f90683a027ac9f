"""Hot items: views of each item in short panes, and the top of every sliding window that panes add up to.

The work per event does not grow with the overlap of windows: a window is the sum of its panes.
"""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.contracts.windows import Pane, Sliding
from spark_jobs.transforms.traffic import INSTANT, pane_starts

Counts = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Item numbers and their views."""

LONGEST_NUMBER = 1_000
"""Digits of an item id that is still compared as a number; Python refuses far longer ones."""

LIVE_SCHEMA = pa.schema(
    [
        pa.field("window_start", INSTANT),
        pa.field("window_end", INSTANT),
        pa.field("revision", pa.int64()),
        pa.field("closed", pa.bool_()),
        pa.field("rank", pa.int64()),
        pa.field("item_id", pa.string()),
        pa.field("page_views", pa.int64()),
        pa.field("batch", pa.int64()),
    ]
)


def tally_item_views(rows: pa.Table, event_at: npt.NDArray[np.int64], action: str, pane: Pane) -> pa.Table:
    """One row a pane and item: page views. Takes a batch of the stream or a part of the archive."""
    viewed = pc.and_(pc.fill_null(pc.equal(rows["action"], action), False), pc.is_valid(rows["item_id"]))
    views = pa.table({"pane_start": pane_starts(event_at, pane), "item_id": rows["item_id"]}).filter(viewed)
    counted = views.group_by(["pane_start", "item_id"], use_threads=False).aggregate([([], "count_all")])
    return pa.table(
        {
            "pane_start": counted["pane_start"].cast(INSTANT),
            "item_id": counted["item_id"].cast(pa.string()),
            "page_views": counted["count_all"],
        }
    )


def item_order(item_id: str) -> tuple[int, int, str]:
    """The rule for ties: ids ascending, as numbers where they are integers, before all others."""
    digits = item_id[1:] if item_id.startswith("-") else item_id
    number = digits.isascii() and digits.isdigit() and len(digits) <= LONGEST_NUMBER
    return (0, int(item_id), item_id) if number else (1, 0, item_id)


@dataclass
class HotItems:
    """The panes of every window that may still change, with items as numbers so that sums are array additions."""

    sliding: Sliding
    top: int
    panes: dict[int, list[Counts]] = field(default_factory=dict)
    revisions: dict[int, int] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)
    _items: list[str] = field(default_factory=list)

    def add(self, tallies: pa.Table) -> set[int]:
        """Merge tallies; returns the panes they touched."""
        if not tallies.num_rows:
            return set()
        encoded = tallies["item_id"].combine_chunks().dictionary_encode()
        numbers = np.array([self._number(item) for item in encoded.dictionary.to_pylist()], dtype=np.int64)
        codes = numbers[encoded.indices.to_numpy()]
        views = tallies["page_views"].to_numpy()
        panes = tallies["pane_start"].cast(pa.int64()).to_numpy()
        touched = np.unique(panes)
        for pane in touched.tolist():
            mine = panes == pane
            parts = self.panes.setdefault(pane, [])
            parts.append((codes[mine], views[mine]))
            if len(parts) > 16:
                self.panes[pane] = [_sum(parts, len(self._items))]
        return set(touched.tolist())

    def _number(self, item: str) -> int:
        number = self._numbers.get(item)
        if number is None:
            number = self._numbers[item] = len(self._items)
            self._items.append(item)
        return number

    def due(self, touched: set[int], before: int | None, after: int | None) -> list[int]:
        """The ends of windows to write: closed by this batch, or closed before and changed by it."""
        if after is None:
            return []
        opened = set(self.panes) if before is None else {p for p in self.panes if p >= before - self.sliding.length}
        closing = (end for p in opened for end in self.sliding.ends_after(p) if before is None or end > before)
        changed = (end for p in touched for end in self.sliding.ends_after(p))
        return sorted({end for part in (closing, changed) for end in part if end <= after})

    def open(self, watermark: int | None) -> list[int]:
        """The ends of windows that hold data and are not closed yet."""
        ends = (end for pane in self.panes for end in self.sliding.ends_after(pane))
        return sorted({end for end in ends if watermark is None or end > watermark})

    def revise(self, ends: Iterable[int], closed: bool, batch: int) -> pa.Table:
        """The next revision of each window, as rows of `hot_items_live`."""
        columns: list[list[object]] = [[] for _ in LIVE_SCHEMA]
        for end in ends:
            revision = self.revisions[end] = self.revisions.get(end, 0) + 1
            for rank, (item, views) in enumerate(self._top(end), start=1):
                row = (end - self.sliding.length, end, revision, closed, rank, item, views, batch)
                for column, value in zip(columns, row, strict=True):
                    column.append(value)
        arrays = [pa.array(column, live.type) for column, live in zip(columns, LIVE_SCHEMA, strict=True)]
        return pa.table(arrays, schema=LIVE_SCHEMA)

    def _top(self, end: int) -> list[tuple[str, int]]:
        starts = range(end - self.sliding.length, end, self.sliding.pane.size)
        parts = [part for start in starts for part in self.panes.get(start, ())]
        if not parts:
            return []
        numbers, views = _sum(parts, len(self._items))
        if len(views) > self.top:
            least = np.partition(views, -self.top)[-self.top]
            contending = views >= least
            numbers, views = numbers[contending], views[contending]
        best = heapq.nsmallest(
            self.top,
            zip(numbers.tolist(), views.tolist(), strict=True),
            key=lambda pair: (-pair[1], item_order(self._items[pair[0]])),
        )
        return [(self._items[number], count) for number, count in best]

    def resume(self, live: pa.Table) -> None:
        """Take over the revisions that `hot_items_live` holds, so that the next ones are higher."""
        ends = live["window_end"].cast(pa.int64()).to_pylist()
        for end, revision in zip(ends, live["revision"].to_pylist(), strict=True):
            self.revisions[end] = max(self.revisions.get(end, 0), revision)

    def forget(self, horizon: int) -> None:
        """Drop the panes that no window ending after `horizon` holds, and the items that only they had."""
        kept = {p: parts for p, parts in self.panes.items() if p + self.sliding.length > horizon}
        if len(kept) == len(self.panes):
            return
        self.panes = kept
        self.revisions = {end: revision for end, revision in self.revisions.items() if end > horizon}
        in_use = np.zeros(len(self._items), dtype=bool)
        for parts in kept.values():
            for numbers, _ in parts:
                in_use[numbers] = True
        if 2 * int(in_use.sum()) < len(self._items):
            self._renumber(in_use)

    def _renumber(self, in_use: npt.NDArray[np.bool_]) -> None:
        renumbered = np.cumsum(in_use) - 1
        self._items = [item for item, used in zip(self._items, in_use.tolist(), strict=True) if used]
        self._numbers = {item: number for number, item in enumerate(self._items)}
        for parts in self.panes.values():
            parts[:] = [(renumbered[numbers], views) for numbers, views in parts]


def _sum(parts: list[Counts], items: int) -> Counts:
    """Views summed by item, items ascending."""
    numbers = np.concatenate([part[0] for part in parts])
    views = np.concatenate([part[1] for part in parts])
    if len(numbers) < items // 8:  # few rows of many items: sorting them beats an array of all items
        found, inverse = np.unique(numbers, return_inverse=True)
        return found, np.bincount(inverse, weights=views, minlength=len(found)).astype(np.int64)
    summed = np.bincount(numbers, weights=views, minlength=items).astype(np.int64)
    found = np.flatnonzero(summed)
    return found, summed[found]
