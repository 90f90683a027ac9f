"""Whatever kills the driver, and wherever: the tables end as if nothing had happened, and never lie in between."""

import functools
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from include.serving.warehouse import Warehouse
from spark_jobs.errors import TidemarkError
from spark_jobs.jobs import live_batches
from spark_jobs.sinks import upkeep
from tests.e2e.processes import end_of, start_driver
from tests.e2e.story import (
    BETWEEN_LOGS,
    IN_A_BATCH,
    TABLES,
    Trap,
    cut_of,
    differences,
    is_first_try,
    land_story,
    numbers_at,
    open_books,
    rewind,
    spec_of_story,
)
from tests.harness import drain, land_lines, rows

pytestmark = pytest.mark.spark
FILES = 30
FEW_FILES = 9
SEEDS = (1, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 11)))
MOST_TELLING = (
    "after source log",
    "after offsets",
    "after batch record",
    "after events",
    "before batches",
    "after batches",
    "after commit log",
)

Uninterrupted = Callable[[int, int], Path]


class Planted(TidemarkError):
    """The fault that these tests bring in."""


def fail() -> None:
    raise Planted("planted fault")


@pytest.fixture(scope="module")
def uninterrupted(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Uninterrupted:
    """The home of a run of the story that nothing disturbed, by seed and number of files."""

    @functools.cache
    def drained(seed: int, files: int) -> Path:
        home = tmp_path_factory.mktemp("uninterrupted")
        land_story(home, seed, files)
        totals = drain(spark, home, spec_of_story())
        assert min(totals.values()) > 0, "the story has rows of every class"
        assert open_books(home) == []
        return home

    return drained


@functools.cache
def numbers_after(reference: Path, batch: int) -> dict[str, list[Any]]:
    return numbers_at(reference, cut_of(reference, batch))


def assert_readers_see_whole_batches(home: Path, reference: Path, where: str) -> None:
    """What a reader gets between a death and the next start: the batches up to the newest cut, no more and no less."""
    cut = Warehouse(home, "clicks").cut()
    assert not cut.drained
    assert differences(numbers_at(home, cut), numbers_after(reference, cut.batch)) == {}, where


def assert_as_if_nothing_had_happened(home: Path, reference: Path) -> None:
    assert differences(numbers_at(home), numbers_at(reference)) == {}
    assert open_books(home) == []
    drained = [row["id"] for row in rows(home, "batches") if row["drained"]]
    assert drained == [max(row["id"] for row in rows(home, "batches"))]


def itinerary(points: tuple[str, ...], seed: int) -> list[tuple[str, int]]:
    """The points in the seed's order; most are met in the first batch of their run, also in one that is replayed."""
    chance = random.Random(seed)
    order = chance.sample(points, len(points))
    return [(point, chance.choice([1, 1, 2])) for point in order]


@pytest.mark.parametrize("seed", SEEDS)
def test_an_error_at_any_point_leaves_no_trace(
    spark: SparkSession, home: Path, uninterrupted: Uninterrupted, seed: int
) -> None:
    reference = uninterrupted(seed, FILES)
    land_story(home, seed, FILES)
    for point, nth in itinerary((*IN_A_BATCH, *BETWEEN_LOGS), seed):
        if point in BETWEEN_LOGS:
            trap = Trap("after offsets", 1, fail)
            reached = lambda at, trap=trap: trap(at) if is_first_try(home) else None  # noqa: E731
        else:
            reached = trap = Trap(point, nth, fail)
        with pytest.raises(TidemarkError, match="planted fault"):
            drain(spark, home, spec_of_story(), reached=reached)
        if point in BETWEEN_LOGS:
            rewind(home, point)
        assert_readers_see_whole_batches(home, reference, f"{point}, {nth}")
    drain(spark, home, spec_of_story())
    assert_as_if_nothing_had_happened(home, reference)


def test_readers_see_nothing_of_a_first_batch_that_failed(spark: SparkSession, home: Path) -> None:
    land_story(home, seed=1, files=1)
    with pytest.raises(TidemarkError, match="planted fault"):
        drain(spark, home, spec_of_story(), reached=Trap("before batches", 1, fail))
    assert len(rows(home, "events")) > 0, "its rows are in the table"
    assert {name: found for name, found in numbers_at(home).items() if found} == {}


def test_a_replayed_batch_decides_by_the_clock_of_its_first_try(
    spark: SparkSession, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a row from the future that is none any more would be in quarantine and among the events."""
    spec = spec_of_story()
    hour = 3_600
    at = int(time.time() + spec.time.max_ahead.total_seconds()) + hour
    land_lines(home, [[f"a,1,1,pv,{at}", f"b,1,1,pv,{at - 2 * hour}"]])
    with pytest.raises(TidemarkError, match="planted fault"):
        drain(spark, home, spec, reached=Trap("after batch record", 1, fail))
    monkeypatch.setattr(live_batches, "_now", lambda: int(time.time() + 2 * hour) * 1_000_000)
    drain(spark, home, spec)
    assert [row["event_id"] for row in rows(home, "events")] == ["b"]
    assert [row["reason"] for row in rows(home, "quarantine")] == ["future"]
    assert open_books(home) == []


def test_a_death_while_the_drain_is_finished_shows_each_open_window_once(
    spark: SparkSession, home: Path, uninterrupted: Uninterrupted
) -> None:
    reference = uninterrupted(1, FEW_FILES)
    land_story(home, 1, FEW_FILES)
    for point in ("before open windows", "after open windows", "after open windows"):
        with pytest.raises(Planted):
            drain(spark, home, spec_of_story(), reached=Trap(point, 1, fail))
        assert_readers_see_whole_batches(home, reference, point)
    with pytest.raises(Planted):
        drain(spark, home, spec_of_story(), reached=Trap("after drained", 1, fail))
    assert_as_if_nothing_had_happened(home, reference)
    drain(spark, home, spec_of_story())
    assert_as_if_nothing_had_happened(home, reference)
    open_windows = Warehouse(home, "clicks").sql("SELECT window_end, rank FROM hot_items WHERE NOT closed").to_pylist()
    assert len({tuple(row.values()) for row in open_windows}) == len(open_windows) > 0


def test_a_death_in_the_middle_of_upkeep_changes_no_number(
    spark: SparkSession, home: Path, uninterrupted: Uninterrupted, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = uninterrupted(1, FILES)
    land_story(home, 1, FILES)
    monkeypatch.setattr(live_batches, "EVERY_BATCHES", 3)
    monkeypatch.setattr(upkeep, "FILES_A_TIER", 3)
    for table in TABLES:
        with pytest.raises(TidemarkError, match="planted fault"):
            drain(spark, home, spec_of_story(), reached=Trap(f"after upkeep of {table}", 1, fail))
        cut = Warehouse(home, "clicks").cut()
        wanted = _summed(numbers_at(reference, cut_of(reference, cut.batch)), reference, cut.batch)
        assert differences(_summed(numbers_at(home, cut), home, cut.batch), wanted) == {}, table
    drain(spark, home, spec_of_story())
    assert len(rows(home, "item_tallies")) < len(rows(reference, "item_tallies")), "upkeep has folded"
    assert differences(_summed(numbers_at(home), home), _summed(numbers_at(reference), reference)) == {}
    assert open_books(home) == []


def _summed(numbers: dict[str, list[str]], home: Path, batch: int | None = None) -> dict[str, list[str]]:
    """Tallies as readers merge them; sets of visitors show in `traffic`, which the next start computes from them."""
    cut = None if batch is None else cut_of(home, batch)
    warehouse = Warehouse(home, "clicks")
    traffic = "SELECT pane_start, sum(page_views) FROM traffic_tallies GROUP BY ALL ORDER BY ALL"
    items = "SELECT pane_start, item_id, sum(page_views) FROM item_tallies GROUP BY ALL ORDER BY ALL"
    return numbers | {
        "traffic_tallies": [repr(row) for row in warehouse.sql(traffic, cut).to_pylist()],
        "item_tallies": [repr(row) for row in warehouse.sql(items, cut).to_pylist()],
    }


def kill_through(points: tuple[str, ...], seed: int, home: Path, reference: Path) -> None:
    """One home, one driver after the other: each is killed at its point, the next goes on, the last comes through."""
    land_story(home, seed, FILES)
    for point, nth in itinerary(points, seed):
        code, words = end_of(start_driver(home, "SIGKILL", point, nth))
        assert code == -9, f"{point}, {nth}: the driver was not killed but said {words}"
        if (home / "warehouse" / "clicks" / "current").exists():
            assert_readers_see_whole_batches(home, reference, f"{point}, {nth}")
    code, words = end_of(start_driver(home))
    assert code == 0, words
    assert_as_if_nothing_had_happened(home, reference)


def test_kill_9_at_the_most_telling_points_leaves_no_trace(home: Path, uninterrupted: Uninterrupted) -> None:
    kill_through(MOST_TELLING, 1, home, uninterrupted(1, FILES))


@pytest.mark.full
@pytest.mark.parametrize("seed", range(1, 11))
def test_kill_9_at_every_point_leaves_no_trace(home: Path, uninterrupted: Uninterrupted, seed: int) -> None:
    kill_through((*IN_A_BATCH, *BETWEEN_LOGS), seed, home, uninterrupted(seed, FILES))
