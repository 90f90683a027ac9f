"""What tests share: specs, landed files, drained jobs and their tables."""

import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from include.serving.warehouse import Warehouse
from spark_jobs.jobs.stream_live_metrics import LiveMetricsSettings, run
from spark_jobs.settings import JobSpec
from tests.oracle import Click

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
CLICKS = {
    "kind": "files",
    "path": "landing/clicks",
    "format": "csv",
    "schema": "user_id BIGINT, item_id BIGINT, category_id BIGINT, behavior STRING, ts BIGINT",
    "event": {
        "event_at": "timestamp_seconds(ts)",
        "visitor_id": "cast(user_id AS string)",
        "item_id": "cast(item_id AS string)",
        "category_id": "cast(category_id AS string)",
        "action": "CASE behavior WHEN 'pv' THEN 'view' ELSE behavior END",
    },
    "rules": {"known_action": "action IN ('view','buy','cart','fav')", "dated": "event_at >= '2000-01-01'"},
    "intake": {"files_per_batch": 1},
}

CLICKS_WITH_IDS = CLICKS | {
    "schema": "user_id STRING, item_id STRING, category_id STRING, behavior STRING, ts BIGINT, id STRING",
    "event": {
        "event_at": "timestamp_seconds(ts)",
        "visitor_id": "user_id",
        "item_id": "item_id",
        "action": "CASE behavior WHEN 'pv' THEN 'view' ELSE behavior END",
        "event_id": "id",
    },
}
"""Clicks that carry an id of their own, and ids that may be any text."""


def make_spec(source: dict[str, Any] | list[Any] | None = None, **sections: Any) -> JobSpec:
    """The design's spec with some sections replaced; one file a batch, exact visitors."""
    base: dict[str, Any] = {
        "job": "clicks",
        "source": source or CLICKS,
        "metrics": {"traffic": {"measures": {"unique_visitors": exact("visitor_id", "action = 'view'")}}},
        "resources": {"master": "local[2]", "driver_memory": "1g"},
    }
    return JobSpec.model_validate(base | sections)


def exact(value: str, where: str | None = None) -> dict[str, str]:
    measure = {"distinct": value, "live": "exact"}
    return measure | {"where": where} if where else measure


def land_lines(home: Path, files: Iterable[Iterable[str]], path: str = "landing/clicks", first: int = 0) -> None:
    """One file an entry, dated one second after the other, long ago."""
    folder = home / path
    folder.mkdir(parents=True, exist_ok=True)
    for number, lines in enumerate(files, start=first):
        file = folder / f"part-{number:05}.csv"
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        os.utime(file, (1_500_000_000 + number, 1_500_000_000 + number))


def drain(spark: SparkSession, home: Path, spec: JobSpec, **hooks: Any) -> dict[str, int]:
    return run(spark, LiveMetricsSettings(home=home, spec=spec, drain=True), **hooks)


def rows(home: Path, table: str, job: str = "clicks") -> list[dict[str, Any]]:
    """All rows of the table as it is, folded or not."""
    path = Warehouse(home, job).folder / table
    found: list[dict[str, Any]] = DeltaTable(str(path)).to_pyarrow_table().to_pylist()
    return found


def ask(home: Path, sql: str, job: str = "clicks") -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in Warehouse(home, job).sql(sql).to_pylist()]


def traffic_of(home: Path, job: str = "clicks") -> dict[tuple[str, int], tuple[int, int]]:
    sql = "SELECT grain, epoch(window_start)::BIGINT, page_views, unique_visitors FROM traffic"
    return {(grain, start): (views, visitors) for grain, start, views, visitors in ask(home, sql, job)}


def hot_items_of(home: Path, job: str = "clicks") -> dict[int, tuple[bool, list[tuple[str, int]]]]:
    sql = "SELECT epoch(window_end)::BIGINT, closed, item_id, page_views FROM hot_items ORDER BY window_end, rank"
    found: defaultdict[int, tuple[bool, list[tuple[str, int]]]] = defaultdict(lambda: (False, []))
    for end, closed, item, views in ask(home, sql, job):
        found[end] = (closed, [*found[end][1], (item, views)])
    return dict(found)


def line_of(click: Click, with_id: bool = False) -> str:
    """The csv line of a click, as the spec of the design reads it."""
    behaviour = {"view": "pv"}.get(click.action, click.action)
    line = f"{click.visitor or ''},{click.item or ''},1,{behaviour},{click.at}"
    return f"{line},{click.event_id or ''}" if with_id else line
