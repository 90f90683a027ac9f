"""Faults planted among good clicks, so that what a stream makes of them can be compared with what was planted."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from include.errors import UsageError
from include.producer.clicks import DAY_SECONDS, Clicks, Ints, concatenate, take

OUT_OF_ORDER_SECONDS = 5
REPEATED_WITHIN = 20
FUTURE_YEARS = 50


class Fault(StrEnum):
    """What may be wrong with a row."""

    LATE = "late"  # event time moved back by between half and all of `late_by`
    OUT_OF_ORDER = "out_of_order"  # event time moved back by a few seconds: newer rows come first
    DUPLICATE = "duplicate"  # exactly one of the rows shortly before it
    MALFORMED = "malformed"  # the line cannot be read as a click
    FUTURE = "future"  # dated years ahead


FAULTS = tuple(Fault)
NO_FAULT = len(FAULTS)
"""The code of a good row; a faulty one has the index of its fault."""


@dataclass(frozen=True)
class FaultShares:
    """The share of rows with each fault; a row has at most one."""

    late: float = 0.0
    out_of_order: float = 0.0
    duplicate: float = 0.0
    malformed: float = 0.0
    future: float = 0.0
    late_by: timedelta = timedelta(minutes=30)

    def __post_init__(self) -> None:
        for fault, share in zip(FAULTS, self.in_order(), strict=True):
            if not 0 <= share <= 1:
                raise UsageError(f"the share of {fault} rows lies between 0 and 1; found {share:g}")
        if sum(self.in_order()) > 1 + 1e-9:
            raise UsageError(f"the shares of faults add up to {sum(self.in_order()):g}; at most 1 is possible")
        if self.late_by < timedelta(seconds=1):
            raise UsageError("late rows are late by at least 1 second")

    def in_order(self) -> tuple[float, ...]:
        return tuple(getattr(self, fault) for fault in FAULTS)


def plant(
    rng: np.random.Generator, clicks: Clicks, recent: Clicks, shares: FaultShares
) -> tuple[Clicks, NDArray[np.int64]]:
    """The clicks with faults in their columns, and the code of each row's fault.

    Malformed rows are only marked: what is wrong with them is their line. `recent` are good rows before these that
    may be repeated; a duplicate that finds no good row before it stays a good row.
    """
    codes = np.searchsorted(np.cumsum(shares.in_order()), rng.random(len(clicks.ts)), side="right")
    ts = clicks.ts.copy()
    late_by = max(1, round(shares.late_by.total_seconds()))
    _shift(ts, codes, Fault.LATE, -rng.integers(-(-late_by // 2), late_by, len(ts), endpoint=True))
    _shift(ts, codes, Fault.OUT_OF_ORDER, -rng.integers(1, OUT_OF_ORDER_SECONDS, len(ts), endpoint=True))
    _shift(ts, codes, Fault.FUTURE, 365 * DAY_SECONDS * rng.integers(1, FUTURE_YEARS, len(ts), endpoint=True))
    return _repeat(rng, clicks._replace(ts=ts), recent, codes)


def repeatable(codes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows are clicks of their own that a stream would count."""
    return ~np.isin(codes, [FAULTS.index(kind) for kind in (Fault.DUPLICATE, Fault.MALFORMED, Fault.FUTURE)])


def _shift(ts: Ints, codes: NDArray[np.int64], fault: Fault, seconds: Ints) -> None:
    chosen = codes == FAULTS.index(fault)
    ts[chosen] += seconds[chosen]


def _repeat(
    rng: np.random.Generator, clicks: Clicks, recent: Clicks, codes: NDArray[np.int64]
) -> tuple[Clicks, NDArray[np.int64]]:
    before = len(recent.ts)
    origins = np.concatenate([np.arange(before), before + np.flatnonzero(repeatable(codes))])
    repeats = np.flatnonzero(codes == FAULTS.index(Fault.DUPLICATE))
    earlier = np.searchsorted(origins, before + repeats)
    back = rng.integers(1, REPEATED_WITHIN, len(repeats), endpoint=True)
    codes[repeats[earlier == 0]] = NO_FAULT
    back, repeats, earlier = (values[earlier > 0] for values in (back, repeats, earlier))
    source = np.arange(before, before + len(clicks.ts))
    source[repeats] = origins[np.maximum(earlier - back, 0)]
    return take(concatenate(recent, clicks), source), codes
