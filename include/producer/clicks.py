"""Synthetic clicks, drawn as whole columns; the same generator state gives the same clicks."""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

DAY_SECONDS = 86_400
BEHAVIORS = ("pv", "buy", "cart", "fav")
BEHAVIOR_SHARES = (0.90, 0.02, 0.05, 0.03)
_CATEGORY_MULTIPLIER = 2_654_435_761


@dataclass(frozen=True)
class ClickShape:
    """Who clicks on what, and when. Item 1 is the hottest; item k is drawn in proportion to k^-item_exponent."""

    items: int = 100_000
    item_exponent: float = 1.1
    visitors: int = 200_000
    categories: int = 5_000
    swing: float = 0.6  # of the daily rhythm: 0 is flat, 1 falls silent at the quietest hour
    peak_hour: float = 12.0  # in UTC: evening in Shanghai


class Clicks(NamedTuple):
    """Columns of equal length, in the order of the rows."""

    user_id: Ints
    item_id: Ints
    category_id: Ints
    behavior: Ints  # index into BEHAVIORS
    ts: Ints  # epoch seconds
    number: Ints  # which event of its stream this is; a repeated row has the number of its origin


def draw_clicks(rng: np.random.Generator, shape: ClickShape, ts: Ints, first_number: int) -> Clicks:
    """One click for each event time, numbered from `first_number`."""
    count = len(ts)
    items = 1 + np.searchsorted(popularity(shape.items, shape.item_exponent), rng.random(count), side="right")
    return Clicks(
        user_id=rng.integers(1, shape.visitors, count, endpoint=True),
        item_id=items,
        category_id=category_of(items, shape.categories),
        behavior=np.searchsorted(np.cumsum(BEHAVIOR_SHARES[:-1]), rng.random(count), side="right"),
        ts=ts,
        number=np.arange(first_number, first_number + count),
    )


@lru_cache(maxsize=4)
def popularity(items: int, exponent: float) -> Floats:
    """The share of clicks on items 1..k, for every k: a Zipf law that ends at `items`."""
    cumulated: Floats = np.cumsum(np.arange(1, items + 1, dtype=np.float64) ** -exponent)
    cumulated /= cumulated[-1]
    return cumulated


def category_of(item_id: Ints, categories: int) -> Ints:
    """The category an item always has, from 1; neighbouring items fall in different ones."""
    return 1 + item_id * _CATEGORY_MULTIPLIER % categories


def take(clicks: Clicks, rows: slice | NDArray[np.int64] | NDArray[np.bool_]) -> Clicks:
    return Clicks(*(column[rows] for column in clicks))


def concatenate(first: Clicks, second: Clicks) -> Clicks:
    return Clicks(*(np.concatenate(columns) for columns in zip(first, second, strict=True)))


class DailyRhythm:
    """Event times over a span whose rate rises and falls once a day, as a sinusoid."""

    def __init__(self, shape: ClickShape, start: int, span_seconds: int) -> None:
        self._grid = np.linspace(start, start + span_seconds, max(2, min(span_seconds // 60, 1_000_000)))
        angle = 2 * np.pi * (self._grid / DAY_SECONDS - shape.peak_hour / 24)
        passed = self._grid - start + shape.swing * DAY_SECONDS / (2 * np.pi) * np.sin(angle)
        self._share = (passed - passed[0]) / (passed[-1] - passed[0])
        self._last = start + span_seconds - 1

    def times(self, rng: np.random.Generator, first: int, count: int, rows: int) -> Ints:
        """Epoch seconds of rows `first`.. of `rows` in all, in order: each row has its own share of the span."""
        shares = (np.arange(first, first + count) + rng.random(count)) / rows
        return np.minimum(np.interp(shares, self._share, self._grid).astype(np.int64), self._last)
