"""Windows by the clock on the wall, sliding windows by their panes, and durations as people write them."""

import functools
import itertools
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.contracts.durations import format_duration, parse_duration
from spark_jobs.contracts.windows import (
    DAY,
    MINUTE,
    SECOND,
    Calendar,
    Grain,
    Pane,
    Sliding,
    from_instant,
    pane_of_grains,
    to_instant,
)

HOUR = 60 * MINUTE
MANY = settings(derandomize=True, deadline=None, max_examples=150)
CLOCK_CHANGES = [
    ("America/New_York", datetime(2024, 3, 10, tzinfo=UTC)),
    ("America/New_York", datetime(2024, 11, 3, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2024, 10, 27, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2024, 4, 6, tzinfo=UTC)),  # half an hour back
    ("Australia/Lord_Howe", datetime(2024, 10, 5, tzinfo=UTC)),  # half an hour forward
    ("Atlantic/Azores", datetime(2024, 10, 27, tzinfo=UTC)),  # the hour after midnight comes twice
    ("America/Havana", datetime(2024, 3, 10, tzinfo=UTC)),  # the hour after midnight is missing
    ("America/Sao_Paulo", datetime(2018, 2, 17, tzinfo=UTC)),  # the hour before midnight comes twice
    ("Pacific/Apia", datetime(2011, 12, 30, tzinfo=UTC)),  # a whole day is missing
    ("Asia/Kolkata", datetime(2024, 6, 1, tzinfo=UTC)),
    ("Asia/Kathmandu", datetime(2024, 6, 1, tzinfo=UTC)),
]
MINUTES_A_GRAIN = (1, 5, 20, 30, 40, 45, 60, 90, 120, 360, 720, 1440)


def at(text: str, zone: str = "UTC", fold: int = 0) -> int:
    return from_instant(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold))


def grain(minutes: int) -> Grain:
    return Grain(f"{minutes} minutes", minutes * MINUTE)


@functools.cache
def minutes_around(zone: str, change: datetime) -> list[tuple[int, datetime, timedelta]]:
    """Three days: each minute, what the wall clock shows then, and how much of it the clock shows a second time."""
    watched = []
    for number in range(3 * 1440):
        instant = change - timedelta(days=1) + timedelta(minutes=number)
        wall = instant.astimezone(ZoneInfo(zone))
        first_time = wall.replace(fold=0).utcoffset() or timedelta()
        repeated = first_time - (wall.utcoffset() or timedelta())
        watched.append((from_instant(instant), wall.replace(tzinfo=None), repeated))
    return watched


def starts_by_looking_at_the_clock(zone: str, change: datetime, size: int) -> list[int]:
    """The starts of windows, found by watching the wall clock go by."""
    starts = []
    watched = minutes_around(zone, change)
    for (_, before, _), (instant, shown, repeated) in itertools.pairwise(watched):
        multiple = (shown.hour * 60 + shown.minute) // size * size
        latest = shown.replace(hour=multiple // 60, minute=multiple % 60)
        reached = before < latest or (shown < before and shown == latest)  # the latter where the clock goes back
        if reached and (not repeated or timedelta(minutes=size) <= repeated):
            starts.append(instant)
    return starts


@pytest.mark.parametrize("minutes", MINUTES_A_GRAIN)
@pytest.mark.parametrize(("zone", "change"), CLOCK_CHANGES, ids=lambda value: str(value).replace("/", "_")[:20])
def test_windows_start_when_the_wall_clock_reaches_or_skips_their_start(
    zone: str, change: datetime, minutes: int
) -> None:
    starts = starts_by_looking_at_the_clock(zone, change, minutes)
    calendar = Calendar(zone)
    for start, end in itertools.pairwise(starts):
        for inside in (*range(start, end, 20 * MINUTE), end - 1):
            assert calendar.window(inside, grain(minutes)) == (start, end), to_instant(inside)


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("America/New_York", date(2024, 3, 10), 23),
        ("America/New_York", date(2024, 11, 3), 25),
        ("Australia/Lord_Howe", date(2024, 4, 7), 24.5),
        ("Australia/Lord_Howe", date(2024, 10, 6), 23.5),
        ("Atlantic/Azores", date(2024, 10, 27), 25),
        ("Asia/Shanghai", date(2024, 3, 10), 24),
        ("Asia/Kolkata", date(2024, 3, 10), 24),
    ],
)
def test_a_day_lasts_as_long_as_the_clock_says(zone: str, day: date, hours: float) -> None:
    calendar = Calendar(zone)
    start = calendar.day_start(day)
    assert calendar.window(start + 12 * HOUR, grain(1440)) == (start, start + int(hours * HOUR))
    assert calendar.day_of(start) == day
    assert calendar.day_of(start - 1) == day - timedelta(days=1)
    assert calendar.day_of(start + int(hours * HOUR) - 1) == day


