"""Readers see whole batches only, can only read, and are told what is wrong with a question."""

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from include.errors import UsageError
from include.serving.warehouse import Warehouse
from spark_jobs.contracts.layout import Layout
from spark_jobs.contracts.tables import LEDGER, STREAM_TABLES
from spark_jobs.sinks.live_tables import NOTHING, Cut, LiveTables
from spark_jobs.transforms.distinct import Exact
from spark_jobs.transforms.measures import Count, Distinct

START = datetime(2024, 5, 1, tzinfo=UTC)
WITHOUT_BATCHES = [name for name in STREAM_TABLES if name != "batches"]


class Writer:
    """Commits batches as a stream does, or stops halfway."""

    def __init__(self, home: Path, epoch: int = 1) -> None:
        measures = [
            Count("page_views", None, None, None),
            Distinct("unique_visitors", None, "visitor_id", pa.string(), Exact),
        ]
        self.tables = LiveTables(Layout(home, "clicks"), ["province"], measures)
        self.tables.fence(epoch)
        self.epoch = epoch

    def append(self, name: str, rows: list[dict[str, Any]], batch: int) -> None:
        table = self.tables[name]
        table.append_once(pa.Table.from_pylist(rows, schema=table.schema), self.epoch, batch, lambda point: None)

    def batch(self, batch: int, only: list[str] = WITHOUT_BATCHES, whole: bool = True) -> Cut:
        """One event, one view of item `i` and one revision of everything; `whole` adds the row in `batches`."""
        minute = START + timedelta(minutes=1)
        rows: dict[str, list[dict[str, Any]]] = {
            "events": [{"event_at": START, "visitor_id": str(batch), "day": START.date(), "batch": batch}],
            "quarantine": [{"raw": f"line {batch}", "batch": batch}],
            "traffic_tallies": [{"pane_start": START, "page_views": 1, "batch": batch}],
            "item_tallies": [{"pane_start": START, "item_id": "i", "page_views": 1, "batch": batch}],
            "traffic_live": [
                {
                    "grain": "1 minute",
                    "window_start": START,
                    "window_end": minute,
                    "province": province,
                    "page_views": batch + 1,
                    "revision": batch + 1,
                    "batch": batch,
                }
                for province in (None, "beijing")
            ],
            "hot_items_live": [
                {
                    "window_start": START,
                    "window_end": minute,
                    "revision": batch + 1,
                    "closed": True,
                    "rank": rank,
                    "item_id": f"{rank}",
                    "page_views": 9 - rank,
                    "batch": batch,
                }
                for rank in range(1, 3 if batch else 5)  # a later revision may have fewer rows
            ],
        }
        for name in only:
            self.append(name, rows[name], batch)
        totals = dict.fromkeys(LEDGER, 0) | {"read": batch + 1, "on_time": batch + 1}
        cut = Cut(self.epoch, batch, False, None, totals, self.tables.versions())
        if whole:
            self.commit(cut)
        return cut

    def commit(self, cut: Cut) -> None:
        row = {"epoch": cut.epoch, "id": cut.batch, "drained": cut.drained, "read": 1, "on_time": 1}
        totals = {f"total_{name}": total for name, total in cut.totals.items()}
        self.append("batches", [row | totals | {"versions": json.dumps(cut.versions)}], cut.batch)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    made = Writer(tmp_path)
    yield made
    made.tables.close()


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path, "clicks")


