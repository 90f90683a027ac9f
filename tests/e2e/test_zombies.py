"""A driver that slept while a newer one took its place writes nothing when it wakes up. The lock is bypassed here."""

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from include.serving.warehouse import Warehouse
from spark_jobs.contracts.layout import Layout
from spark_jobs.contracts.tables import BATCHES, EVENTS, HOT_ITEMS_LIVE
from spark_jobs.errors import StaleEpoch
from spark_jobs.jobs import live_batches
from spark_jobs.jobs.live_batches import LiveBatches, ignore
from spark_jobs.jobs.read_ahead import collect
from spark_jobs.jobs.stream_live_metrics import EMPTY
from spark_jobs.settings import FilesSource
from spark_jobs.sinks import upkeep
from spark_jobs.sinks.append_once import LiveTable, encode
from spark_jobs.sinks.epochs import take_epoch
from spark_jobs.sinks.json_files import read_json, write_json
from spark_jobs.sources.files import open_files
from spark_jobs.transforms.declare_measures import declare_measures
from spark_jobs.transforms.digest import Recipe
from spark_jobs.transforms.parse_events import build_parser, leave_spark
from tests.e2e.processes import end_of, start_driver
from tests.e2e.story import (
    JOB,
    TABLES,
    Trap,
    checkpoint_of,
    differences,
    land_story,
    numbers_at,
    open_books,
    spec_of_story,
)
from tests.harness import drain, rows

pytestmark = pytest.mark.spark
SEED = 3
FILES = 8
FROZEN_IN = 4
"""The batch in which the old driver falls asleep."""

Act = Callable[[], None]


