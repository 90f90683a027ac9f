"""Which class each row of a batch falls in: the part that depends on clock, watermark and what was seen before.

Order of the checks: malformed and rule (already numbered by the parser), future, duplicate, arrival.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_jobs.contracts.windows import micros
from spark_jobs.settings import TimeSection

ON_TIME, LATE, TOO_LATE = 0, 1, 2
Mask = npt.NDArray[np.bool_]
Instants = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Classified:
    """Masks and codes over the rows of one batch; every row is in exactly one class."""

    event_at: Instants
    faulty: Mask  # malformed, or against a rule
    future: Mask
    duplicate: Mask
    stored: Mask  # becomes an event
    arrival: npt.NDArray[np.int8]  # of the stored rows; meaningless elsewhere

    def counts(self) -> dict[str, int]:
        kept = np.bincount(self.arrival[self.stored], minlength=3)
        return {
            "on_time": int(kept[ON_TIME]),
            "late": int(kept[LATE]),
            "too_late": int(kept[TOO_LATE]),
            "duplicate": int(self.duplicate.sum()),
            "quarantined": int((self.faulty | self.future).sum()),
        }


class SeenIds:
    """The event ids that a repeat is recognised by, each with its event time.

    An id counts as seen while its event time is at most `within` below the watermark; about 200 bytes an id.
    """

    def __init__(self, within: int) -> None:
        self._within = within
        self._ids: dict[str, int] = {}
        self._swept = -(2**62)

    def __len__(self) -> int:
        return len(self._ids)

    def remember(self, ids: list[str | None], event_at: Instants) -> None:
        """Take ids as seen, as after a start from stored events."""
        self._ids.update((key, at) for key, at in zip(ids, event_at.tolist(), strict=True) if key is not None)

    def repeats(self, ids: list[str | None], event_at: Instants, candidate: Mask, watermark: int | None) -> Mask:
        """Marks each candidate whose id was seen, in an earlier batch or higher up in this one; remembers the rest."""
        oldest = -(2**62) if watermark is None else watermark - self._within
        self._sweep(oldest)
        repeated = np.zeros(len(ids), dtype=bool)
        seen = self._ids
        for row in np.flatnonzero(candidate).tolist():
            key = ids[row]
            if key is None:
                continue
            if seen.get(key, oldest - 1) >= oldest:
                repeated[row] = True
            else:
                seen[key] = int(event_at[row])
        return repeated

    def _sweep(self, oldest: int) -> None:
        """Forget what no longer counts; seldom, so that small batches do not pay for many ids."""
        if oldest - self._swept > self._within // 4:
            self._ids = {key: at for key, at in self._ids.items() if at >= oldest}
            self._swept = oldest


def classify_arrival(
    rows: pa.Table, time: TimeSection, guard: int, watermark: int | None, seen: SeenIds | None
) -> Classified:
    """`guard` is the wall clock of the batch, `watermark` the one that held before it; both from its record."""
    faulty = np.asarray(rows["fault"].is_valid())
    if time.by == "arrival":
        event_at = np.full(rows.num_rows, guard, dtype=np.int64)
    else:
        event_at = rows["event_at"].cast(pa.int64()).fill_null(0).to_numpy()
    future = ~faulty & (event_at > guard + micros(time.max_ahead))
    sound = ~(faulty | future)
    if seen is None:
        duplicate = np.zeros(rows.num_rows, dtype=bool)
    else:
        duplicate = seen.repeats(rows["event_id"].to_pylist(), event_at, sound, watermark)
    arrival = np.zeros(rows.num_rows, dtype=np.int8)
    if watermark is not None:
        arrival[event_at < watermark] = LATE
        arrival[event_at < watermark - micros(time.allowed_lateness)] = TOO_LATE
    return Classified(event_at, faulty, future, duplicate, sound & ~duplicate, arrival)
