"""How fast a producer goes, and how it tells how far it has come."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple


class Progress(NamedTuple):
    """What has been landed so far."""

    rows: int
    files: int
    seconds: float


Report = Callable[[Progress], None]


def silent(progress: Progress) -> None:
    """Report to nobody."""


@dataclass
class Clock:
    """The time, and a way to wait for it; tests give their own."""

    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    started: float = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.now()

    def elapsed(self) -> float:
        return self.now() - self.started

    def wait_until(self, elapsed: float) -> None:
        """Return when `elapsed` seconds have passed since the start; at once if they have."""
        if (left := elapsed - self.elapsed()) > 0:
            self.sleep(left)