def test_an_hour_that_comes_twice_is_two_windows() -> None:
    calendar = Calendar("America/New_York")
    first = calendar.window(at("2024-11-03T01:30", "America/New_York"), grain(60))
    second = calendar.window(at("2024-11-03T01:30", "America/New_York", fold=1), grain(60))
    assert first == (at("2024-11-03T05:00"), at("2024-11-03T06:00"))
    assert second == (at("2024-11-03T06:00"), at("2024-11-03T07:00"))


def test_hours_of_a_half_hour_zone_start_at_half_past_in_utc() -> None:
    window = Calendar("Asia/Kolkata").window(at("2024-06-01T10:45"), grain(60))
    assert window == (at("2024-06-01T10:30"), at("2024-06-01T11:30"))


def test_the_hour_in_which_half_an_hour_is_repeated_lasts_ninety_minutes() -> None:
    start, end = Calendar("Australia/Lord_Howe").window(at("2024-04-06T14:40"), grain(60))
    assert (end - start) / HOUR == 1.5


@MANY
@given(
    st.sampled_from(["UTC", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Europe/Dublin", "Asia/Gaza"]),
    st.integers(at("1975-01-01"), at("2037-01-01")),
    st.sampled_from(MINUTES_A_GRAIN),
)
def test_an_instant_lies_in_its_window_and_windows_adjoin(zone: str, instant: int, minutes: int) -> None:
    calendar = Calendar(zone)
    start, end = calendar.window(instant, grain(minutes))
    assert start <= instant < end
    assert calendar.window(start, grain(minutes)) == (start, end)
    assert calendar.window(end - 1, grain(minutes)) == (start, end)
    assert calendar.window(end, grain(minutes))[0] == end
    assert calendar.window(start - 1, grain(minutes))[1] == start


def test_windows_shorter_than_a_minute_are_found_to_the_second() -> None:
    assert Calendar("Asia/Kolkata").window(17 * SECOND + 5, Grain("5 seconds", 5 * SECOND)) == (
        15 * SECOND,
        20 * SECOND,
    )


@pytest.mark.parametrize(
    ("sizes", "pane"),
    [((HOUR, DAY), MINUTE), ((MINUTE,), MINUTE), ((15 * SECOND, HOUR), 15 * SECOND), ((40 * SECOND,), 20 * SECOND)],
)
def test_the_pane_divides_every_grain_and_a_minute(sizes: tuple[int, ...], pane: int) -> None:
    assert pane_of_grains([Grain("", size) for size in sizes]) == Pane(pane)


@MANY
@given(
    length=st.integers(1, 200),
    slide=st.integers(1, 200),
    offset=st.integers(0, 10_000),
    instant=st.integers(-(10**6), 10**6),
)
def test_the_windows_of_a_pane_are_all_that_hold_its_instants(
    length: int, slide: int, offset: int, instant: int
) -> None:
    slide = min(slide, length)
    sliding = Sliding(length, slide, offset % slide)
    pane = sliding.pane.start_of(instant)
    assert pane <= instant < pane + sliding.pane.size
    wanted = [end for end in range(instant + 1, instant + length + 1) if (end + sliding.offset) % slide == 0]
    assert list(sliding.ends_after(pane)) == wanted


@pytest.mark.parametrize(
    ("zone", "hours"),
    [("UTC", 0), ("Asia/Kolkata", 5.5), ("America/New_York", -5), ("Asia/Shanghai", 8), ("Australia/Lord_Howe", 10.5)],
)
def test_sliding_windows_count_from_midnight_in_standard_time(zone: str, hours: float) -> None:
    assert Calendar(zone).standard_offset() == int(hours * HOUR)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10 seconds", 10),
        ("1 second", 1),
        ("5 minutes", 300),
        ("1 hour 30 minutes", 5400),
        ("1h30min", 5400),
        ("1.5 hours", 5400),
        ("100 ms", 0.1),
        ("2 Days", 172_800),
        (" 1 week ", 604_800),
        ("0 seconds", 0),
    ],
)
def test_durations_read_as_people_write_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text", ["", "  ", "10", "seconds", "-5 minutes", "5 parsecs", "5 minutes and a bit", "1:30", "1 month", "1e3 s"]
)
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="10 seconds"):
        parse_duration(text)


def test_a_duration_beyond_all_clocks_is_refused_like_any_other() -> None:
    with pytest.raises(ValueError, match="longer than any clock"):
        parse_duration("99999999999999 days")


@MANY
@given(st.timedeltas(min_value=timedelta(), max_value=timedelta(days=10_000)))
def test_a_duration_reads_back_as_it_was_written(value: timedelta) -> None:
    assert parse_duration(format_duration(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (timedelta(minutes=90), "90 minutes"),
        (timedelta(days=1), "1 day"),
        (timedelta(weeks=2), "2 weeks"),
        (timedelta(milliseconds=100), "100 milliseconds"),
        (timedelta(), "0 seconds"),
    ],
)
def test_a_duration_is_written_in_its_largest_unit(value: timedelta, text: str) -> None:
    assert format_duration(value) == text
