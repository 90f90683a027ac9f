"""The one data set that every engine reads: seeded, a day in the order of event time, kept from run to run."""

import hashlib
import json
import shutil
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import numpy as np

from benchmarks.windows import WATERMARK_SECONDS
from include.producer.clicks import DAY_SECONDS, ClickShape, DailyRhythm, draw_clicks
from include.producer.landing import Landing
from include.producer.lines import to_bytes, to_lines

DAY_START = int(datetime(2025, 1, 15, tzinfo=UTC).timestamp())
SEED = 1


@dataclass(frozen=True)
class Dataset:
    """The same rows twice: in one file, and in files of `rows_per_file` whose modification times rise."""

    folder: Path
    events: int
    rows_per_file: int
    last_at: int  # epoch seconds of the last event

    @property
    def single(self) -> Path:
        return self.folder / "clicks.csv"

    @property
    def parts(self) -> Path:
        return self.folder / "parts"

    @property
    def closed_until(self) -> int:
        """The final watermark: a window that ends by then is closed."""
        return self.last_at - WATERMARK_SECONDS

    def warm(self) -> None:
        """Read everything once, so that the first engine does not pay for the disk alone."""
        for file in (self.single, *sorted(self.parts.iterdir())):
            with file.open("rb") as content:
                while content.read(1 << 22):
                    pass


def make_dataset(work: Path, events: int, rows_per_file: int, shape: ClickShape = ClickShape()) -> Dataset:
    """The data set of these sizes; made only if no earlier run has left a whole one."""
    key = hashlib.sha256(json.dumps([asdict(shape), SEED, DAY_START]).encode()).hexdigest()[:8]
    folder = work / "data" / f"{events}-in-files-of-{rows_per_file}-{key}"
    if not folder.exists():
        draft = folder.with_name(f".{folder.name}")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        last_at = _write(draft, events, rows_per_file, shape)
        (draft / "last_at.json").write_text(json.dumps(last_at), encoding="utf-8")
        draft.rename(folder)
    last_at = json.loads((folder / "last_at.json").read_text(encoding="utf-8"))
    return Dataset(folder, events, rows_per_file, last_at)


def _write(folder: Path, events: int, rows_per_file: int, shape: ClickShape) -> int:
    """Write both forms side by side; returns the time of the last event."""
    rng = np.random.default_rng(SEED)
    rhythm = DailyRhythm(shape, DAY_START, DAY_SECONDS)
    landing = Landing(folder / "parts")
    last_at = DAY_START
    with (folder / "clicks.csv").open("wb") as single:
        for first in range(0, events, rows_per_file):
            ts = rhythm.times(rng, first, min(rows_per_file, events - first), events)
            lines = to_bytes(to_lines(draw_clicks(rng, shape, ts, first), None))
            with landing.file("clicks.csv") as part:
                _write_all(lines, single, part)
            last_at = int(ts[-1])
    return last_at


def _write_all(content: memoryview, *files: BinaryIO) -> None:
    for file in files:
        file.write(content)
