"""From what was produced and what was read: how long each event was on its way."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from benchmarks.compare import Mismatch
from benchmarks.paced.pace import Pace

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Latency:
    """Milliseconds from an event's creation to the first finished read that includes it."""

    p50: float
    p95: float
    p99: float
    highest: float
    events: int
    producer_behind: float  # milliseconds that the slowest file came after its time


def latency_of(pace: Pace, produced: pa.Table, seen: pa.Table) -> Latency:
    """Over all events after settling; Mismatch where the reader never saw them, or saw more than there was."""
    waits, late = [], []
    for minute in pc.unique(produced["minute"]).to_pylist():
        pieces = produced.filter(pc.equal(produced["minute"], minute))
        reads = seen.filter(pc.equal(seen["minute"], minute))
        waits.append(_waits(pace, minute, pieces, reads))
        due = pace.start + (pieces["file"].to_numpy() + 1) * pace.tick
        late.append(pieces["landed_at"].to_numpy() - due)
    milliseconds = np.concatenate(waits) * 1_000
    p50, p95, p99 = np.percentile(milliseconds, [50, 95, 99])
    behind = float(np.concatenate(late).max()) * 1_000
    return Latency(float(p50), float(p95), float(p99), float(milliseconds.max()), len(milliseconds), behind)


def _waits(pace: Pace, minute: int, pieces: pa.Table, reads: pa.Table) -> Floats:
    """Seconds for each counted event of the minute; one that is no view becomes visible with the views of its file."""
    read_views = np.maximum.accumulate(reads["page_views"].to_numpy())
    total = int(pieces["page_views"].to_numpy().max())
    if not len(read_views) or read_views[-1] != total:
        found = int(read_views[-1]) if len(read_views) else 0
        raise Mismatch(f"paced: minute {minute} has {total} page views, the reader saw {found}")
    first_read = reads["read_at"].to_numpy()[np.searchsorted(read_views, pieces["page_views"].to_numpy())]
    counts = pieces["events"].to_numpy()
    numbers = np.repeat(pieces["first"].to_numpy() - np.r_[0, np.cumsum(counts)[:-1]], counts) + np.arange(counts.sum())
    is_counted = (numbers >= pace.first_counted) & np.repeat(pieces["views"].to_numpy() > 0, counts)
    waits: Floats = (np.repeat(first_read, counts) - pace.made_at(numbers))[is_counted]
    return waits
