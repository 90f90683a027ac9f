"""The steady pace: which event is made when, and which file it goes into."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

SETTLING_SECONDS = 20


@dataclass(frozen=True)
class Pace:
    """Event i is made at `start + i / rate` (epoch seconds), and lands in a file at the end of its tick."""

    start: float
    rate: int
    seconds: int
    tick: float = 0.05

    @property
    def files(self) -> int:
        return round((SETTLING_SECONDS + self.seconds) / self.tick)

    @property
    def rows_per_file(self) -> int:
        return round(self.rate * self.tick)

    @property
    def events(self) -> int:
        return self.files * self.rows_per_file

    @property
    def first_counted(self) -> int:
        """Events before this one give the stream time to warm up."""
        return SETTLING_SECONDS * self.rate

    def made_at(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.start + numbers / self.rate

    def lands_at(self, file: int) -> float:
        return self.start + (file + 1) * self.tick

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        return cls(**json.loads(path.read_text(encoding="utf-8")))
