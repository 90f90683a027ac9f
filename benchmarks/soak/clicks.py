"""Many small files of clicks, together one day in the order of event time."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.data import DAY_START, SEED
from include.producer.clicks import DAY_SECONDS, ClickShape, DailyRhythm, draw_clicks
from include.producer.landing import Landing
from include.producer.lines import to_bytes, to_lines


def land_small_files(directory: Path, files: int, rows: int) -> Iterator[None]:
    """Land one file a step; together they are a day."""
    rng, shape, landing = np.random.default_rng(SEED), ClickShape(), Landing(directory)
    rhythm = DailyRhythm(shape, DAY_START, DAY_SECONDS)
    for first in range(0, files * rows, rows):
        ts = rhythm.times(rng, first, rows, files * rows)
        with landing.file("clicks.csv") as out:
            out.write(to_bytes(to_lines(draw_clicks(rng, shape, ts, first), None)))
        yield
