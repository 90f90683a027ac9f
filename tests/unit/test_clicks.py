"""Synthetic clicks: their shape, the faults planted among them, and the manifest that says so."""

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from include.errors import UsageError
from include.producer import click_stream, synthetic
from include.producer.clicks import BEHAVIORS, Clicks, ClickShape, DailyRhythm, draw_clicks
from include.producer.faults import FaultShares
from include.producer.landing import Landing
from include.producer.lines import to_bytes
from include.producer.manifest import manifest_path, recorded
from include.producer.pace import Clock
from include.producer.synthetic import Burst, ClickRun, Pace

START = datetime(2025, 1, 15, tzinfo=UTC)
SMALL = ClickShape(items=50, visitors=300, categories=7)
EVERY_FAULT = FaultShares(late=0.1, out_of_order=0.1, duplicate=0.1, malformed=0.1, future=0.1)
NUMBERS = (0, 1, 2, 4)


class SteppingClock:
    """A clock that moves when somebody waits for it, and by `cost` whenever it is read; the first wait overruns."""

    def __init__(self, cost: float = 0.0, overrun: float = 0.0) -> None:
        self.at = START.timestamp()
        self.cost, self.overrun = cost, overrun

    def now(self) -> float:
        self.at += self.cost
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += seconds + self.overrun
        self.overrun = 0.0


def burst(directory: Path, rows: int = 5_000, files: int = 3, **changes: Any) -> ClickRun:
    span = changes.pop("span", timedelta(hours=6))
    run = ClickRun(
        Landing(directory), "clicks", Burst(rows, START, span, files), changes.pop("shape", SMALL), **changes
    )
    run.run()
    return run


def paced(directory: Path, plan: Pace, clock: SteppingClock, **changes: Any) -> ClickRun:
    run = ClickRun(Landing(directory), "clicks", plan, SMALL, **changes)
    run.run(Clock(clock.now, clock.sleep))
    return run


def content(directory: Path) -> str:
    return "".join(file.read_text() for file in sorted(directory.iterdir()))


def lines(directory: Path) -> list[str]:
    return content(directory).removesuffix("\n").split("\n")


def readable(line: str, columns: int = 5) -> bool:
    """Whether a strict reader takes the line apart."""
    parts = line.split(",")
    return len(parts) == columns and all(parts[i].isdigit() for i in NUMBERS) and parts[3] in BEHAVIORS


def event_times(directory: Path) -> Iterator[int]:
    return (int(line.split(",")[4]) for line in lines(directory))


def draw(count: int, shape: ClickShape = SMALL) -> Clicks:
    return draw_clicks(np.random.default_rng(5), shape, np.arange(count), 0)


def test_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        burst(tmp_path / name, shares=EVERY_FAULT, seed=seed, event_ids=True)
    assert content(tmp_path / "a") == content(tmp_path / "b")
    assert content(tmp_path / "a") != content(tmp_path / "c")


def test_rows_do_not_depend_on_how_many_files_they_fill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click_stream, "BLOCK_ROWS", 700)
    runs = [burst(tmp_path / str(files), files=files, shares=EVERY_FAULT) for files in (1, 3, 40)]
    assert [len(list((tmp_path / str(files)).iterdir())) for files in (1, 3, 40)] == [1, 3, 40]
    assert content(tmp_path / "1") == content(tmp_path / "3") == content(tmp_path / "40")
    assert runs[0].tally == runs[1].tally == runs[2].tally


def test_files_of_a_burst_are_of_equal_length(tmp_path: Path) -> None:
    burst(tmp_path, rows=1_000, files=3)
    assert [file.read_text().count("\n") for file in sorted(tmp_path.iterdir())] == [333, 333, 334]


def test_items_follow_a_bounded_zipf_law() -> None:
    counts = Counter(draw(200_000, ClickShape(items=50, item_exponent=1.0)).item_id.tolist())
    assert set(counts) == set(range(1, 51))
    assert counts[1] / counts[2] == pytest.approx(2, rel=0.05)
    assert counts[1] / counts[10] == pytest.approx(10, rel=0.1)


def test_visitors_are_as_many_as_asked_for() -> None:
    assert set(draw(20_000).user_id.tolist()) == set(range(1, 301))


def test_an_item_always_has_the_same_category() -> None:
    clicks = draw(10_000)
    pairs = set(zip(clicks.item_id.tolist(), clicks.category_id.tolist(), strict=True))
    assert len(pairs) == 50
    assert {category for _, category in pairs} == set(range(1, 8))


def test_behaviors_have_their_shares() -> None:
    shares = np.bincount(draw(200_000).behavior, minlength=4) / 200_000
    assert dict(zip(BEHAVIORS, shares, strict=True)) == pytest.approx(
        {"pv": 0.90, "buy": 0.02, "cart": 0.05, "fav": 0.03}, abs=0.002
    )