class Stream:
    """Feeds drivers batch by batch without a query of Spark, of which a session allows only one a checkpoint."""

    def __init__(self, home: Path, recipe: Recipe, batches: list[pa.Table]) -> None:
        self.layout = Layout(home, JOB)
        self._recipe, self._batches = recipe, batches

    def driver(self, reached: Callable[[str], None] = ignore) -> LiveBatches:
        """A new driver: it takes the next epoch and fences the tables."""
        return LiveBatches(self.layout, self._recipe, take_epoch(self.layout), reached)

    def feed(self, driver: LiveBatches, first: int, last: int) -> None:
        for number in range(first, last + 1):
            driver.write(self._batches[number], number, time.time_ns() // 1_000)

    def drain(self, driver: LiveBatches) -> None:
        self.feed(driver, max(driver.cut.batch, 0), FILES - 1)
        driver.finish_drain()


class Sleeper:
    """Runs a piece of a driver's work in a thread that falls asleep where it is told, until it is woken."""

    def __init__(self) -> None:
        self._asleep, self._awake = threading.Event(), threading.Event()
        self._fault: BaseException | None = None

    def sleep(self) -> None:
        self._asleep.set()
        assert self._awake.wait(120)

    def begin(self, work: Act) -> None:
        def until_the_end() -> None:
            try:
                work()
            except BaseException as fault:
                self._fault = fault

        self._thread = threading.Thread(target=until_the_end)
        self._thread.start()
        assert self._asleep.wait(120), f"never came to the point: {self._fault}"

    def wake(self) -> BaseException | None:
        """What the driver ends with."""
        self._awake.set()
        self._thread.join(120)
        return self._fault


@pytest.fixture(scope="module")
def alone(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a run of the story by a single driver."""
    home = tmp_path_factory.mktemp("alone")
    land_story(home, SEED, FILES)
    drain(spark, home, spec_of_story())
    return home


@pytest.fixture(scope="module")
def wanted(alone: Path) -> dict[str, list[Any]]:
    return numbers_at(alone)


@pytest.fixture(scope="module")
def collected(spark: SparkSession, alone: Path) -> tuple[Recipe, list[pa.Table]]:
    """The rows of every batch as the stream collects them, one file a batch."""
    spec = spec_of_story()
    source = cast(FilesSource, spec.source[0])
    empty = spark.createDataFrame([], EMPTY)
    parser = build_parser(spec, empty)
    declared = declare_measures(spec.metrics.traffic, parser.parse([empty]))
    reader = cast(SparkSession, SimpleNamespace(readStream=spark.read))
    raw = open_files(reader, source, alone / source.path)
    parts = (raw.where(F.col("__source").endswith(f"part-{number:05}.csv")) for number in range(FILES))
    batches = [collect(leave_spark(declared.select(parser.parse([part])), spec)) for part in parts]
    return Recipe(spec, parser.faults, declared.dimensions, declared.measures), batches


@pytest.fixture
def stream(home: Path, collected: tuple[Recipe, list[pa.Table]]) -> Stream:
    return Stream(home, *collected)


@pytest.fixture
def sleeper() -> Iterator[Sleeper]:
    sleeper = Sleeper()
    yield sleeper
    sleeper.wake()


def everything(home: Path) -> dict[str, tuple[int, list[str]]]:
    """Version and rows of every table as it is."""
    folder = Warehouse(home, JOB).folder
    return {name: (DeltaTable(folder / name).version(), sorted(map(repr, rows(home, name)))) for name in TABLES}


def sleep_at_commit(table: LiveTable, sleeper: Sleeper) -> None:
    """Fall asleep after the look at the table, with the new files written, right before the commit."""
    commit = table._commit

    def slow(*arguments: Any) -> None:
        sleeper.sleep()
        commit(*arguments)

    table._commit = slow  # type: ignore[method-assign]


def assert_wakes_in_vain(sleeper: Sleeper, home: Path) -> None:
    before = everything(home)
    fault = sleeper.wake()
    assert isinstance(fault, StaleEpoch), repr(fault)
    assert "took over" in str(fault)
    assert everything(home) == before


def assert_told_once(home: Path, wanted: dict[str, list[Any]]) -> None:
    assert differences(numbers_at(home), wanted) == {}
    assert open_books(home) == []


@pytest.mark.parametrize(
    "point", ["before batch record", "after batch record", *(f"before {table}" for table in TABLES), "after events"]
)
def test_a_driver_that_slept_at_a_point_writes_nothing(
    stream: Stream, sleeper: Sleeper, home: Path, wanted: dict[str, list[Any]], point: str
) -> None:
    old = stream.driver(Trap(point, FROZEN_IN + 1, sleeper.sleep))
    sleeper.begin(lambda: stream.feed(old, 0, FILES - 1))
    stream.drain(stream.driver())
    assert_wakes_in_vain(sleeper, home)
    assert_told_once(home, wanted)


@pytest.mark.parametrize("table", TABLES)
def test_a_driver_that_slept_between_look_and_commit_writes_nothing(
    stream: Stream, sleeper: Sleeper, home: Path, wanted: dict[str, list[Any]], table: str
) -> None:
    old = stream.driver()
    stream.feed(old, 0, FROZEN_IN - 1)
    sleep_at_commit(old._tables[table], sleeper)
    sleeper.begin(lambda: stream.feed(old, FROZEN_IN, FILES - 1))
    stream.drain(stream.driver())
    assert_wakes_in_vain(sleeper, home)
    assert_told_once(home, wanted)


@pytest.mark.parametrize("table", [EVENTS, BATCHES])
@pytest.mark.parametrize("batches_before", [0, FROZEN_IN])
def test_a_fence_alone_shuts_the_old_driver_out(
    stream: Stream, sleeper: Sleeper, home: Path, wanted: dict[str, list[Any]], table: str, batches_before: int
) -> None:
    """The newer driver has only started; with no batch before, the fence is all that the tables hold."""
    old = stream.driver()
    stream.feed(old, 0, batches_before - 1)
    sleep_at_commit(old._tables[table], sleeper)
    sleeper.begin(lambda: stream.feed(old, batches_before, FILES - 1))
    new = stream.driver()
    assert_wakes_in_vain(sleeper, home)
    stream.drain(new)
    assert_told_once(home, wanted)


def test_a_driver_that_slept_between_two_batches_writes_nothing(
    stream: Stream, home: Path, wanted: dict[str, list[Any]]
) -> None:
    old = stream.driver()
    stream.feed(old, 0, FROZEN_IN)
    new = stream.driver()
    before = everything(home)
    with pytest.raises(StaleEpoch):
        old.refuse_if_stale()
    with pytest.raises(StaleEpoch):
        stream.feed(old, FROZEN_IN + 1, FROZEN_IN + 1)
    with pytest.raises(StaleEpoch):
        old.finish_drain()
    assert everything(home) == before
    stream.drain(new)
    assert_told_once(home, wanted)


@pytest.mark.parametrize("table", [HOT_ITEMS_LIVE, BATCHES])
def test_a_driver_that_slept_while_it_finished_its_drain_writes_nothing(
    stream: Stream, sleeper: Sleeper, home: Path, wanted: dict[str, list[Any]], table: str
) -> None:
    old = stream.driver()
    stream.feed(old, 0, FROZEN_IN)
    sleep_at_commit(old._tables[table], sleeper)
    sleeper.begin(old.finish_drain)
    new = stream.driver()
    assert_wakes_in_vain(sleeper, home)
    stream.drain(new)
    assert_told_once(home, wanted)


def test_a_driver_that_slept_in_upkeep_folds_nothing(
    stream: Stream, sleeper: Sleeper, home: Path, monkeypatch: pytest.MonkeyPatch, wanted: dict[str, list[Any]]
) -> None:
    """Its fold would join rows of a batch that the newer driver has half written with those of whole batches."""
    old = stream.driver()
    stream.feed(old, 0, FROZEN_IN - 1)
    with monkeypatch.context() as patched:
        patched.setattr(live_batches, "EVERY_BATCHES", FROZEN_IN + 1)
        patched.setattr(upkeep, "FILES_A_TIER", 2)
        patched.setattr(LiveTable, "replace_files", _asleep_first(LiveTable.replace_files, sleeper))
        sleeper.begin(lambda: stream.feed(old, FROZEN_IN, FROZEN_IN))
    new = stream.driver()
    stream.drain(new)
    assert_wakes_in_vain(sleeper, home)
    assert_told_once(home, wanted)


def _asleep_first(work: Callable[..., None], sleeper: Sleeper) -> Callable[..., None]:
    def slow(*arguments: Any) -> None:
        sleeper.sleep()
        work(*arguments)

    return slow


def test_a_driver_that_slept_before_its_own_fence_does_not_shut_out_a_newer_one(
    stream: Stream, sleeper: Sleeper, home: Path, wanted: dict[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(LiveTable, "_commit", _asleep_first(LiveTable._commit, sleeper))
        sleeper.begin(stream.driver)
    stream.drain(stream.driver())
    assert_wakes_in_vain(sleeper, home)
    assert_told_once(home, wanted)


def test_a_fence_is_set_although_the_old_driver_is_still_committing(
    stream: Stream, home: Path, wanted: dict[str, list[Any]]
) -> None:
    old = stream.driver()
    stream.feed(old, 0, FROZEN_IN - 1)
    racing = LiveTable._commit

    def commit_after_the_old_one(table: LiveTable, actions: list[Any], number: int | None) -> None:
        if not actions and table.path.name == EVENTS and old.cut.batch < FROZEN_IN:
            stream.feed(old, FROZEN_IN, FROZEN_IN)
        racing(table, actions, number)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(LiveTable, "_commit", commit_after_the_old_one)
        new = stream.driver()
    assert new.cut.batch == FROZEN_IN
    with pytest.raises(StaleEpoch):
        stream.feed(old, FROZEN_IN + 1, FROZEN_IN + 1)
    stream.drain(new)
    assert_told_once(home, wanted)


@pytest.mark.parametrize("table", [EVENTS, BATCHES])
@pytest.mark.parametrize("is_asleep_at_commit", [True, False])
def test_a_driver_that_slept_while_the_tables_were_restored_writes_nothing(
    stream: Stream, sleeper: Sleeper, home: Path, wanted: dict[str, list[Any]], table: str, is_asleep_at_commit: bool
) -> None:
    back_to = FROZEN_IN - 2
    old = stream.driver(ignore if is_asleep_at_commit else Trap(f"before {table}", FROZEN_IN + 1, sleeper.sleep))
    stream.feed(old, 0, back_to)
    cut = old.cut
    stream.feed(old, back_to + 1, FROZEN_IN - 1)
    if is_asleep_at_commit:
        sleep_at_commit(old._tables[table], sleeper)
    sleeper.begin(lambda: stream.feed(old, FROZEN_IN, FILES - 1))

    epoch = read_json(stream.layout.epoch_file)["epoch"] + 1
    write_json(stream.layout.epoch_file, {"epoch": epoch, "checkpoint": str(epoch)})
    records = checkpoint_of(home) / "batches"
    shutil.copytree(records, stream.layout.checkpoint(str(epoch)) / "batches", ignore=_newer_than(back_to))
    for name, version in (cut.versions | {BATCHES: _version_of_batches(home, back_to)}).items():
        restore(DeltaTable(Warehouse(home, JOB).folder / name), version, f"{JOB}/1/{name}", encode(epoch, back_to))

    assert Warehouse(home, JOB).cut().batch == back_to
    assert_wakes_in_vain(sleeper, home)
    stream.drain(stream.driver())
    assert_told_once(home, wanted)


def restore(table: DeltaTable, version: int, app: str, number: int) -> None:
    """Back to the version, under a transaction that shuts out older epochs; it is needed also where nothing changes."""
    fence = CommitProperties(app_transactions=[Transaction(app, number)])
    if table.version() == version:
        table.create_write_transaction([], "append", table.schema(), commit_properties=fence)
    else:
        table.restore(version, commit_properties=fence)


def _newer_than(batch: int) -> Callable[[str, list[str]], list[str]]:
    return lambda _, names: [name for name in names if int(Path(name).stem) > batch]


def _version_of_batches(home: Path, batch: int) -> int:
    """The version of `batches` that the row of this batch made."""
    table = DeltaTable(Warehouse(home, JOB).folder / BATCHES)
    for version in range(table.version() + 1):
        table.load_as_version(version)
        if batch in table.to_pyarrow_table()["id"].to_pylist():
            return version
    raise LookupError(batch)


@pytest.mark.parametrize("point", ["before batches", pytest.param("before events", marks=pytest.mark.full)])
def test_a_frozen_process_that_wakes_up_writes_nothing(
    spark: SparkSession, home: Path, wanted: dict[str, list[Any]], point: str
) -> None:
    land_story(home, SEED, FILES)
    frozen = start_driver(home, "SIGSTOP", point, FROZEN_IN + 1)
    _, status = os.waitpid(frozen.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    drain(spark, home, spec_of_story(), locked=False)
    assert_told_once(home, wanted)
    before = everything(home)
    os.kill(frozen.pid, signal.SIGCONT)
    code, words = end_of(frozen)
    assert (code, "StaleEpoch: " in words) == (1, True), words
    assert everything(home) == before
