"""Random clicks in random order, cut into random batches, give what the oracle gives for that cutting.

The log goes through Spark in a few examples, and in many more straight into the batches as Spark would hand it over,
with drivers that end or die between and within batches.
"""

import itertools
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from spark_jobs.contracts.events import Fault, Reason
from spark_jobs.contracts.layout import Layout
from spark_jobs.contracts.tables import LEDGER
from spark_jobs.contracts.windows import SECOND, Sliding
from spark_jobs.jobs.live_batches import LiveBatches
from spark_jobs.settings import JobSpec
from spark_jobs.sinks.epochs import Epoch
from spark_jobs.transforms.classify_arrival import SeenIds
from spark_jobs.transforms.digest import Recipe
from spark_jobs.transforms.distinct import Exact
from spark_jobs.transforms.hot_items import HotItems
from spark_jobs.transforms.measures import Count, Distinct
from tests.harness import CLICKS_WITH_IDS, ask, drain, hot_items_of, land_lines, line_of, make_spec, rows, traffic_of
from tests.oracle import CLASSES, Click, Rules, expect, hot_items, local_day

pytestmark = pytest.mark.full  # minutes; test_random_cuts.py asks the same of three seeds every day

QUIET = settings(
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
FEW = settings(QUIET, max_examples=5, phases=[Phase.generate])
SOME = settings(QUIET, max_examples=12)
MANY = settings(QUIET, max_examples=150)

MOMENTS = [  # zone, its standard time in seconds ahead of UTC, an instant around which clicks happen
    ("UTC", 0, "2024-02-28T23:50"),
    ("Asia/Shanghai", 28_800, "2017-11-25T15:50"),  # midnight is near
    ("Asia/Kolkata", 19_800, "2024-05-01T18:20"),
    ("America/New_York", -18_000, "2024-03-10T06:40"),  # the clock goes forward
    ("America/New_York", -18_000, "2024-11-03T05:30"),  # and back
]
SLIDES = [(3600, 300), (420, 180), (600, 600), (1500, 420), (7200, 3600)]
MALFORMED = [
    "",
    "   ",
    "garbage",
    "1,2,1,pv",
    "1,2,1,pv,1700000000,id,more",
    "1,2,1,pv,soon,id",
    "1,2,1,pv,,id",
    "1,2,1,pv,99999999999999999999,id",
    "1,2,1,pv,9000000000000000000,id",
    '1,"2,1,pv,1700000000,id',
]


@dataclass(frozen=True)
class Log:
    """A log as it was cut, and the rules it is read by."""

    batches: list[list[Click]]
    rules: Rules

    @property
    def spec(self) -> JobSpec:
        rules = self.rules
        return make_spec(
            CLICKS_WITH_IDS,
            time={
                "zone": rules.zone,
                "watermark_delay": f"{rules.delay} seconds",
                "allowed_lateness": f"{rules.lateness} seconds",
                "deduplicate_within": f"{rules.remember} seconds",
            },
            metrics={
                "traffic": {"measures": {"unique_visitors": VISITORS}},
                "hot_items": {
                    "length": f"{rules.length} seconds",
                    "slide": f"{rules.slide} seconds",
                    "top": rules.top,
                },
            },
        )


VISITORS = {"distinct": "visitor_id", "where": "action = 'view'", "live": "exact"}


def seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


@st.composite
def clicks(draw: st.DrawFn, now: int, watermark: int | None, lateness: int) -> Click:
    """A click near `now`, or one that is late, too late, from the future, against a rule or no click at all."""
    fate = draw(st.sampled_from(["sound"] * 5 + ["on the edge", "late", "too late", "future", "rule", "malformed"]))
    if fate == "malformed":
        return Click(item=draw(st.sampled_from(MALFORMED)), fault="malformed")
    at = now - draw(st.integers(0, 90))
    if watermark is not None:
        if fate == "on the edge":
            at = watermark - draw(st.sampled_from([0, 1, lateness, lateness + 1]))
        elif fate == "late":
            at = watermark - draw(st.integers(0, lateness))
        elif fate == "too late":
            at = watermark - lateness - draw(st.integers(1, 90_000))
    action = draw(st.sampled_from(["view"] * 4 + ["buy"]))
    fault = None
    if fate == "future":
        at = draw(st.sampled_from([3_000_000_000, 4_070_908_800]))
    if fate == "rule":
        fault = "rule"
        action, at = draw(st.sampled_from([("stare", at), ("view", 5), ("view", -86_400)]))
    return Click(
        at,
        draw(st.sampled_from([None, "1", "2", "3", "three", "003"])),
        draw(st.sampled_from([None, "9", "10", "11", "-3", "a", "B", "09"])),
        action,
        draw(st.none() | st.integers(0, 25).map(lambda number: f"id-{number}")),
        fault,
    )


@st.composite
def logs(draw: st.DrawFn, least_batches: int = 2, least_rows: int = 0) -> Log:
    zone, standard, start = draw(st.sampled_from(MOMENTS))
    length, slide = draw(st.sampled_from(SLIDES))
    rules = Rules(
        delay=draw(st.sampled_from([0, 10, 60])),
        lateness=draw(st.sampled_from([0, 300, 1_800])),
        remember=draw(st.sampled_from([0, 120, 1_200])),
        zone=zone,
        standard=standard,
        length=length,
        slide=slide,
        top=draw(st.sampled_from([1, 3, 10])),
    )
    now, batches = seconds(start), []
    watermark: int | None = None
    for _ in range(draw(st.integers(least_batches, 6))):
        batch = []
        for _ in range(draw(st.integers(least_rows, 14))):
            now += draw(st.integers(0, 240))
            batch.append(draw(clicks(now, watermark, rules.lateness)))
        batches.append(batch)
        watermark = expect(batches, rules).watermarks[-1]
        now += draw(st.sampled_from([0, 600, 4_000]))
    return Log(batches, rules)


def assert_tables_equal_the_oracle(home: Path, log: Log) -> None:
    wanted = expect(log.batches, log.rules)
    books = sorted((row for row in rows(home, "batches") if not row["drained"]), key=lambda row: row["id"])
    numbers = [row["id"] for row in books]
    assert numbers == list(range(len(log.batches)))
    assert [{name: row[name] for name in LEDGER} for row in books] == wanted.ledgers
    totals = [
        dict(zip(LEDGER, total, strict=True)) for total in _running([[w[n] for n in LEDGER] for w in wanted.ledgers])
    ]
    assert [{name: row[f"total_{name}"] for name in LEDGER} for row in books] == totals
    assert [_second(row["watermark_after"]) for row in books] == wanted.watermarks
    assert [_second(row["watermark_before"]) for row in books] == [None, *wanted.watermarks[:-1]]
    stored = Counter(
        (
            _second(row["event_at"]),
            row["visitor_id"],
            row["item_id"],
            row["action"],
            row["event_id"],
            row["arrival"],
            row["day"],
            row["batch"],
        )
        for row in rows(home, "events")
    )
    assert stored == Counter(
        (c.at, c.visitor, c.item, c.action, c.event_id, arrival, local_day(c.at, log.rules.zone), batch)
        for (c, arrival), batch in zip(wanted.stored, wanted.batch_of, strict=True)
    )
    refused = Counter((row["batch"], row["reason"]) for row in rows(home, "quarantine"))
    assert refused == Counter(wanted.refused)
    assert traffic_of(home) == wanted.traffic
    assert hot_items_of(home) == wanted.hot
    ranks = ask(home, "SELECT array_agg(rank ORDER BY rank) FROM hot_items GROUP BY window_end, revision")
    assert all(given_ranks == list(range(1, len(given_ranks) + 1)) for (given_ranks,) in ranks)
    assert len(ranks) == len(wanted.hot), "one revision a window"


def _running(ledgers: list[list[int]]) -> list[list[int]]:
    return list(itertools.accumulate(ledgers, lambda total, new: [a + b for a, b in zip(total, new, strict=True)]))


def _second(at: datetime | None) -> int | None:
    if at is None:
        return None
    assert at.microsecond == 0
    return int(at.timestamp())


@pytest.mark.spark
@FEW
@given(logs(least_batches=4, least_rows=8), st.integers(0, 5))
def test_a_log_through_spark_gives_what_the_oracle_gives(spark: SparkSession, log: Log, first_run: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        files = [
            [str(c.item) if c.fault == "malformed" else line_of(c, with_id=True) for c in batch]
            for batch in log.batches
        ]
        for first, part in ((0, files[:first_run]), (first_run, files[first_run:])):
            if part or first == 0:
                land_lines(home, part, first=first)
                drain(spark, home, log.spec)
        assert_tables_equal_the_oracle(home, log)


class Died(Exception):
    """The driver's end."""


FAULTS = (Fault(Reason.MALFORMED, "no click"), Fault(Reason.RULE, "against a rule"))
POINTS = [
    None,
    "before batch record",
    "after batch record",
    *(
        f"{when} {table}"
        for table in ("events", "traffic_live", "hot_items_live", "batches")
        for when in ("before", "after")
    ),
]


def as_delivered(batch: list[Click]) -> pa.Table:
    """The rows of one file as Spark hands them over, parsed."""
    count = len(batch)
    numbers = {"malformed": 0, "rule": 1}
    texts = {
        "visitor_id": [c.visitor for c in batch],
        "item_id": [c.item for c in batch],
        "category_id": [None] * count,
        "action": [c.action for c in batch],
        "event_id": [c.event_id for c in batch],
        "raw": ["the line"] * count,
        "place": ["0 0 file:/landing/clicks/part"][:count] + [None] * max(count - 1, 0),
    }
    return pa.table(
        {
            "event_at": pa.array([c.at * SECOND for c in batch], pa.int64()).cast(pa.timestamp("us", "UTC")),
            "properties": pa.array([None] * count, pa.map_(pa.string(), pa.string())),
            "fault": pa.array([numbers.get(str(c.fault)) for c in batch], pa.int16()),
            "row": pa.array(range(count), pa.int64()),
            "__input_0": pa.array([c.action == "view" for c in batch], pa.bool_()),
        }
        | {name: pa.array(values, pa.string()) for name, values in texts.items()}
    )


def recipe_of(spec: JobSpec) -> Recipe:
    measures = (
        Count("page_views", "__input_0", None, None),
        Distinct("unique_visitors", "__input_0", "visitor_id", pa.string(), Exact),
    )
    return Recipe(spec, FAULTS, {}, measures)


@SOME
@given(logs(least_batches=3, least_rows=3), st.data())
def test_drivers_that_end_or_die_anywhere_leave_what_the_oracle_gives(log: Log, data: st.DataObject) -> None:
    let_drivers_die(log, data)


@pytest.mark.full
@settings(QUIET, max_examples=300)
@given(logs(), st.data())
def test_many_drivers_that_end_or_die_anywhere_leave_what_the_oracle_gives(log: Log, data: st.DataObject) -> None:
    let_drivers_die(log, data)


def let_drivers_die(log: Log, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        epochs = itertools.count(1)
        trap: list[str] = []

        def reached(point: str) -> None:
            if point in trap:
                trap.clear()
                raise Died(point)

        def start() -> LiveBatches:
            return LiveBatches(Layout(home, "clicks"), recipe_of(log.spec), Epoch(next(epochs), "1"), reached)

        driver = start()
        for number, batch in enumerate(log.batches):
            if data.draw(st.booleans(), label=f"a new driver for batch {number}"):
                driver.close()
                driver = start()
            point = data.draw(st.sampled_from(POINTS), label=f"death in batch {number}")
            trap[:] = [point] if point else []
            try:
                driver.write(as_delivered(batch), number, time.time_ns() // 1_000)
            except Died:
                driver.close()
                driver = start()
                driver.write(as_delivered(batch), number, time.time_ns() // 1_000)
        trap.clear()
        driver.finish_drain()
        driver.close()
        assert_tables_equal_the_oracle(home, log)


@MANY
@given(
    st.lists(
        st.tuples(
            st.lists(st.tuples(st.integers(0, 20), st.sampled_from("abc"), st.booleans()), max_size=10),
            st.integers(-2, 6),
        ),
        max_size=8,
    ),
    st.integers(0, 6),
)
def test_an_id_is_known_while_its_time_is_within_reach_of_the_watermark(
    batches: list[tuple[list[tuple[int, str, bool]], int]], within: int
) -> None:
    seen, known = SeenIds(within), dict[str, int]()
    watermark: int | None = None
    for number, (batch, forward) in enumerate(batches):
        times = pa.array([at for at, _, _ in batch], pa.int64()).to_numpy()
        candidates = pa.array([sound for _, _, sound in batch], pa.bool_()).to_numpy(zero_copy_only=False)
        found = seen.repeats([key for _, key, _ in batch], times, candidates, watermark).tolist()
        wanted = []
        for at, key, sound in batch:
            repeated = sound and key in known and (watermark is None or known[key] >= watermark - within)
            wanted.append(repeated)
            if sound and not repeated:
                known[key] = at
        assert found == wanted, number
        watermark = forward if watermark is None else max(watermark, watermark + forward)


@MANY
@given(
    st.sampled_from([(60, 60), (420, 180), (100, 30), (50, 7)]),
    st.integers(0, 179),
    st.lists(
        st.lists(st.tuples(st.integers(0, 900), st.sampled_from(["9", "10", "a", "-1"])), min_size=1, max_size=8),
        min_size=1,
        max_size=6,
    ),
    st.integers(1, 3),
)
def test_windows_summed_from_panes_equal_windows_counted_from_clicks(
    window: tuple[int, int], standard: int, batches: list[list[tuple[int, str]]], top: int
) -> None:
    """Every window is written when the watermark passes it and again when it changes, and only those."""
    length, slide = window
    rules = Rules(length=length, slide=slide, top=top, standard=standard)
    hot = HotItems(Sliding(length * SECOND, slide * SECOND, standard % slide * SECOND), top)
    written: dict[int, tuple[int, list[tuple[str, int]]]] = {}
    so_far: list[Click] = []
    watermark: int | None = None
    for number, batch in enumerate(batches):
        new = [Click(at=at, item=item) for at, item in batch]
        so_far += new
        tallies = pa.table(
            {
                "pane_start": pa.array([hot.sliding.pane.start_of(c.at * SECOND) for c in new]).cast(
                    pa.timestamp("us", "UTC")
                ),
                "item_id": pa.array([c.item for c in new]),
                "page_views": pa.array([1] * len(new)),
            }
        )
        before, watermark = watermark, max([*([] if watermark is None else [watermark]), max(c.at for c in new) - 100])
        touched = hot.add(tallies)
        due = hot.due(touched, None if before is None else before * SECOND, watermark * SECOND)
        revised = hot.revise(due, True, number).to_pylist()
        closed = {end: items for end, (is_closed, items) in hot_items(so_far, watermark, rules).items() if is_closed}
        for end in {int(row["window_end"].timestamp()) for row in revised}:
            mine = [row for row in revised if int(row["window_end"].timestamp()) == end]
            assert {row["revision"] for row in mine} == {written.get(end, (0, []))[0] + 1}
            written[end] = (mine[0]["revision"], [(row["item_id"], row["page_views"]) for row in mine])
        assert {end: items for end, (_, items) in written.items()} == closed
        newly = {end for end in closed if before is None or end > before}
        changed = {end for end in closed for c in new if end - length <= c.at < end}
        assert {end // SECOND for end in due} == newly | changed, "nothing else gets a revision"


def test_the_random_logs_hold_every_class_of_row() -> None:
    """Otherwise the tests above would prove less than they say."""
    found: Counter[str] = Counter()

    @settings(QUIET, max_examples=30)
    @given(logs())
    def look(log: Log) -> None:
        wanted = expect(log.batches, log.rules)
        for ledger in wanted.ledgers:
            found.update({name: count for name, count in ledger.items() if count})
        found.update(reason for _, reason in wanted.refused)
        found.update("closed" if closed else "open" for closed, _ in wanted.hot.values())

    look()
    wanted = {*CLASSES, "malformed", "rule", "future", "closed", "open"}
    assert {name for name in wanted if found[name] >= 20} == wanted, found