def test_rate_swings_once_a_day_around_its_peak_hour() -> None:
    shape = ClickShape(swing=0.6, peak_hour=12)
    rhythm = DailyRhythm(shape, int(START.timestamp()), 2 * 86_400)
    hours = rhythm.times(np.random.default_rng(1), 0, 480_000, 480_000) // 3600 % 24
    by_hour = np.bincount(hours, minlength=24) / 20_000
    expected = 1 + 0.6 * np.cos(2 * np.pi * (np.arange(24) + 0.5 - 12) / 24)
    assert by_hour == pytest.approx(expected, abs=0.02)


def test_event_times_rise_and_stay_within_the_span(tmp_path: Path) -> None:
    burst(tmp_path, span=timedelta(minutes=10))
    times = list(event_times(tmp_path))
    assert times == sorted(times)
    assert START.timestamp() <= times[0]
    assert times[-1] < START.timestamp() + 600
    assert times[-1] - times[0] > 590


def test_rows_have_the_columns_of_the_spec(tmp_path: Path) -> None:
    burst(tmp_path)
    assert all(readable(line) for line in lines(tmp_path))


def test_header_leads_every_file_when_asked_for(tmp_path: Path) -> None:
    burst(tmp_path, with_header=True, event_ids=True)
    firsts = {file.read_text().split("\n")[0] for file in tmp_path.iterdir()}
    assert firsts == {"user_id,item_id,category_id,behavior,ts,event_id"}


def moves(tmp_path: Path, **shares: Any) -> list[int]:
    """By how many seconds planting moved each row that it moved."""
    burst(tmp_path / "good", shares=FaultShares())
    burst(tmp_path / "faulty", shares=FaultShares(**shares))
    pairs = zip(event_times(tmp_path / "good"), event_times(tmp_path / "faulty"), strict=True)
    return [after - before for before, after in pairs if after != before]


def test_late_rows_are_moved_back_by_at_least_half_of_late_by(tmp_path: Path) -> None:
    found = moves(tmp_path, late=0.2, late_by=timedelta(minutes=10))
    assert len(found) == pytest.approx(1_000, abs=100)
    assert -600 <= min(found) < -590
    assert -310 < max(found) <= -300


def test_out_of_order_rows_are_moved_back_by_a_few_seconds(tmp_path: Path) -> None:
    assert set(moves(tmp_path, out_of_order=0.2)) == {-1, -2, -3, -4, -5}


def test_future_rows_are_dated_years_ahead(tmp_path: Path) -> None:
    found = moves(tmp_path, future=0.1)
    assert len(found) == pytest.approx(500, abs=80)
    assert min(found) >= 365 * 86_400


def test_duplicate_repeats_a_row_shortly_before_it(tmp_path: Path) -> None:
    run = burst(tmp_path, shares=FaultShares(duplicate=0.2), event_ids=True)
    rows = lines(tmp_path)
    repeated = [i for i, line in enumerate(rows) if line in rows[max(0, i - 60) : i]]
    assert len(repeated) == run.tally.planted["duplicate"] == pytest.approx(1_000, abs=100)


def test_event_ids_are_distinct_but_for_duplicates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click_stream, "BLOCK_ROWS", 700)
    run = burst(tmp_path, shares=FaultShares(duplicate=0.2), event_ids=True)
    assert len({line.split(",")[5] for line in lines(tmp_path)}) == 5_000 - run.tally.planted["duplicate"]


def test_event_ids_differ_between_runs_that_start_at_different_times() -> None:
    assert synthetic.id_prefix(START, 1) != synthetic.id_prefix(START + timedelta(seconds=1), 1)


def test_duplicates_are_found_across_files_of_one_row(tmp_path: Path) -> None:
    plan = Pace(10, timedelta(seconds=20), timedelta(milliseconds=100))
    run = paced(tmp_path, plan, SteppingClock(), shares=FaultShares(duplicate=0.5), event_ids=True)
    assert run.files == 200
    assert len(set(lines(tmp_path))) == 200 - run.tally.planted["duplicate"]
    assert run.tally.planted["duplicate"] > 50


def test_rows_that_can_repeat_nothing_stay_good_rows(tmp_path: Path) -> None:
    run = burst(tmp_path, shares=FaultShares(duplicate=1.0))
    assert run.tally.planted["duplicate"] == 0
    assert all(readable(line) for line in lines(tmp_path))


@pytest.mark.parametrize("event_ids", [False, True])
def test_no_malformed_line_can_be_read(tmp_path: Path, event_ids: bool) -> None:
    run = burst(tmp_path, shares=FaultShares(malformed=1.0), event_ids=event_ids)
    rows = lines(tmp_path)
    assert len(rows) == 5_000
    assert not [line for line in rows if readable(line, 6 if event_ids else 5)]
    assert rows.count("") == run.tally.malformed["empty_line"] > 1_000
    assert all(run.tally.malformed[kind] > 1_000 for kind in ("cut_off", "text_in_number", "missing_column"))


