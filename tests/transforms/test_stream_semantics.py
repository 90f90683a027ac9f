"""What the live stream does with events that are late, repeated, early, from several logs: each as a short story."""

import gzip
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from include.serving.warehouse import Warehouse
from spark_jobs.contracts.tables import STREAM_TABLES
from spark_jobs.errors import SpecError
from spark_jobs.jobs.stream_live_metrics import LiveMetricsSettings, run
from spark_jobs.sinks.json_files import read_json
from tests.harness import (
    CLICKS,
    CLICKS_WITH_IDS,
    ask,
    drain,
    exact,
    hot_items_of,
    land_lines,
    line_of,
    make_spec,
    rows,
    traffic_of,
)
from tests.oracle import Click, Rules, expect

pytestmark = pytest.mark.spark


def at(text: str) -> int:
    """Seconds of a time on 13 September 2020, UTC."""
    moment = datetime.fromisoformat(f"2020-09-13T{text}").replace(tzinfo=UTC)
    return int(moment.timestamp())


def clock(moment: datetime | None) -> str | None:
    return None if moment is None else f"{moment.astimezone(UTC):%H:%M:%S}"


def view(when: str, visitor: int, item: int) -> str:
    return line_of(Click(at(when), str(visitor), str(item)))


def row_counts(home: Path) -> dict[str, int]:
    return {name: len(rows(home, name)) for name in STREAM_TABLES}


def versions(home: Path) -> dict[str, int]:
    folder = Warehouse(home, "clicks").folder
    return {name: DeltaTable(str(folder / name)).version() for name in STREAM_TABLES}


# Late, too late, too early


