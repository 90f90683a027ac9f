"""Real logs give exactly the results that others computed for them."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.harness import CLICKS, ask, drain, exact, hot_items_of, land_lines, make_spec, rows

pytestmark = [pytest.mark.spark, pytest.mark.data]
MEASURES = {
    "unique_visitors": exact("visitor_id", "action = 'view'"),
    "visitors_any": exact("visitor_id"),
    "carts": {"count": "action = 'cart'"},
    "favourites": {"count": "action = 'fav'"},
    "buys": {"count": "action = 'buy'"},
}


def expected(shared: Path, name: str) -> list[dict[str, str]]:
    with (shared / "expected" / name).open() as file:
        return list(csv.DictReader(file))


def taobao(zone: str = "Asia/Shanghai", **source: Any) -> Any:
    return make_spec(
        CLICKS | source,
        time={"zone": zone},
        metrics={
            "traffic": {"grains": ["5 minutes", "1 hour", "1 day"], "measures": MEASURES},
            "hot_items": {"length": "1 hour", "slide": "5 minutes", "top": 5},
        },
    )


@pytest.fixture(scope="module")
def sorted_home(spark: SparkSession, shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("sorted")
    text = (shared_data / "taobao_userbehavior_20171126_0900_1055.csv").read_text()
    lines = text.splitlines()
    land_lines(home, [lines[start : start + 20_000] for start in range(0, len(lines), 20_000)])
    drain(spark, home, taobao())
    return home


def test_every_line_is_accounted_for(sorted_home: Path) -> None:
    (total,) = ask(
        sorted_home,
        "SELECT total_read, total_on_time, total_late, total_too_late, total_quarantined FROM batches "
        "ORDER BY id DESC, drained DESC LIMIT 1",
    )
    assert total == (96_169, 96_168, 0, 0, 1)


def test_the_cut_off_last_line_is_in_quarantine(sorted_home: Path) -> None:
    (row,) = rows(sorted_home, "quarantine")
    assert (row["raw"], row["reason"], row["detail"]) == ("301780,543546,4181361,pv,15", "rule", "dated")


@pytest.mark.parametrize(("grain", "name"), [("5 minutes", "5min"), ("1 hour", "hourly")])
def test_windows_equal_the_verified_ones(sorted_home: Path, shared_data: Path, grain: str, name: str) -> None:
    found = ask(
        sorted_home,
        "SELECT epoch(window_start)::BIGINT, page_views, unique_visitors, visitors_any, carts, favourites, buys "
        f"FROM traffic WHERE grain = '{grain}' ORDER BY 1",
    )
    columns = ("window_start", "pv", "uv_pv", "uv_any", "cart", "fav", "buy")
    wanted = expected(shared_data, f"userbehavior_pv_uv_{name}.csv")
    assert found == [tuple(int(row[column]) for column in columns) for row in wanted]


def test_hot_items_equal_the_verified_ones(sorted_home: Path, shared_data: Path) -> None:
    wanted: dict[int, list[tuple[str, int]]] = {}
    for row in expected(shared_data, "userbehavior_hot_items_top5.csv"):
        wanted.setdefault(int(row["window_end"]), []).append((row["item_id"], int(row["pv_count"])))
    found = hot_items_of(sorted_home)
    assert {end: found[end][1] for end in wanted} == wanted
    closed = {end for end, (is_closed, _) in found.items() if is_closed}
    assert closed == {end for end in wanted if end <= 1511664909 - 10}, "only what the watermark passed is closed"


@pytest.mark.parametrize("zone", ["Asia/Shanghai", "UTC"])
def test_days_of_the_by_user_slice_are_those_of_the_zone(
    spark: SparkSession, shared_data: Path, home: Path, zone: str
) -> None:
    lines = (shared_data / "taobao_userbehavior_by_user_4321.csv").read_text().splitlines()
    land_lines(home, [lines])
    drain(spark, home, taobao(zone))
    found = ask(
        home,
        f"SELECT CAST(window_start AT TIME ZONE '{zone}' AS DATE)::VARCHAR, page_views, unique_visitors, visitors_any "
        "FROM traffic WHERE grain = '1 day' ORDER BY 1",
    )
    wanted = [row for row in expected(shared_data, "userordered_daily.csv") if row["day_timezone"] == zone]
    assert found == [(row["day"], int(row["pv"]), int(row["uv_pv"]), int(row["uv_any"])) for row in wanted]


def test_late_rows_of_the_by_user_slice_are_counted_by_the_watermark_of_all_earlier_batches(
    spark: SparkSession, shared_data: Path, home: Path
) -> None:
    lines = (shared_data / "taobao_userbehavior_by_user_4321.csv").read_text().splitlines()
    land_lines(home, [lines[start : start + 1000] for start in range(0, len(lines), 1000)])
    spec = make_spec(time={"zone": "Asia/Shanghai", "watermark_delay": "60 seconds"})
    totals = drain(spark, home, spec)
    wanted = json.loads((shared_data / "expected" / "userordered_late.json").read_text())
    late = wanted["file_order_watermark_60s"]["micro_batch_1000_watermark_of_all_earlier_batches"]
    assert totals["late"] + totals["too_late"] == late["below_watermark"] == 3321
    assert totals["read"] == 4321


APACHE = {
    "kind": "files",
    "path": "landing/clicks",
    "format": "text",
    "event": {
        "event_at": "to_timestamp(split(value, ' ')[3], 'dd/MM/yyyy:HH:mm:ss')",
        "visitor_id": "split(value, ' ')[0]",
        "item_id": "split(value, ' ')[6]",
        "action": r"CASE WHEN split(value, ' ')[5] = 'GET' AND NOT split(value, ' ')[6] RLIKE '\\.(css|js|png|ico)$' "
        "THEN 'view' ELSE 'other' END",
    },
}


def test_the_web_log_gives_hourly_requests_and_hot_pages(spark: SparkSession, shared_data: Path, home: Path) -> None:
    lines = (shared_data / "apache_2015-05.log").read_text().splitlines()
    land_lines(home, [lines])
    spec = make_spec(
        APACHE,
        time={"watermark_delay": "1 minute"},
        metrics={
            "traffic": {"grains": ["1 hour"], "measures": {"requests": {"count": "*"}, "ips": exact("visitor_id")}},
            "hot_items": {"length": "10 minutes", "slide": "5 seconds", "top": 5},
        },
    )
    drain(spark, home, spec)
    found = ask(home, "SELECT epoch(window_start)::BIGINT, requests, ips, page_views FROM traffic ORDER BY 1")
    columns = ("window_start", "requests", "distinct_ips", "page_requests_after_filter")
    wanted = expected(shared_data, "apache_hourly.csv")
    assert found == [tuple(int(row[column]) for column in columns) for row in wanted]
    pages: dict[int, list[tuple[str, int]]] = {}
    for row in expected(shared_data, "apache_hot_pages_top5.csv"):
        pages.setdefault(int(row["window_end"]), []).append((row["url"], int(row["count"])))
    hot = hot_items_of(home)
    assert {end: hot[end][1] for end in pages} == pages


def test_ad_clicks_by_province_need_a_spec_only(spark: SparkSession, shared_data: Path, home: Path) -> None:
    lines = (shared_data / "AdClickLog.csv").read_text().splitlines()
    land_lines(home, [lines])
    source = {
        "kind": "files",
        "path": "landing/clicks",
        "format": "csv",
        "schema": "user_id BIGINT, ad_id BIGINT, province STRING, city STRING, ts BIGINT",
        "event": {
            "event_at": "timestamp_seconds(ts)",
            "visitor_id": "cast(user_id AS string)",
            "item_id": "province",
            "action": "'click'",
            "properties": "map('province', province, 'city', city)",
        },
    }
    spec = make_spec(
        source,
        time={"zone": "Asia/Shanghai"},
        metrics={
            "traffic": {
                "grains": ["1 hour"],
                "measures": {"clicks": {"count": "action = 'click'"}},
                "by": [{"province": "properties['province']"}],
            },
            "hot_items": {"length": "1 hour", "slide": "5 minutes", "top": 100, "action": "click"},
        },
    )
    drain(spark, home, spec)
    wanted: dict[int, dict[str, int]] = {}
    for row in expected(shared_data, "ad_clicks_by_province.csv"):
        wanted.setdefault(int(row["window_end"]), {})[row["province"]] = int(row["clicks"])
    found = {end: dict(items) for end, (_, items) in hot_items_of(home).items()}
    assert {end: found[end] for end in wanted} == wanted
    by_province = dict(ask(home, "SELECT province, sum(clicks)::BIGINT FROM traffic GROUP BY province"))
    counted: dict[str, int] = {}
    for line in lines:
        counted[line.split(",")[2]] = counted.get(line.split(",")[2], 0) + 1
    assert by_province == counted