def test_manifest_says_what_a_reader_of_the_files_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click_stream, "BLOCK_ROWS", 700)
    found = burst(tmp_path, shares=EVERY_FAULT, span=timedelta(hours=5)).as_json()
    rows = lines(tmp_path)
    latest = int(START.timestamp()) + 5 * 3600
    valid = [line.split(",") for line in rows if readable(line) and int(line.split(",")[4]) <= latest]
    views = [columns for columns in valid if columns[3] == "pv"]
    hours = Counter(datetime.fromtimestamp(int(view[4]) // 3600 * 3600, UTC) for view in views)
    assert found["rows"] == len(rows) == 5_000
    assert found["files"] == 3
    assert found["valid_rows"] == len(valid)
    assert found["planted"]["malformed"] == sum(not readable(line) for line in rows) == sum(found["malformed"].values())
    assert found["planted"]["future"] == len(rows) - len(valid) - found["planted"]["malformed"]
    assert found["oldest_event_at"] == f"{datetime.fromtimestamp(min(int(row[4]) for row in valid), UTC):%FT%TZ}"
    assert found["newest_event_at"] == f"{datetime.fromtimestamp(max(int(row[4]) for row in valid), UTC):%FT%TZ}"
    assert found["expected"]["page_views"] == len(views)
    assert found["expected"]["unique_visitors"] == len({view[0] for view in views})
    assert found["expected"]["page_views_by_hour"] == {f"{hour:%FT%TZ}": count for hour, count in hours.items()}


def test_repeated_page_views_are_those_that_event_ids_tell_apart(tmp_path: Path) -> None:
    expected = burst(tmp_path, shares=EVERY_FAULT, event_ids=True).as_json()["expected"]
    latest = int(START.timestamp()) + 6 * 3600
    rows = [line.split(",") for line in lines(tmp_path) if readable(line, 6)]
    ids = {row[5] for row in rows if row[3] == "pv" and int(row[4]) <= latest}
    assert expected["page_views"] - expected["repeated_page_views"] == len(ids)


def test_tally_counts_only_files_that_landed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click_stream, "BLOCK_ROWS", 100)
    run = ClickRun(Landing(tmp_path), "clicks", Burst(900, START, timedelta(hours=1), 3), SMALL)
    calls: list[int] = []

    def interrupted(rows: Any) -> memoryview:
        calls.append(len(rows))
        if len(calls) == 8:
            raise KeyboardInterrupt
        return to_bytes(rows)

    monkeypatch.setattr(synthetic, "to_bytes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run.run()
    assert run.tally.rows == len(lines(tmp_path)) == 600
    assert len(list(tmp_path.iterdir())) == run.files == 2


def test_paced_run_lands_the_rate_and_dates_rows_when_they_are_made(tmp_path: Path) -> None:
    plan = Pace(500, timedelta(seconds=3), timedelta(milliseconds=200))
    run = paced(tmp_path, plan, SteppingClock())
    assert (run.tally.rows, run.files) == (1_500, 15)
    at = int(START.timestamp())
    assert Counter(event_times(tmp_path)) == pytest.approx({at: 500, at + 1: 500, at + 2: 500, at + 3: 0}, abs=2)


def test_paced_run_that_falls_behind_lands_longer_files(tmp_path: Path) -> None:
    plan = Pace(500, timedelta(seconds=3), timedelta(milliseconds=200))
    run = paced(tmp_path, plan, SteppingClock(cost=0.25))
    assert run.tally.rows == 1_500
    assert run.files < 10


def test_paced_run_makes_up_for_a_pause_with_one_file(tmp_path: Path) -> None:
    plan = Pace(5_000, timedelta(seconds=3), timedelta(milliseconds=200))
    run = paced(tmp_path, plan, SteppingClock(cost=0.0001, overrun=1.0))
    sizes = [file.read_text().count("\n") for file in sorted(tmp_path.iterdir())]
    assert sizes[0] == pytest.approx(6_000, abs=20)
    assert sizes[1:] == pytest.approx([1_000] * 9, abs=20)
    assert run.tally.rows == 15_000


def test_slow_pace_lands_no_empty_file(tmp_path: Path) -> None:
    run = paced(tmp_path, Pace(1, timedelta(seconds=5), timedelta(milliseconds=200)), SteppingClock())
    assert (run.tally.rows, run.files) == (5, 5)


@pytest.mark.parametrize("shares", [{"late": -0.1}, {"future": 1.5}, {"late": 0.6, "malformed": 0.6}])
def test_impossible_shares_are_refused(shares: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="share"):
        FaultShares(**shares)


def test_more_files_than_rows_are_refused() -> None:
    with pytest.raises(UsageError, match="3 rows do not fill 5 files"):
        Burst(3, START, timedelta(hours=1), 5)


def test_name_of_a_manifest_is_used_once(tmp_path: Path) -> None:
    path = manifest_path(tmp_path, "mine")
    with recorded(path, lambda: {"rows": 1}):
        pass
    with pytest.raises(UsageError, match="choose another --name"):
        manifest_path(tmp_path, "mine")


def test_interrupted_run_leaves_a_manifest_that_says_so(tmp_path: Path) -> None:
    path = manifest_path(tmp_path, "mine")
    with pytest.raises(KeyboardInterrupt), recorded(path, lambda: {"rows": 1}):
        raise KeyboardInterrupt
    assert json.loads(path.read_text()) == {"rows": 1, "complete": False}
    assert [file.name for file in path.parent.iterdir()] == ["mine.json"]
