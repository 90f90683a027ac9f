"""Windows over event time. Instants are microseconds since 1970 UTC; days and hours are those of a zone."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property, lru_cache
from math import gcd
from zoneinfo import ZoneInfo

MICRO = timedelta(microseconds=1)
SECOND = 1_000_000
MINUTE = 60 * SECOND
DAY = 86_400 * SECOND
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(value: timedelta) -> int:
    return value // MICRO


def to_instant(us: int) -> datetime:
    return _EPOCH + us * MICRO


def from_instant(at: datetime) -> int:
    return (at - _EPOCH) // MICRO


@dataclass(frozen=True)
class Pane:
    """A short tumbling window that longer windows are summed from: starts lie at `k * size - offset`."""

    size: int
    offset: int = 0

    def start_of(self, us: int) -> int:
        return (us + self.offset) // self.size * self.size - self.offset


@dataclass(frozen=True)
class Grain:
    """One window length of the traffic numbers, named as in the spec."""

    name: str
    size: int


@dataclass(frozen=True)
class Calendar:
    """The clock on the wall of one zone."""

    zone: str

    @cached_property
    def _tz(self) -> ZoneInfo:
        return ZoneInfo(self.zone)

    def day_of(self, us: int) -> date:
        return to_instant(us).astimezone(self._tz).date()

    def day_start(self, day: date) -> int:
        return from_instant(datetime.combine(day, time(), self._tz))

    def window(self, us: int, grain: Grain) -> tuple[int, int]:
        """Start and end of the window of `grain` that holds `us`, by the wall clock: a day may have 23 or 25 hours."""
        return _window(self._tz, us // MINUTE * MINUTE if grain.size >= MINUTE else us, grain.size)

    def standard_offset(self) -> int:
        """The zone's offset from UTC without daylight saving."""
        at = datetime(2024, 1, 1, tzinfo=self._tz)
        return micros((at.utcoffset() or timedelta()) - (at.dst() or timedelta()))


def _wall(tz: ZoneInfo, us: int) -> datetime:
    return to_instant(us).astimezone(tz)


def _into(local: datetime, size: int) -> int:
    """How far the wall clock is into its window, counted from midnight."""
    return (micros(timedelta(hours=local.hour, minutes=local.minute, seconds=local.second)) + local.microsecond) % size


def _start(tz: ZoneInfo, us: int, size: int) -> int:
    """Start of the window: the last time, up to `us`, that the wall clock reached or skipped a multiple of `size`.

    Where the clock goes back, times that it shows again start a window again only if a whole one fits in what is
    repeated: an hour comes twice, a day does not.
    """
    local = _wall(tz, us)
    start = us - _into(local, size)
    first = _wall(tz, start)
    now, then = local.utcoffset() or timedelta(), first.utcoffset() or timedelta()
    repeated = (first.replace(fold=0).utcoffset() or timedelta()) - then if first.fold else timedelta()
    if now == then and (not repeated or size <= micros(repeated)):
        return start
    change = _change(tz, start - micros(repeated), us)
    if now > then:  # the clock went forward
        before, after = _wall(tz, change - 1), _wall(tz, change)
        skipped = micros(after.replace(tzinfo=None) - before.replace(tzinfo=None)) - 1
        if _into(after, size) <= skipped:
            return change
    return _start(tz, change - 1, size)


def _change(tz: ZoneInfo, before: int, after: int) -> int:
    """The first instant that has the offset of `after`, where `before` has another."""
    offset = _wall(tz, after).utcoffset()
    while after - before > 1:
        middle = (before + after) // 2
        before, after = (before, middle) if _wall(tz, middle).utcoffset() == offset else (middle, after)
    return after


@lru_cache(maxsize=100_000)
def _window(tz: ZoneInfo, us: int, size: int) -> tuple[int, int]:
    start = _start(tz, us, size)
    end = start + size
    if _start(tz, end - 1, size) == start != _start(tz, end, size):
        return start, end
    inside, outside = us, us + size + DAY  # clock changes make a window shorter or longer than its name
    while outside - inside > 1:
        middle = (inside + outside) // 2
        inside, outside = (middle, outside) if _start(tz, middle, size) == start else (inside, middle)
    return start, outside


def pane_of_grains(grains: list[Grain]) -> Pane:
    """The longest pane that divides a minute and every grain."""
    return Pane(gcd(MINUTE, *(grain.size for grain in grains)))


@dataclass(frozen=True)
class Sliding:
    """Windows of `length` that end every `slide`, counted from local midnight in standard time."""

    length: int
    slide: int
    offset: int = 0

    @property
    def pane(self) -> Pane:
        return Pane(gcd(self.length, self.slide), self.offset)

    def ends_after(self, pane_start: int) -> range:
        """The ends of all windows that hold the pane."""
        first = (pane_start + self.offset) // self.slide * self.slide + self.slide - self.offset
        return range(first, pane_start + self.length + 1, self.slide)