@pytest.fixture(scope="module")
def answering(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A warehouse with one batch, which questions do not change."""
    home = tmp_path_factory.mktemp("answering")
    made = Writer(home)
    made.batch(0)
    made.tables.close()
    return Warehouse(home, "clicks")


def counts(warehouse: Warehouse) -> dict[str, int]:
    return {name: warehouse.sql(f"SELECT * FROM {name}").num_rows for name in STREAM_TABLES}


@pytest.mark.parametrize("written", range(len(WITHOUT_BATCHES) + 1))
def test_a_batch_whose_row_in_batches_is_missing_is_not_visible(
    writer: Writer, warehouse: Warehouse, written: int
) -> None:
    writer.batch(0)
    before = counts(warehouse)
    chosen = random.Random(written).sample(WITHOUT_BATCHES, written)
    cut = writer.batch(1, only=chosen, whole=False)
    assert counts(warehouse) == before
    assert warehouse.sql("SELECT DISTINCT page_views FROM traffic").to_pylist() == [{"page_views": 1}]
    if written == len(WITHOUT_BATCHES):
        writer.commit(cut)
        assert counts(warehouse)["events"] == 2


def test_the_first_batch_is_not_visible_before_its_row_either(writer: Writer, warehouse: Warehouse) -> None:
    writer.batch(0, whole=False)
    assert warehouse.cut() == NOTHING
    assert counts(warehouse) == dict.fromkeys(STREAM_TABLES, 0)
    assert warehouse.sql("SELECT * FROM traffic").num_rows == 0
    assert warehouse.sql("SELECT * FROM hot_items").num_rows == 0


def test_views_show_the_highest_revision_of_each_window_and_dimension(writer: Writer, warehouse: Warehouse) -> None:
    for batch in range(3):
        writer.batch(batch)
    found = warehouse.sql("SELECT province, page_views, revision, status FROM traffic ORDER BY province").to_pylist()
    assert found == [
        {"province": "beijing", "page_views": 3, "revision": 3, "status": "live"},
        {"province": None, "page_views": 3, "revision": 3, "status": "live"},
    ]
    hot = warehouse.sql("SELECT rank, revision FROM hot_items ORDER BY rank").to_pylist()
    assert hot == [{"rank": 1, "revision": 3}, {"rank": 2, "revision": 3}], "all rows of the newest revision, no older"


def test_an_older_cut_can_be_read_beside_the_newest(writer: Writer, warehouse: Warehouse) -> None:
    old = writer.batch(0)
    writer.batch(1)
    assert warehouse.sql("SELECT DISTINCT page_views FROM traffic", old).to_pylist() == [{"page_views": 1}]
    assert warehouse.sql("SELECT DISTINCT page_views FROM traffic").to_pylist() == [{"page_views": 2}]


def test_the_newest_cut_is_the_last_word_on_its_batch(writer: Writer, warehouse: Warehouse) -> None:
    cut = writer.batch(0)
    table = writer.tables["batches"]
    drained = {"epoch": 1, "id": 0, "drained": True, "versions": "{}"} | {f"total_{name}": 7 for name in LEDGER}
    table.append_between(pa.Table.from_pylist([drained], schema=table.schema))
    assert warehouse.cut() == replace(cut, drained=True, versions={}, totals=dict.fromkeys(LEDGER, 7))
    writer.batch(1)
    assert (warehouse.cut().batch, warehouse.cut().drained) == (1, False)


def test_instants_are_utc(writer: Writer, warehouse: Warehouse) -> None:
    writer.batch(0)
    (row,) = warehouse.sql("SELECT event_at, event_at::VARCHAR AS text FROM events").to_pylist()
    assert row == {"event_at": START, "text": "2024-05-01 00:00:00+00"}


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            "SELECT * FROM trafic",
            "there is no table trafic; did you mean traffic\\? tables and views: traffic, hot_items",
        ),
        ("SELECT * FROM nothing_like_it", "there is no table nothing_like_it; tables and views: traffic"),
        ("SELECT page_view FROM traffic", 'page_view.*not found.*"page_views"'),
        ("SELEC 1", "syntax error"),
        ("", "exactly one SELECT"),
        ("SELECT 1; SELECT 2", "exactly one SELECT"),
        ("DELETE FROM events", "queries only read"),
        ("INSERT INTO events SELECT * FROM events", "queries only read"),
        ("UPDATE traffic SET page_views = 0", "queries only read"),
        ("CREATE TABLE mine AS SELECT * FROM events", "queries only read"),
        ("DROP TABLE events", "queries only read"),
        ("COPY (SELECT 1) TO 'out.csv'", "queries only read"),
        ("ATTACH 'other.db'", "queries only read"),
        ("SET enable_external_access = true", "queries only read"),
        ("INSTALL httpfs", "queries only read"),
        ("EXPLAIN ANALYZE COPY (SELECT 1) TO 'out.csv'", "disabled by configuration"),
        ("SELECT * FROM read_csv('/etc/hosts')", "disabled by configuration"),
        ("SELECT * FROM read_parquet('{home}/**/*.parquet')", "disabled by configuration"),
        ("SELECT * FROM '/etc/hosts'", "there is no table /etc/hosts"),
        ("SELECT * FROM glob('/*')", "disabled by configuration"),
        ("SELECT * FROM connection", "there is no table connection"),
    ],
)
def test_a_wrong_question_is_answered_by_one_line(answering: Warehouse, sql: str, message: str) -> None:
    before = sorted(answering.home.rglob("*"))
    with pytest.raises(UsageError, match=message) as told:
        answering.sql(sql.replace("{home}", str(answering.home)))
    assert "\n" not in str(told.value)
    assert sorted(answering.home.rglob("*")) == before, "nothing was written"


@pytest.mark.parametrize(
    "sql",
    [
        "FROM traffic",
        "WITH all_of_it AS (SELECT * FROM Events) SELECT count(*) FROM all_of_it",
        "DESCRIBE traffic",
        "EXPLAIN SELECT * FROM traffic",
        'SELECT * FROM "hot_items" JOIN traffic USING (window_end)',
        "SELECT * FROM traffic_live AS traffic",
        "VALUES (1)",
        "SHOW TABLES",
    ],
)
def test_whatever_reads_is_allowed(answering: Warehouse, sql: str) -> None:
    assert answering.sql(sql).num_rows >= 1


def test_the_list_of_tables_is_whole(answering: Warehouse) -> None:
    listed = {row["name"] for row in answering.sql("SHOW TABLES").to_pylist()}
    assert listed == {"traffic", "hot_items", *STREAM_TABLES}


def test_a_job_without_tables_is_told_how_to_make_them(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"job clicks has no tables under .*; `tidemark run clicks` makes them"):
        Warehouse(tmp_path, "clicks").sql("SELECT 1")