@pytest.fixture(scope="module")
def lateness(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four batches: on time; one from the future; one late; one too late."""
    home = tmp_path_factory.mktemp("lateness")
    future = line_of(Click(4_000_000_000, "4", "4"))
    land_lines(
        home,
        [
            [view("12:00:30", 1, 1), view("12:11:00", 1, 5), view("12:20:00", 2, 2)],
            [future, view("12:20:05", 2, 2)],
            [view("12:12:00", 3, 1)],
            [view("12:00:31", 9, 9)],
        ],
    )
    spec = make_spec(
        time={"allowed_lateness": "10 minutes"},
        metrics={
            "traffic": {"measures": {"unique_visitors": exact("visitor_id", "action = 'view'")}},
            "hot_items": {"length": "10 minutes", "slide": "5 minutes"},
        },
    )
    drain(spark, home, spec)
    return home


def test_a_late_row_gives_its_windows_a_new_revision_and_leaves_the_others_alone(lateness: Path) -> None:
    revised = {
        (row["grain"], clock(row["window_start"])): (row["revision"], row["page_views"], row["unique_visitors"])
        for row in rows(lateness, "traffic_live")
        if row["batch"] == 2
    }
    assert revised == {
        ("1 minute", "12:12:00"): (1, 1, 1),
        ("1 hour", "12:00:00"): (3, 5, 3),
        ("1 day", "00:00:00"): (3, 5, 3),
    }
    newest = ask(lateness, "SELECT window_start, revision, page_views FROM traffic WHERE grain = '1 minute' ORDER BY 1")
    assert [(clock(start), revision, views) for start, revision, views in newest] == [
        ("12:00:00", 1, 1),
        ("12:11:00", 1, 1),
        ("12:12:00", 1, 1),
        ("12:20:00", 2, 2),
    ]


def test_a_late_row_gives_a_closed_hot_window_a_new_revision(lateness: Path) -> None:
    found = [
        (row["batch"], clock(row["window_end"]), row["revision"], row["closed"], row["rank"], row["item_id"])
        for row in rows(lateness, "hot_items_live")
        if clock(row["window_end"]) == "12:15:00"
    ]
    assert sorted(found) == [
        (0, "12:15:00", 1, True, 1, "5"),
        (2, "12:15:00", 2, True, 1, "1"),
        (2, "12:15:00", 2, True, 2, "5"),
    ], "equal views: the lower item first"


def test_a_row_that_is_too_late_is_kept_and_not_counted(lateness: Path) -> None:
    (kept,) = (row for row in rows(lateness, "events") if row["arrival"] == "too_late")
    assert (kept["visitor_id"], clock(kept["event_at"]), kept["batch"]) == ("9", "12:00:31", 3)
    assert not [row for row in rows(lateness, "traffic_live") if row["batch"] == 3]
    assert not [row for row in rows(lateness, "item_tallies") if row["item_id"] == "9"]
    assert traffic_of(lateness)["1 minute", at("12:00:00")] == (1, 1)


def test_a_row_from_the_future_is_quarantined_and_does_not_move_the_watermark(lateness: Path) -> None:
    (held,) = rows(lateness, "quarantine")
    assert (held["reason"], held["raw"], held["batch"], held["position"]) == ("future", "4,4,1,pv,4000000000", 1, 0)
    marks = ask(lateness, "SELECT id, watermark_before, watermark_after FROM batches WHERE NOT drained ORDER BY id")
    assert [(number, clock(before), clock(after)) for number, before, after in marks] == [
        (0, None, "12:19:50"),
        (1, "12:19:50", "12:19:55"),
        (2, "12:19:55", "12:19:55"),
        (3, "12:19:55", "12:19:55"),
    ]


def test_the_ledger_tells_the_class_of_every_row_and_is_in_the_progress_file(lateness: Path) -> None:
    classes = "read, on_time, late, too_late, duplicate, quarantined"
    assert ask(lateness, f"SELECT {classes} FROM batches WHERE NOT drained ORDER BY id") == [
        (3, 3, 0, 0, 0, 0),
        (2, 1, 0, 0, 0, 1),
        (1, 0, 1, 0, 0, 0),
        (1, 0, 0, 1, 0, 0),
    ]
    progress = read_json(lateness / "jobs" / "clicks" / "progress.json")
    total = {"read": 7, "on_time": 4, "late": 1, "too_late": 1, "duplicate": 0, "quarantined": 1}
    assert progress["ledger"]["total"] == total
    assert (progress["batch"], progress["watermark"]) == (3, "2020-09-13T12:19:55+00:00")


# Repeats


def click_with_id(second: int, event_id: str, item: str = "1") -> str:
    return line_of(Click(at("12:00:00") + second, "1", item, event_id=event_id), with_id=True)


def test_an_id_is_a_repeat_until_the_watermark_leaves_it_behind(spark: SparkSession, home: Path) -> None:
    spec = make_spec(CLICKS_WITH_IDS, time={"watermark_delay": "0 seconds", "deduplicate_within": "1 minute"})
    files = [
        [click_with_id(0, "a", "first"), click_with_id(5, "a", "second"), click_with_id(0, "b")],
        [click_with_id(70, "a"), click_with_id(50, "c")],  # the repeat is later than all, yet moves no watermark
        [click_with_id(60, "d")],
        [click_with_id(61, "e"), click_with_id(62, "a")],  # a's time is just within a minute of the watermark
        [click_with_id(63, "a", "again")],  # and now it is not
    ]
    land_lines(home, files)
    drain(spark, home, spec)
    found = ask(
        home, "SELECT read, duplicate, epoch(watermark_after)::BIGINT FROM batches WHERE NOT drained ORDER BY id"
    )
    assert [(read, repeats, mark - at("12:00:00")) for read, repeats, mark in found] == [
        (3, 1, 0),
        (2, 1, 50),
        (1, 0, 60),
        (2, 1, 61),
        (1, 0, 63),
    ]
    land_lines(home, [[click_with_id(64, "a", "after a new start"), click_with_id(64, "c", "too")]], first=5)
    drain(spark, home, spec)
    stored = ask(
        home, "SELECT event_id, item_id, batch FROM events WHERE event_id IN ('a', 'c') ORDER BY batch, event_id"
    )
    assert stored == [("a", "first", 0), ("c", "1", 1), ("a", "again", 4)], "ids are remembered over a new start"


def test_files_are_read_in_the_order_of_their_times_and_the_first_of_two_repeats_is_kept(
    spark: SparkSession, home: Path
) -> None:
    landing = home / "landing" / "clicks"
    landing.mkdir(parents=True)
    for age, name in enumerate(["z", "y", "x"]):
        file = landing / f"{name} é%20#[1].csv"
        file.write_text(f"{click_with_id(age, 'same', name)}\n{click_with_id(age, name, name)}\n")
        os.utime(file, (1_500_000_000 + age, 1_500_000_000 + age))
    (landing / ".hidden.csv").write_text("not yet landed\n")
    (landing / "_half.csv").write_text("not yet landed\n")
    drain(spark, home, make_spec(CLICKS_WITH_IDS | {"intake": {"files_per_batch": 2}}))
    assert ask(home, "SELECT item_id, event_id, batch, position FROM events ORDER BY batch, item_id, position") == [
        ("y", "y", 0, 1),
        ("z", "same", 0, 0),
        ("z", "z", 0, 1),
        ("x", "x", 1, 1),
    ]


# Open and closed windows, and a second drain


def test_a_hot_window_closes_when_the_watermark_passes_its_end_and_a_drain_shows_open_ones(
    spark: SparkSession, home: Path
) -> None:
    spec = make_spec(
        time={"watermark_delay": "1 minute"}, metrics={"hot_items": {"length": "10 minutes", "slide": "5 minutes"}}
    )

    def hot() -> dict[str | None, tuple[bool, int, int]]:
        found = ask(home, "SELECT window_end, closed, revision, page_views FROM hot_items ORDER BY window_end")
        return {clock(end): (closed, revision, views) for end, closed, revision, views in found}

    land_lines(home, [[view("12:03:00", 1, 1)], [view("12:05:59", 2, 1)]])
    drain(spark, home, spec)
    assert hot() == {
        "12:05:00": (False, 1, 1),  # the watermark is 12:04:59
        "12:10:00": (False, 1, 2),
        "12:15:00": (False, 1, 1),
    }
    watermark = ask(home, "SELECT max(watermark_after) FROM batches")
    counts, before = row_counts(home), versions(home)

    drain(spark, home, spec)
    assert row_counts(home) == counts, "a drain without anything new adds no row"
    assert {name: version - before[name] for name, version in versions(home).items()} == dict.fromkeys(
        STREAM_TABLES, 1
    ), "every start fences every table once, and does nothing else"
    assert ask(home, "SELECT max(watermark_after) FROM batches") == watermark, "a drain does not move the watermark"

    land_lines(home, [[view("12:06:00", 3, 1)]], first=2)
    drain(spark, home, spec)
    assert hot() == {
        "12:05:00": (True, 2, 1),  # the watermark is 12:05:00: what a drain left open is closed by a later run
        "12:10:00": (False, 2, 3),
        "12:15:00": (False, 2, 2),
    }


def test_day_and_sliding_windows_are_current_after_every_batch(spark: SparkSession, home: Path) -> None:
    """Windows of seven minutes that end every three, in a zone that is half an hour off."""
    clicks = [
        [Click(at("17:50:00") + second, str(second % 5), str(second % 3)) for second in range(0, 2_000, 97)],
        [
            Click(at("18:20:00") + second, str(second % 7), str(second % 3)) for second in range(0, 2_000, 53)
        ],  # midnight
        [Click(at("18:29:59"), "late", "1"), Click(at("18:30:00"), "late", "1")],
    ]
    rules = Rules(zone="Asia/Kolkata", standard=19_800, length=420, slide=180, top=2)
    seen = []

    def reached(point: str) -> None:
        if point == "after batches":
            seen.append((traffic_of(home), hot_items_of(home)))

    land_lines(home, [[line_of(click, with_id=True) for click in batch] for batch in clicks])
    measures = {"unique_visitors": exact("visitor_id", "action = 'view'")}
    spec = make_spec(
        CLICKS_WITH_IDS,
        time={"zone": "Asia/Kolkata"},
        metrics={
            "traffic": {"grains": ["1 minute", "1 hour", "1 day"], "measures": measures},
            "hot_items": {"length": "7 minutes", "slide": "3 minutes", "top": 2},
        },
    )
    drain(spark, home, spec, reached=reached)
    for number, (traffic, hot) in enumerate(seen):
        wanted = expect(clicks[: number + 1], rules)
        assert traffic == wanted.traffic
        assert hot == {end: window for end, window in wanted.hot.items() if window[0]}, (
            "closed ones, until the drain ends"
        )
    assert len(seen) == 3
    assert hot_items_of(home) == expect(clicks, rules).hot
    assert len({start for grain, start in seen[2][0] if grain == "1 day"}) == 2


# Measures


PAID = CLICKS | {
    "schema": "user_id BIGINT, behavior STRING, ts BIGINT, amount STRING, province STRING",
    "event": {
        "event_at": "timestamp_seconds(ts)",
        "visitor_id": "user_id",
        "action": "CASE behavior WHEN 'pv' THEN 'view' ELSE behavior END",
        "properties": "map('amount', amount, 'province', province)",
    },
}
AMOUNT = "cast(properties['amount'] AS decimal(18,2))"
MEASURES: dict[str, Any] = {
    "rows": {"count": "*"},
    "buys": {"count": "action = 'buy'", "where": f"{AMOUNT} > 1"},
    "revenue": {"sum": AMOUNT, "where": "action = 'buy'"},
    "cheapest": {"min": AMOUNT, "where": "action = 'buy'"},
    "dearest": {"max": AMOUNT},
    "basket": {"average": AMOUNT, "where": "action = 'buy'"},
    "first_visitor": {"min": "visitor_id"},
    "last_at": {"max": "event_at"},
    "buyers": exact("visitor_id", "action = 'buy'"),
    "buyers_sketched": {"distinct": "visitor_id", "where": "action = 'buy'"},
    "provinces": exact("properties['province']"),
}


def test_measures_give_each_province_its_numbers_and_one_added_later_begins_then(
    spark: SparkSession, home: Path
) -> None:
    def spec(measures: dict[str, Any]) -> Any:
        traffic = {"grains": ["1 hour"], "measures": measures, "by": [{"province": "properties['province']"}]}
        return make_spec(PAID, metrics={"traffic": traffic})

    first, second = at("12:00:00"), at("12:30:00")
    land_lines(
        home,
        [
            [
                f"10,buy,{first},0.10,beijing",
                f"9,buy,{first},0.20,beijing",
                f"9,buy,{first},not a number,beijing",
                f"8,pv,{first},7.00,beijing",
                f",buy,{first},5.00,",
            ],
            [f"9,buy,{second},0.05,beijing", f"7,pv,{second},,henan"],
        ],
    )
    drain(spark, home, spec(MEASURES))
    columns = list(MEASURES)
    sql = f"SELECT province, page_views, unique_visitors, {', '.join(columns)} FROM traffic ORDER BY province"
    found = {
        row[0]: dict(zip(["page_views", "unique_visitors", *columns], row[1:], strict=True)) for row in ask(home, sql)
    }
    assert found["beijing"] == {
        "page_views": 1,
        "unique_visitors": 1,
        "rows": 5,
        "buys": 0,
        "revenue": Decimal("0.35"),
        "cheapest": Decimal("0.05"),
        "dearest": Decimal("7.00"),
        "basket": Decimal("0.116667"),
        "first_visitor": "10",  # ids are texts
        "last_at": datetime(2020, 9, 13, 12, 30, tzinfo=UTC),
        "buyers": 2,
        "buyers_sketched": 2,
        "provinces": 1,
    }
    nowhere = found[None]
    assert (nowhere["rows"], nowhere["buys"], nowhere["revenue"]) == (1, 1, Decimal("5.00"))
    assert (nowhere["buyers"], nowhere["buyers_sketched"], nowhere["provinces"]) == (0, 0, 0), "NULL is no value"
    henan = found["henan"]
    assert (henan["rows"], henan["revenue"], henan["basket"], henan["cheapest"]) == (1, None, None, None)
    errors = ask(home, "SELECT DISTINCT buyers_error, round(buyers_sketched_error, 3) FROM traffic")
    assert errors == [(0.0, 0.008)] or errors == [(0.0, 0.007)], "the error stands beside the number"

    land_lines(home, [[f"9,buy,{at('13:00:00')},1.00,beijing", f"6,buy,{second},0.01,beijing"]], first=2)
    drain(spark, home, spec(MEASURES | {"sales": {"sum": AMOUNT}}))
    later = ask(home, "SELECT window_start, revenue, sales FROM traffic WHERE province = 'beijing' ORDER BY 1")
    assert [(clock(start), *numbers) for start, *numbers in later] == [
        ("12:00:00", Decimal("0.36"), Decimal("0.01")),
        ("13:00:00", Decimal("1.00"), Decimal("1.00")),
    ]
    old = ask(home, "SELECT DISTINCT sales FROM traffic_live WHERE batch < 2")
    assert old == [(None,)], "numbers from before the measure are not invented"


# Other times, other sources


def test_arrival_time_stands_in_for_an_event_time(spark: SparkSession, home: Path) -> None:
    source = CLICKS | {"rules": {}, "event": {"visitor_id": "user_id", "item_id": "item_id"}}
    land_lines(home, [["1,1,1,pv,whenever"], ["1,1,1,pv,5", "2,2,1,pv,4000000000"]])
    began = datetime.now(UTC) - timedelta(seconds=1)
    totals = drain(spark, home, make_spec(source, time={"by": "arrival"}))
    assert (totals["read"], totals["on_time"], totals["quarantined"]) == (3, 2, 1)
    events = rows(home, "events")
    assert all(began <= row["event_at"] == row["seen_at"] <= datetime.now(UTC) for row in events)
    (views,) = ask(home, "SELECT sum(page_views)::BIGINT FROM traffic WHERE grain = '1 minute'")
    assert views == (2,)


def test_several_logs_of_different_kinds_are_united(spark: SparkSession, home: Path) -> None:
    """CSV with headers, some of it zipped, quoted and cut; JSON lines; text lines; all in one number."""
    moment = at("12:00:00")
    csv_folder, json_folder, text_folder = (home / "landing" / name for name in ("csv", "json", "text"))
    for folder in (csv_folder, json_folder, text_folder):
        folder.mkdir(parents=True)
    header = "page;visitor;ts"
    (csv_folder / "1.csv").write_text(f'{header}\n"a;b";ann;{moment}\n"say ""c""";bob;{moment}\n')
    (csv_folder / "2.csv").write_text(f"{header}\n")
    (csv_folder / "3.csv").write_text("")
    (csv_folder / "4.csv").write_bytes(f"\ufeff{header}\r\nd;;{moment}\r\n{header}\r\n".encode())
    (csv_folder / "5.csv.gz").write_bytes(gzip.compress(f"{header}\ne;ann;{moment}\n".encode()))
    (csv_folder / "6.csv.gz").write_bytes(gzip.compress(b""))
    (json_folder / "1.json").write_text(
        json.dumps({"who": "ann", "what": {"page": "a;b"}, "ms": moment * 1000, "more": [1]}) + "\nnot json\n\n"
    )
    (text_folder / "1.log").write_text(f"{moment} cat a;b\nnonsense\n")
    separated = {
        "kind": "files",
        "path": "landing/csv",
        "format": "csv",
        "options": {"header": True, "sep": ";", "escape": '"'},
        "schema": "page STRING, visitor STRING, ts BIGINT",
        "event": {"event_at": "timestamp_seconds(ts)", "visitor_id": "visitor", "item_id": "page"},
    }
    objects = {
        "kind": "files",
        "path": "landing/json",
        "format": "json",
        "schema": "who STRING, what STRUCT<page: STRING>, ms BIGINT",
        "event": {"event_at": "timestamp_millis(ms)", "visitor_id": "who", "item_id": "what.page"},
    }
    lines = {
        "kind": "files",
        "path": "landing/text",
        "format": "text",
        "event": {
            "event_at": "timestamp_seconds(cast(split(value, ' ')[0] AS bigint))",
            "visitor_id": "split(value, ' ')[1]",
            "item_id": "split(value, ' ')[2]",
        },
        "rules": {"three_words": "size(split(value, ' ')) = 3"},
    }
    totals = drain(spark, home, make_spec([separated, objects, lines]))
    assert totals == {"read": 10, "on_time": 6, "late": 0, "too_late": 0, "duplicate": 0, "quarantined": 4}
    assert traffic_of(home)["1 hour", moment] == (6, 3)
    (_, items), *_ = hot_items_of(home).values()
    assert items == [("a;b", 3), ("d", 1), ("e", 1), ('say "c"', 1)]
    held = ask(home, "SELECT raw, reason, detail, position FROM quarantine ORDER BY raw")
    assert held == [
        ("", "malformed", "empty line", 2),
        ("nonsense", "malformed", "event_at is null", 1),
        ("not json", "malformed", "does not fit the json schema", 1),
        (header, "malformed", "does not fit the csv schema", 2),
    ], "only the first line of a file is its header"
    places = ask(
        home, "SELECT parse_filename(source), position FROM events WHERE item_id = 'e' OR visitor_id = 'bob' ORDER BY 1"
    )
    assert places == [("1.csv", 2), ("5.csv.gz", 1)]


@contextmanager
def a_server(lines: list[str]) -> Iterator[int]:
    """A port on this machine that sends the lines to whoever asks first, and then waits."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        done = threading.Event()

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.sendall("".join(f"{line}\n" for line in lines).encode())
                done.wait(60)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield int(listening.getsockname()[1])
        done.set()
        thread.join(5)


def test_lines_from_a_socket_are_counted_until_the_job_is_stopped(
    spark: SparkSession, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    moment = at("12:00:00")
    with a_server([f"ann {moment}", f"bob {moment + 1}", "nonsense"]) as port:
        source = {
            "kind": "socket",
            "port": port,
            "format": "text",
            "event": {
                "event_at": "timestamp_seconds(cast(split(value, ' ')[1] AS bigint))",
                "visitor_id": "split(value, ' ')[0]",
            },
        }
        spec = make_spec(source, time={"trigger": "100 ms"})
        with pytest.raises(SpecError, match="a socket has no end to drain to"):
            drain(spark, home, spec)
        stop = threading.Event()

        def stop_after_three_rows() -> None:
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline and not stop.is_set():
                progress = read_json(home / "jobs" / "clicks" / "progress.json")
                if progress and progress["ledger"]["total"]["read"] == 3:
                    break
                time.sleep(0.05)
            stop.set()

        watcher = threading.Thread(target=stop_after_three_rows)
        watcher.start()
        totals = run(spark, LiveMetricsSettings(home=home, spec=spec), stop=stop)
        watcher.join()
    assert (totals["read"], totals["on_time"], totals["quarantined"]) == (3, 2, 1)
    assert traffic_of(home)["1 minute", moment] == (2, 2)
    assert "cannot be re-read" in caplog.text
    assert {row["source"] for row in rows(home, "events")} == {f"socket://127.0.0.1:{port}"}
    assert not [row for row in rows(home, "batches") if row["drained"]]
