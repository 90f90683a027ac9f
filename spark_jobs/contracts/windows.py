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


def _start(tz: ZoneInfo, us: int, size: int) -> tuple[int, datetime]:
    local = to_instant(us).astimezone(tz)
    midnight = datetime.combine(local.date(), time())
    start = midnight + micros(local.replace(tzinfo=None) - midnight) // size * size * MICRO
    return from_instant(start.replace(tzinfo=tz, fold=local.fold)), start


@lru_cache(maxsize=100_000)
def _window(tz: ZoneInfo, us: int, size: int) -> tuple[int, int]:
    start, local = _start(tz, us, size)
    after = local + size * MICRO
    ends = [from_instant(after.replace(tzinfo=tz, fold=fold)) for fold in (0, 1)]
    for end in [*ends, start + size]:  # clock changes make a window shorter or longer than its name
        if end > start and _start(tz, end - 1, size)[0] == start != _start(tz, end, size)[0]:
            return start, end
    return start, start + size


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
