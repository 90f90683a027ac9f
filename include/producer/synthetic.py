"""Synthetic clicks into a landing directory: all at once over a span of event time, or paced by the clock."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np

from include.errors import UsageError
from include.producer.click_stream import Block, BlockReader, ClickStream
from include.producer.clicks import ClickShape, DailyRhythm, Ints
from include.producer.faults import FaultShares
from include.producer.landing import Landing
from include.producer.lines import header_line, to_bytes
from include.producer.manifest import ClickTally
from include.producer.pace import Clock, Progress, Report, silent


@dataclass(frozen=True)
class Burst:
    """This many rows as fast as possible, with event times from `start` on, over `span`."""

    rows: int
    start: datetime
    span: timedelta
    files: int = 1

    def __post_init__(self) -> None:
        if self.rows < 1 or not 1 <= self.files <= self.rows:
            raise UsageError(f"{self.rows} rows do not fill {self.files} files")
        if self.span < timedelta(seconds=1):
            raise UsageError("a span is at least 1 second")

    def rhythm(self, shape: ClickShape) -> DailyRhythm:
        return DailyRhythm(shape, int(self.start.timestamp()), int(self.span.total_seconds()))


@dataclass(frozen=True)
class Pace:
    """So many rows a second, each dated when it is made, a file `every` so often; for ever without a duration."""

    rate: float
    duration: timedelta | None = None
    every: timedelta = timedelta(milliseconds=200)

    def __post_init__(self) -> None:
        if self.every < timedelta(milliseconds=1):
            raise UsageError("files land at most every millisecond")


@dataclass
class ClickRun:
    """One run: what is to be made, and the tally of what has landed, exact also when the run is interrupted.

    The rows of a burst depend on the seed, the shape, the shares and the plan's rows, start and span alone.
    """

    landing: Landing
    name: str
    plan: Burst | Pace
    shape: ClickShape = ClickShape()
    shares: FaultShares = FaultShares()
    seed: int = 1
    event_ids: bool = False
    with_header: bool = False
    files: int = 0
    tally: ClickTally = field(default_factory=ClickTally)

    def run(self, clock: Clock | None = None, report: Report = silent) -> None:
        clock = clock or Clock()
        start = self.plan.start if isinstance(self.plan, Burst) else datetime.fromtimestamp(clock.started, UTC)
        stream = ClickStream(
            self.shape, self.shares, self.seed, id_prefix(start, self.seed) if self.event_ids else None
        )
        if isinstance(self.plan, Burst):
            self._burst(self.plan, stream, clock, report)
        else:
            self._pace(self.plan, stream, clock, report)

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": "synthetic",
            "seed": self.seed,
            "event_ids": self.event_ids,
            "shape": asdict(self.shape),
            "shares": asdict(self.shares) | {"late_by": f"{self.shares.late_by.total_seconds():g} seconds"},
            "files": self.files,
            **self.tally.as_json(),
        }

    def _burst(self, plan: Burst, stream: ClickStream, clock: Clock, report: Report) -> None:
        rhythm = plan.rhythm(self.shape)
        reader = BlockReader(
            plan.rows, lambda first, count: stream.draw(rhythm.times(stream.rng, first, count, plan.rows))
        )
        bounds = [plan.rows * i // plan.files for i in range(plan.files + 1)]
        for first, end in pairwise(bounds):
            self._write(reader.read(end - first))
            report(Progress(self.tally.rows, self.files, clock.elapsed()))

    def _pace(self, plan: Pace, stream: ClickStream, clock: Clock, report: Report) -> None:
        """A writer that falls behind lands longer files, so that the rate holds."""
        step = plan.every.total_seconds()
        end = plan.duration.total_seconds() if plan.duration else float("inf")
        written, since, tick = 0, 0.0, 0
        while since < end:
            tick = max(tick, int(since // step)) + 1
            until = min(end, tick * step)
            clock.wait_until(until)
            until = min(end, max(until, clock.elapsed()))
            due = round(plan.rate * until) - written
            if due > 0:
                self._write([stream.draw(times_between(clock.started + since, clock.started + until, due))])
                written += due
                report(Progress(self.tally.rows, self.files, clock.elapsed()))
            since = until

    def _write(self, blocks: Iterable[Block]) -> None:
        pending = ClickTally()
        with self.landing.file(f"{self.name}-{self.files:06d}.csv") as out:
            if self.with_header:
                out.write(header_line(self.event_ids))
            for block in blocks:
                out.write(to_bytes(block.lines))
                pending.add(block)
        self.files += 1
        self.tally.merge(pending)


def id_prefix(start: datetime, seed: int) -> str:
    """What event ids begin with: another start or another seed gives other ids."""
    return f"{int(start.timestamp()):x}-{seed}"


def times_between(after: float, until: float, count: int) -> Ints:
    """`count` whole seconds in order, evenly spread; the last is that of `until`."""
    return np.linspace(until, after, count, endpoint=False)[::-1].astype(np.int64)
